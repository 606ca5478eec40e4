"""The real command in a process of its own."""

import atexit
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import TextIO, cast

COMMAND = (sys.executable, "-m", "rappor")
LIMIT = 300  # seconds: ends a command that hangs, says nothing about how fast one is

_STRICT = {"PYTHONWARNINGS": "error"}  # the one setting of the interpreter that a fork can follow


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what changes how a command prints."""
    meddlers = {"COLUMNS", "LINES", "NO_COLOR", "PYTHONIOENCODING", "TERM"}
    kept = {name: value for name, value in os.environ.items() if name not in meddlers}
    return kept | {"PYTHONUTF8": "1"} | dict(extra or {})


def rappor(
    *arguments: str | bytes | Path,
    stdin: str | bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    fresh: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `rappor ARGUMENTS` to its end; its output is decoded as UTF-8.

    Args:
        arguments: What follows `rappor` on the command line.
        stdin: What the command reads.
        env: Changes of the environment. Settings of the interpreter need a fresh one.
        cwd: Where the command runs; here if None.
        fresh: Start a new interpreter instead of forking one that has made the imports.
    """
    argv = [os.fsdecode(argument) for argument in arguments]
    data = stdin.encode() if isinstance(stdin, str) else stdin
    changes = dict(env or {})
    settings = {name: value for name, value in changes.items() if name.startswith("PYTHON")}
    run = _started if fresh or settings not in ({}, _STRICT) else _forked
    code, out, err = run(argv, data, environment(changes), cwd or Path.cwd())
    return subprocess.CompletedProcess([*COMMAND, *argv], code, out.decode(), err.decode())


def _started(
    argv: Sequence[str], stdin: bytes, env: dict[str, str], cwd: Path
) -> tuple[int, bytes, bytes]:
    """Run the command in a new interpreter."""
    done = subprocess.run(
        [*COMMAND, *argv],
        input=stdin,
        capture_output=True,
        env=env,
        cwd=cwd,
        timeout=LIMIT,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@cache
def _server() -> ForkServerContext:
    """The interpreter that commands are forked from, one for each test process.

    Most of a short command's time goes into imports; this one has made them.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["support.command_imports"])
    outside = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1])
    try:
        forkserver.ensure_running()
    finally:
        del os.environ["PYTHONPATH"]
        if outside is not None:
            os.environ["PYTHONPATH"] = outside
    return context


def _forked(
    argv: Sequence[str], stdin: bytes, env: dict[str, str], cwd: Path
) -> tuple[int, bytes, bytes]:
    """Run the command in a fork of an interpreter that has made the imports."""
    context = _server()
    with tempfile.TemporaryDirectory(prefix="rappor-command-") as folder:
        files = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        files[0].write_bytes(stdin)
        process = context.Process(target=_command, args=(list(argv), env, cwd, files))
        process.start()
        process.join(LIMIT)
        if process.exitcode is None:
            process.kill()
            process.join()
            raise TimeoutError(f"rappor {' '.join(argv)}: still running after {LIMIT} s")
        code = process.exitcode
        process.close()
        return code, files[1].read_bytes(), files[2].read_bytes()


def _command(argv: list[str], env: dict[str, str], cwd: Path, files: list[Path]) -> None:
    """Become `python -m rappor ARGV`: streams, directory, environment and warnings."""
    modes = (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT | os.O_APPEND] * 2)
    for number, (file, mode) in enumerate(zip(files, modes, strict=True)):
        opened = os.open(file, mode, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = _text(0, "r")
    sys.stdout = _text(1, "w")
    sys.stderr = _text(2, "w", errors="backslashreplace")
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd)
    if "PYTHONWARNINGS" in env:
        warnings.simplefilter("error")
    sys.argv = ["rappor", *argv]
    try:
        runpy.run_module("rappor", run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()  # a forked process of multiprocessing leaves them out


def _text(number: int, mode: str, errors: str = "strict") -> TextIO:
    return cast(TextIO, open(number, mode, encoding="utf-8", errors=errors, closefd=False))
