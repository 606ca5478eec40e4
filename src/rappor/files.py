"""Atomic writes: a file is the old one or the new one, never half of either.

All commands and servers write their files here. Two packages have writers of their own, because
they need more: `client.folder` also syncs the directory, so that a ledger never goes back after a
power cut, and `store.sqlite.backup` verifies a copy before it gets its name.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

STANDARD_INPUT = "-"  # the name that stands for it where a file can be given


@contextmanager
def replacing(target: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a path to write to; when the block ends, what was written there replaces `target`.

    The new file is synced before it replaces the old one, and gets the old one's permissions. If
    anything fails (a full disk, Ctrl-C), the new file is removed and the old one stays as it was. A
    pipe or a device is written directly.

    Args:
        target: the file to replace or create.
        private: let only the owner read and write the new file.
    """
    if target.exists() and not target.is_file():
        yield target
        return
    draft = target.with_name(f".{target.stem}.{os.getpid()}{target.suffix}")
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    try:
        if private or mode is not None:  # the draft is as private as the file
            draft.unlink(missing_ok=True)  # left by a killed process with the same number
            os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield draft
        _sync(draft)
        if mode is not None and not private:
            draft.chmod(mode)
        os.replace(draft, target)
    except BaseException as error:
        with suppress(OSError):  # a read-only disk refuses even this
            draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno and error.filename in (None, str(draft)):
            error.filename = str(target)  # the draft's name means nothing to users
        raise


def write_text(target: Path, text: str, *, private: bool = False) -> None:
    """Replace a file by one with this text, in UTF-8 and as it is."""
    with replacing(target, private=private) as draft:
        draft.write_text(text, encoding="utf-8", newline="")


def write_bytes(target: Path, data: bytes, *, private: bool = False) -> None:
    """Replace a file by one with these bytes."""
    with replacing(target, private=private) as draft:
        draft.write_bytes(data)


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
