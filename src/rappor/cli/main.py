"""The command line: parser, dispatch, and the one place where errors become messages.

Exit codes: 0 success, 1 failure, 2 usage, 3 invalid input.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from rappor._version import __version__
from rappor.cli import completion, demo, encode, explain, privacy
from rappor.errors import EncodeError, ParamsError, RapporError, WireError

FAILURE, USAGE, INVALID_INPUT, INTERRUPTED = 1, 2, 3, 130

_VERBS = (privacy, explain, encode, demo, completion)


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the way to help."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\n  see: {self.prog} --help\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = _Parser(
        prog="rappor",
        description="Statistics about users without data about any user (RAPPOR, CCS 2014).",
        epilog="Results go to standard output, everything else to standard error. "
        "Exit codes: 0 success, 1 failure, 2 usage, 3 invalid input.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"rappor {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, title="verbs")
    for module in _VERBS:
        verb = module.register(verbs)
        verb.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    args = build_parser().parse_args(argv)
    try:
        result: int = args.run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has seen enough (`| head`). Keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except (RapporError, OSError) as error:
        if args.debug:
            raise
        print(f"rappor {args.verb}: {_message(error)}", file=sys.stderr)
        invalid = isinstance(error, (ParamsError, EncodeError, WireError, FileNotFoundError))
        return INVALID_INPUT if invalid else FAILURE
    return result


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)
