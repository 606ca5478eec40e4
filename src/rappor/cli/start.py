"""The first step of the command: import the rest, which Ctrl-C may interrupt."""

from __future__ import annotations

import sys

INTERRUPTED = 130  # the exit code after Ctrl-C


def main() -> int:
    """Run the command and return its exit code."""
    try:
        from rappor.cli.main import main as command
    except KeyboardInterrupt:  # nothing has been done yet
        if sys.stderr is not None:
            print("rappor: interrupted; nothing was done", file=sys.stderr)
        return INTERRUPTED
    return command()
