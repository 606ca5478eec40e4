"""A collector with one more route, POST /v1/noop: what `ingest.py` compares the collector with.

The route reads a request's body as the collector does and answers 204. It stores nothing, so it
shows what the server costs without the work on a batch.
"""

import argparse
import os
import sys
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `rappor collect` does

from rappor.collector import process
from rappor.collector.app import App
from rappor.collector.request import fields_of, read_body
from rappor.collector.settings import CollectorSettings

NOOP_PATH = "/v1/noop"
_START = {"type": "http.response.start", "status": 204, "headers": []}
_BODY = {"type": "http.response.body", "body": b""}


class AppWithNoop(App):
    """The collector's application and the route."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and scope["path"] == NOOP_PATH:
            await read_body(fields_of(scope["headers"]), receive)
            await send(_START)
            await send(_BODY)
        else:
            await super().__call__(scope, receive, send)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("data", "collections", "keys", "store"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--keys-optional", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    return process.run(CollectorSettings(**vars(parser.parse_args())), app=AppWithNoop)


if __name__ == "__main__":
    sys.exit(main())
