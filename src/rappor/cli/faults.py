"""What goes wrong: the exit code and the sentence for every error. The only copy of this rule.

| code | means | examples |
|---|---|---|
| 0 | done | |
| 1 | failure: the machine could not do it | disk full, no permission, closed pipe, busy store |
| 2 | usage: the options do not fit | unknown or missing options |
| 3 | invalid input: a file or a number is wrong | missing, empty, damaged, exists already |
| 4 | with --exit-code: nothing was detected, or nothing differs | |
| 130 | interrupted by Ctrl-C | |

After 1, the same command can work later or elsewhere; after 2 and 3, something in it must change.
`collection lint`, `collection diff`, `status`, `upgrade`, `reproduce` and `run` also exit with 1
after a negative answer: an error in a definition, a change that is refused, a damaged store,
something to do first, a failed experiment, a failed decode.
"""

from __future__ import annotations

import errno
import os

from rappor.cli.arguments import UsageError
from rappor.cli.start import INTERRUPTED
from rappor.demo import DemoError
from rappor.errors import (
    DecodeError,
    EntropyError,
    LedgerError,
    MissingExtraError,
    ParamsError,
    RapporError,
    StoreBroken,
    StoreBusy,
    StoreFull,
    StoreLost,
    StoreRefused,
    StoreUnavailable,
    UnsupportedSystemError,
)

FAILURE, USAGE, INVALID_INPUT = 1, 2, 3
STANDARD_OUTPUT = "standard output"
INTERRUPTION = "interrupted; no file is left half-written; run the command again to finish"

_MACHINE = (
    DemoError,
    EntropyError,
    LedgerError,
    MissingExtraError,
    StoreBroken,
    StoreBusy,
    StoreFull,
    StoreLost,
    StoreRefused,
    StoreUnavailable,
    UnsupportedSystemError,
)
_WRONG_PATH = {
    errno.ENOENT: "no such file or folder; check the path",
    errno.ENOTDIR: "a part of this path is a file, not a folder; check the path",
    errno.EISDIR: "this is a folder; name a file",
    errno.EEXIST: "exists already; choose another name",
    errno.ENAMETOOLONG: "this name is too long; choose a shorter one",
    errno.ELOOP: "its links lead in a circle; name the file itself",
}
_REFUSED = {
    errno.EACCES: "permission denied; change its permissions, or choose another place",
    errno.EPERM: "permission denied; change its permissions, or choose another place",
    errno.EROFS: "the file system is read-only; choose another place",
    errno.ENOSPC: "no room on the disk; free some, or choose another place",
    errno.EDQUOT: "your quota of the disk is used up; free some, or choose another place",
    errno.EFBIG: "larger than the file system or `ulimit -f` allows; choose another place",
    errno.EIO: "the disk failed; check it, or choose another place",
    errno.EPIPE: "its reader closed the pipe; what was left is not written",
    errno.EBADF: "it is closed; redirect it to a file, or to /dev/null",
    errno.EMFILE: "too many open files; allow more with `ulimit -n`",
    errno.EADDRINUSE: "this address is in use; choose another port",
}


def exit_code(error: BaseException) -> int:
    """The exit code of the command that this error ends."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, UsageError):
        return USAGE
    cause = _system_error(error)
    if cause is not None:
        return INVALID_INPUT if cause.errno in _WRONG_PATH else FAILURE
    if isinstance(error, (*_MACHINE, MemoryError)):
        return FAILURE
    return INVALID_INPUT if isinstance(error, RapporError) else FAILURE


def sentence(error: BaseException) -> str:
    """What is wrong with which file, and the way out, in one sentence."""
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTION
    if isinstance(error, MemoryError):
        return "not enough memory: is an input damaged or far too large? Give a smaller one"
    cause = _system_error(error)
    if cause is None:
        return str(error)
    number = cause.errno or 0
    words = _WRONG_PATH.get(number) or _REFUSED.get(number) or _plain(cause)
    name = _name(cause)
    return words if name is None else f"{name}: {words}"


def _system_error(error: BaseException) -> OSError | None:
    """The error of the system: this one, or the one that an error about a file was made from."""
    if isinstance(error, OSError):
        return error
    cause = error.__cause__ if type(error) in (ParamsError, DecodeError) else None
    return cause if isinstance(cause, OSError) and cause.filename is not None else None


def _name(error: OSError) -> str | None:
    """The file; what names none is standard output, because `rappor.files` names its files."""
    if isinstance(error.filename, (str, bytes, os.PathLike)):
        return os.fsdecode(error.filename)
    outputs = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EBADF)
    return STANDARD_OUTPUT if error.errno in outputs else None


def _plain(error: OSError) -> str:
    """The system's words without its number."""
    text = error.strerror or str(error)
    return f"{text[:1].lower()}{text[1:]}" if text else "the system gave no reason"
