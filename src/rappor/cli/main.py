"""The command line: parser and dispatch. `rappor.cli.faults` has the exit codes and sentences."""

from __future__ import annotations

import argparse
import errno
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO, cast

from rappor._version import __version__
from rappor.checks import did_you_mean
from rappor.cli import (
    access,
    aggregate,
    associate,
    attack,
    backup,
    candidates,
    client,
    collect,
    collection,
    compare,
    completion,
    dashboard,
    decode,
    demo,
    encode,
    explain,
    export,
    import_reports,
    keys,
    lake,
    plan,
    privacy,
    reproduce,
    retain,
    run,
    serve,
    simulate,
    status,
    upgrade,
)
from rappor.cli.faults import STANDARD_OUTPUT, USAGE, exit_code, sentence
from rappor.cli.output import note, showable
from rappor.cli.roles import ROLES
from rappor.errors import RapporError, StoreError

_VERBS = (
    privacy.register,
    plan.register,
    explain.register,
    encode.register,
    aggregate.register,
    candidates.register,
    decode.register,
    compare.register,
    run.register,
    associate.register,
    simulate.register,
    attack.register,
    reproduce.register,
    collection.register,
    client.register,
    collect.register,
    serve.register,
    dashboard.register,
    access.register,
    keys.register,
    status.register,
    import_reports.register,
    export.register,
    lake.register,
    retain.register,
    backup.register_backup,
    backup.register_restore,
    upgrade.register,
    demo.register,
    completion.register,
)


class _Parser(argparse.ArgumentParser):
    """Prints errors in one line, and help in characters that the terminal can show.

    An option has to be written in full: a shortened one would change its meaning when another is
    added.
    """

    def __init__(self, **named: Any) -> None:
        """As argparse makes one, without abbreviations."""
        super().__init__(**(named | {"allow_abbrev": False}))

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message}\n  see: {self.prog} --help\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            names = [str(choice) for choice in action.choices]
            hint = did_you_mean(value, names) or f" (choose from {', '.join(names)})"
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def _print_message(self, message: str, file: Any = None) -> None:
        stream: TextIO | None = file or sys.stderr
        if message and stream is not None:
            stream.write(showable(message, stream))


class _RootParser(_Parser):
    """The parser of the whole command: its help lists the verbs by role."""

    def format_help(self) -> str:
        """Usage, the options, the verbs of each role, and the exit codes."""
        (verbs,) = (a for a in self._actions if isinstance(a, argparse._SubParsersAction))
        listed = {action.dest: action for action in verbs._choices_actions}
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        grouped = [name for names in ROLES.values() for name in names]
        others = tuple(name for name in listed if name not in grouped)
        for role, names in (*ROLES.items(), *([("others", others)] if others else [])):
            formatter.start_section(role)
            formatter.add_arguments([listed[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments([action for action in self._actions if action.option_strings])
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = _RootParser(
        prog="rappor",
        description="Collect statistics about users without data about any single user (RAPPOR, "
        "CCS 2014).",
        epilog="Results go to standard output, everything else to standard error. "
        "Exit codes: 0 success, 1 failure of the machine (disk, permission, pipe), 2 usage, "
        "3 invalid input (a missing or wrong file, a number out of range), 130 interrupted. "
        "Start with: rappor demo; then rappor VERB --help.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"rappor {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    for register in _VERBS:
        verb = register(verbs)
        verb.add_argument("--debug", action="store_true", help="show the traceback of an error")
        verb.set_defaults(parser=verb)
    return parser


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; an error names the verb and suggests the nearest option."""
    parser = build_parser()
    args, unknown = parser.parse_known_args(argv)
    if args.verb is None:
        if unknown:
            parser.error(f"unrecognized arguments: {' '.join(map(_without_url, unknown))}")
        parser.print_help(sys.stderr)
        parser.exit(USAGE)
    if unknown:
        known = [option for action in args.parser._actions for option in action.option_strings]
        hint = did_you_mean(unknown[0].split("=")[0], known)
        args.parser.error(f"unrecognized arguments: {' '.join(map(_without_url, unknown))}{hint}")
    return args


def _without_url(word: str) -> str:
    """A word as a message may show it: a URL may hold a password that nobody can find in it."""
    before, mark, _ = word.partition("://")
    return f"{before}{mark}..." if mark else word


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    if sys.stdout is None:  # the caller closed it
        sys.stdout = cast(TextIO, ClosedOutput())
    # Before numpy is imported: for matrices as small as ours, several threads are slower than one.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if argv is None:
        hide_password()
    command, debug = "rappor", False
    try:
        try:
            args = parse(argv)
        except SystemExit:
            sys.stdout.flush()  # the help
            raise
        command, debug = f"rappor {args.verb}", args.debug
        result: int = args.run(args)
        sys.stdout.flush()
    except (RapporError, OSError, MemoryError, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        note(f"{command}: {sentence(error)}")
        try:
            sys.stdout.flush()
        except OSError:
            _give_up_output()
        return exit_code(error)
    return result


def hide_password() -> None:
    """Start again without the password of a URL: others can read the arguments of a process.

    It goes on in PGPASSWORD, which only the same user can read.
    """
    if not any("://" in word for word in sys.argv[1:]):
        return
    from rappor.store.url import SCHEMES, split_password

    words, secret = [], None
    for word in sys.orig_argv:
        option, equals, value = word.partition("=")
        if not (equals and option.startswith("--")):
            option, equals, value = "", "", word
        if value.partition("://")[0] in SCHEMES:
            try:
                value, found = split_password(value)
            except StoreError:  # which says what is wrong without a password, and ends
                return
            secret = found or secret
        words.append(option + equals + value)
    if secret is not None and words != sys.orig_argv:
        os.environ["PGPASSWORD"] = secret
        os.execv(sys.executable, [sys.executable, *words[1:]])  # noqa: S606 - the same command


class ClosedOutput(io.TextIOBase):
    """Standard output that the caller closed (`>&-`): a result has nowhere to go."""

    encoding = "utf-8"

    def __init__(self) -> None:
        """Take its number, so that no file that is opened later gets it."""
        self._taken = os.open(os.devnull, os.O_WRONLY)

    def write(self, _text: str) -> int:
        """Raise OSError."""
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), STANDARD_OUTPUT)

    @property
    def buffer(self) -> ClosedOutput:
        """The stream for bytes, closed as well."""
        return self


def _give_up_output() -> None:
    """Keep Python from complaining at exit about output that could not be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
