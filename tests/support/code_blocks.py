"""The code blocks of a document: find them, and run them in order, as a reader would paste them.

Standard library only: `make dist` runs this file with the interpreter of an installed wheel.

Blocks of `python` and `sh` are run; doctests are run by tests/unit/test_theory_pages.py. A comment
of HTML right before a block says what is special about it:

    <!-- not run: REASON -->                 it cannot be run here
    <!-- run by tests/e2e/test_x.py -->      a test of its own runs it, or `make dist`
    <!-- long: REASON -->                    only `make test-long` runs it
    <!-- once: REASON -->                    a second run in the same folder is refused
    <!-- not under DO_NOT_TRACK: REASON -->  it needs reports of real clients
    <!-- file: collections/homepage.toml --> the block is this file

and `<!-- before`, `<!-- before long` or `<!-- before python` up to `-->` holds commands or a
program that make what the page takes for granted, such as a file of reports.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shlex
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

# Languages of blocks that nobody runs; the last is for the site, which makes text of them.
DATA = ("text", "json", "yaml", "toml", "caddyfile", "{eval-rst}")
SERVERS = {
    "collect": ("--port",),
    "serve": ("--port", "--dashboard-port"),
    "dashboard": ("--port",),
}
DEFAULT_PORTS = {"--port": "8765", "--dashboard-port": "8766"}
LIMIT = 300  # seconds: ends a command that hangs, says nothing about how fast one is
# A client gives its last upload a moment only; on a busy machine it gets as long as it takes.
PATIENT = ("client.close()", f"client.close({LIMIT})")

_FENCE = re.compile(r"^```(\S*)$")
_MARK = re.compile(r"^<!-- (not run|run by|long|once|not under DO_NOT_TRACK|file):? (.+) -->$")
_BEFORE = re.compile(r"^<!-- before(?: (python|long))?$")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a document, or a hidden preparation.

    Args:
        page: the name of the document.
        line: the number of its first line.
        section: the heading above it.
        language: "" if the fence has none.
        code: the text.
        marks: what the comments before it say: the kind of the mark, and the reason.
        hidden: whether readers do not see it.
    """

    page: str
    line: int
    section: str
    language: str
    code: str
    marks: dict[str, str] = field(default_factory=dict)
    hidden: bool = False

    @property
    def is_doctest(self) -> bool:
        """Whether it has prompts, and so is run as a doctest."""
        return self.language == "python" and ">>> " in self.code

    @property
    def is_run(self) -> bool:
        """Whether `Session.run` does anything with it."""
        if "not run" in self.marks or "run by" in self.marks or self.is_doctest:
            return False
        return self.language in ("python", "sh") or "file" in self.marks


def blocks(page: Path) -> list[Block]:
    """All blocks of a document, in order."""
    return list(_blocks(page.name, page.read_text(encoding="utf-8").splitlines()))


def _blocks(page: str, lines: list[str]) -> Iterator[Block]:
    section, marks = "", dict[str, str]()
    numbered = iter(enumerate(lines, 1))
    for number, line in numbered:
        if mark := _MARK.match(line):
            marks[mark[1]] = mark[2]
        elif before := _BEFORE.match(line):
            language = "python" if before[1] == "python" else "sh"
            long = {"long": "like what it prepares"} if before[1] == "long" else {}
            code = _until("-->", numbered)
            yield Block(page, number, section, language, code, long, hidden=True)
        elif fence := _FENCE.match(line):
            yield Block(page, number, section, fence[1], _until("```", numbered), marks)
            marks = {}
        elif line.startswith("## "):
            section = line.removeprefix("## ")
        if line.strip() and not mark and marks and not line.startswith("```"):
            raise ValueError(f"{page}:{number}: a mark stands before no block")


def _until(end: str, numbered: Iterator[tuple[int, str]]) -> str:
    code: list[str] = []
    for _, line in numbered:
        if line == end:
            return "\n".join(code) + "\n"
        code.append(line)
    raise ValueError(f"a block is not closed by {end}")


def commands(code: str) -> list[str]:
    """The lines of a shell block, with continued lines joined and comments left out."""
    joined = re.sub(r"\\\n\s*", "", code)
    return [line for line in joined.splitlines() if shlex.split(line, comments=True)]


@dataclass(slots=True)
class Session:
    """A reader's folder and terminal.

    Args:
        folder: where everything is run.
        python: run programs with this interpreter, each in a process of its own; by default with
            the running one, and later programs see the names of earlier ones.
        forked: fork commands from an interpreter that has made the imports: the tests do, which
            saves most of a short command's time.
    """

    folder: Path
    python: str | None = None
    forked: bool = False
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    ports: dict[str, str] = field(default_factory=dict)
    holders: list[socket.socket] = field(default_factory=list)
    server: subprocess.Popen[bytes] | None = None

    def run(self, block: Block) -> None:
        """Run a block as it is printed, with free ports; RuntimeError if it fails."""
        if "file" in block.marks:
            path = self.folder / block.marks["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.code, encoding="utf-8")
        elif block.language == "python":
            self._program(block)
        else:
            for line in commands(block.code):
                self._command(block, self._on_free_ports(line))

    def _program(self, block: Block) -> None:
        code = self._on_free_ports(block.code.replace(*PATIENT))
        where = f"{block.page}:{block.line}"
        if self.python is None or block.hidden:
            with contextlib.chdir(self.folder):
                exec(compile("\n" * block.line + code, block.page, "exec"), self.names)
            return
        self._finish(where, [self.python, "-I", "-W", "error", "-c", code])

    def _command(self, block: Block, line: str) -> None:
        words = shlex.split(line, comments=True)
        if words[0] == "rappor" and words[1] in SERVERS:
            self.end()
            self._start(words)
            return
        where = f"{block.page}:{block.line}: {line}"
        if self.forked and words[0] == "rappor" and shlex.join(words) == " ".join(words):
            from support.command import rappor  # not there for `make dist`, which forks nothing

            _check(where, rappor(*words[1:], cwd=self.folder))
        else:
            self._finish(where, ["sh", "-c", line])

    def _finish(self, where: str, command: list[str]) -> None:
        done = subprocess.run(
            command, cwd=self.folder, timeout=LIMIT, check=False, capture_output=True, text=True
        )
        _check(where, done)

    def _on_free_ports(self, text: str) -> str:
        for option in ("--port", "--dashboard-port"):
            for port in re.findall(rf"{option} (\d+)", text):
                self._port_for(port)
        for port, free in self.ports.items():
            text = re.sub(rf"\b{port}\b", free, text)
        return text

    def _port_for(self, port: str) -> str:
        """The port of this session that stands for a printed one.

        It is bound without listening until the session is closed, so nobody else is given it.
        """
        if port not in self.ports:
            holder = socket.socket()
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # servers may bind it, too
            holder.bind(("127.0.0.1", 0))
            self.holders.append(holder)
            self.ports[port] = str(holder.getsockname()[1])
        return self.ports[port]

    def _start(self, words: list[str]) -> None:
        for option in SERVERS[words[1]]:
            if option not in words:
                words = [*words, option, self._port_for(DEFAULT_PORTS[option])]
        log = self.folder / "server.log"
        with log.open("wb") as file:
            self.server = subprocess.Popen(words, cwd=self.folder, stderr=file, stdout=file)
        until = time.monotonic() + LIMIT
        for option in SERVERS[words[1]]:
            scheme = "https" if option == "--port" and "--tls-cert" in words else "http"
            while not _answers(scheme, words[words.index(option) + 1]):
                if self.server.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"{shlex.join(words)}\n{log.read_text(encoding='utf-8')}")
                time.sleep(0.05)

    def end(self) -> None:
        """End the server, if one runs."""
        if self.server is not None:
            self.server.terminate()
            code = self.server.wait(timeout=LIMIT)
            self.server = None
            if code:
                raise RuntimeError(f"the server ended with exit code {code}")

    def close(self) -> None:
        """End the server, and let go of the ports."""
        try:
            self.end()
        finally:
            for holder in self.holders:
                holder.close()
            self.holders.clear()
            self.ports.clear()


def _check(where: str, done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise RuntimeError(f"{where}\nexit code {done.returncode}\n{done.stdout}{done.stderr}")


def _answers(scheme: str, port: str) -> bool:
    address, trusting = f"{scheme}://127.0.0.1:{port}/healthz", ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(address, timeout=LIMIT, context=trusting):
            return True
    except OSError:
        return False


def run_page(
    page: Path,
    folder: Path,
    *,
    sections: Collection[str] = (),
    python: str | None = None,
    times: int = 1,
    long: bool = False,
    forked: bool = False,
) -> int:
    """Run the blocks of a document in a folder.

    Args:
        page: the document.
        folder: an empty folder.
        sections: only the blocks under these headings; by default all.
        python: see `Session`.
        times: run the document this many times in the same folder; what takes long, once.
        long: also run what only `make test-long` runs.
        forked: see `Session`.

    Returns:
        The number of visible blocks that were run.
    """
    chosen = [
        block for block in blocks(page) if block.is_run and (long or "long" not in block.marks)
    ]
    if sections:
        chosen = [block for block in chosen if block.section in sections]
    done = 0
    with contextlib.closing(Session(folder, python, forked)) as session:
        for again in range(times):
            for block in chosen:
                if again and (block.hidden or {"once", "long"} & set(block.marks)):
                    continue
                if os.environ.get("DO_NOT_TRACK") and "not under DO_NOT_TRACK" in block.marks:
                    continue
                session.run(block)
                done += not block.hidden
            session.end()
    return done


def main() -> None:
    """Run the documents that are named on the command line."""
    parser = argparse.ArgumentParser(description="Run the code blocks of a document.")
    parser.add_argument("page", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="an empty folder to run it in")
    parser.add_argument("--section", action="append", default=[], help="only under this heading")
    parser.add_argument("--python", help="the interpreter for the programs")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--long", action="store_true", help="also what takes long")
    parser.add_argument("--forked", action="store_true", help="start commands faster")
    given = parser.parse_args()
    folder = given.folder.resolve()
    # The command of this environment is the first that a shell finds.
    bin_folder = Path(sys.executable).parent
    os.environ["PATH"] = f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"
    done = run_page(
        given.page.resolve(),
        folder,
        sections=given.section,
        python=given.python,
        times=given.times,
        long=given.long,
        forked=given.forked,
    )
    print(f"{given.page.name}: {done} blocks run", file=sys.stderr)


if __name__ == "__main__":
    main()
