"""The real command in a real process."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

COMMAND = (sys.executable, "-m", "rappor")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what changes how a command prints."""
    meddlers = {"COLUMNS", "LINES", "NO_COLOR", "PYTHONIOENCODING", "TERM"}
    kept = {name: value for name, value in os.environ.items() if name not in meddlers}
    return kept | {"PYTHONUTF8": "1"} | dict(extra or {})


def rappor(
    *arguments: str | bytes | Path,
    stdin: str | bytes = b"",
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `rappor ARGUMENTS` to its end; its output is decoded as UTF-8."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        capture_output=True,
        env=environment(env),
        timeout=60,
        check=False,
    )
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )
