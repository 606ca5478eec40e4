"""A Node.js program that hosts the JavaScript client (clients/js/tests/host.js), for a test."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rappor import Params
from rappor.collection import Collection
from rappor.wire import Batch, decode_batch
from support.javascript import PACKAGE, Node

HOST = PACKAGE / "tests" / "host.js"
HOMEPAGE = Params(k=16, h=2, m=4, f=0.5, p=0.5, q=0.75)


def homepage(**changes: Any) -> Collection:
    """A collection that a client may report to often."""
    fields: dict[str, Any] = {"name": "homepage", "version": 1, "params": HOMEPAGE}
    return Collection(**(fields | {"reports_per_period": 5, "max_values": 3} | changes))


class ClientRefused(Exception):
    """What a method of the client threw."""

    def __init__(self, answer: dict[str, Any]) -> None:
        """Take the message and the codes."""
        super().__init__(answer["error"])
        self.code = answer.get("code")
        self.definition_code = answer.get("definitionCode")
        self.path = answer.get("path")


class Host(Node):
    """A process with one client."""

    def __init__(
        self,
        sources: Path | None = None,
        keep_environment: bool = False,
        log: Path | None = None,
    ) -> None:
        """Start it, with the sources of the package or others; nothing is opened yet."""
        if not keep_environment:
            os.environ.pop("DO_NOT_TRACK", None)
        super().__init__(HOST, *([] if sources is None else [str(sources)]), log=log)

    def call(self, method: str, *arguments: object) -> Any:
        """The result of a method of the client or of the host."""
        answer = self.ask([method, *arguments])
        if "error" in answer:
            raise ClientRefused(answer)
        return answer["value"]

    def open(self, folder: Path, *collections: Collection, **options: object) -> None:
        """Open the client, with consent and a transport that records what is sent."""
        texts = [collection.to_client_json() for collection in collections or (homepage(),)]
        given = {"directory": str(folder), "collections": texts, "consent": True}
        self.call("open", given | ({} if "uploadTo" in options else {"recorded": True}) | options)

    def sent(self) -> list[Batch]:
        """The batches that were sent since the last call."""
        return [decode_batch(bytes.fromhex(body)) for body in self.call("sent")]

    def reported(self, value: object = "example.com", name: str = "homepage") -> list[Batch]:
        """Report a value; what is sent then."""
        self.call("report", name, value)
        self.call("flush", 60_000)
        return self.sent()

    def kill(self) -> None:
        """End the process as a crash does."""
        self.process.kill()
        self.close()


@contextmanager
def hosting(
    sources: Path | None = None, keep_environment: bool = False, log: Path | None = None
) -> Iterator[Host]:
    """A host for the length of a block; by default DO_NOT_TRACK is not set in it."""
    host = Host(sources, keep_environment, log)
    try:
        yield host
    finally:
        if host.process.poll() is None:
            host.close()


def planted(folder: Path, file: str, old: str, new: str) -> Path:
    """A copy of the client's sources with one change, a bug; AssertionError if nothing changes."""
    sources = folder / "src"
    shutil.copytree(PACKAGE / "src", sources)
    (folder / "package.json").write_text('{"type": "module"}')
    text = (sources / file).read_text("utf-8")
    assert old in text, f"{file} no longer has: {old}"
    (sources / file).write_text(text.replace(old, new, 1), "utf-8")
    return sources
