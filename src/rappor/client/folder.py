"""Folder: a client's directory, in which a crash leaves each file old or new, never half-written.

A file is written under another name, synced and renamed; then the directory is synced. Only the
owner can read it. Lock files keep threads and processes apart. `seal` puts a checksum in front of a
file's content, so that a damaged file is recognised and never used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

_NEW = ".new-"  # how the names of unfinished files begin
_AT_ONCE = getattr(os, "O_NONBLOCK", 0) | getattr(
    os, "O_BINARY", 0
)  # opening a pipe must not block
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


_numbers = itertools.count()


class Busy(OSError):
    """Another process has held the lock for too long."""


class Disk(Protocol):
    """What a client needs from its directory. Names are relative, with / between parts."""

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None if it does not exist."""

    def exists(self, name: str) -> bool:
        """Whether an entry of this name exists, of any kind, readable or not."""

    def create(self, name: str, data: bytes) -> None:
        """Write a new file, durably and atomically; FileExistsError if it exists."""

    def replace(self, name: str, data: bytes) -> None:
        """Write a file, durably and atomically: after a crash it is the old or the new one."""

    def move(self, old: str, new: str) -> None:
        """Rename a file, atomically."""

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""

    def names(self, folder: str) -> list[str]:
        """The files of a folder, sorted, with the folder's name; none if it does not exist."""

    def lock(self, name: str, wait: float) -> AbstractContextManager[None]:
        """Hold a lock against all other threads and processes; `Busy` after `wait` seconds."""


class Folder:
    """The real directory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Take the path; nothing is written yet."""
        self.path = Path(path).expanduser()
        self._held: set[int] = set()

    def read(self, name: str) -> bytes | None:
        """The bytes of a file, or None; other users lose the right to read it."""
        try:
            descriptor = os.open(self.path / name, os.O_RDONLY | _AT_ONCE)
        except FileNotFoundError:
            if self.exists(name):
                raise OSError(errno.EINVAL, "a broken link") from None
            return None
        with os.fdopen(descriptor, "rb") as file:
            _check_ours(descriptor)
            return file.read()

    def exists(self, name: str) -> bool:
        """Whether an entry of this name exists; a broken link and a folder count too."""
        try:
            os.lstat(self.path / name)
        except FileNotFoundError:
            return False
        return True

    def create(self, name: str, data: bytes) -> None:
        """Write a new file, durably and atomically; FileExistsError if it exists."""
        target = self.path / name
        unfinished = self._write(target, data)
        try:
            try:
                os.link(unfinished, target)  # atomic, and never over another file
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
                if target.exists():
                    raise FileExistsError(errno.EEXIST, "file exists", str(target)) from None
                os.rename(unfinished, target)
        finally:
            with contextlib.suppress(OSError):
                unfinished.unlink()
        _sync_folder(target.parent)

    def replace(self, name: str, data: bytes) -> None:
        """Write a file, durably and atomically: after a crash it is the old or the new one."""
        target = self.path / name
        unfinished = self._write(target, data)
        try:
            os.replace(unfinished, target)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        _sync_folder(target.parent)

    def move(self, old: str, new: str) -> None:
        """Rename a file, atomically."""
        target = self.path / new
        _make(target.parent)
        os.replace(self.path / old, target)
        _sync_folder(target.parent)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there; a crash does not bring it back."""
        target = self.path / name
        with contextlib.suppress(FileNotFoundError):
            target.unlink()
            _sync_folder(target.parent)

    def names(self, folder: str) -> list[str]:
        """The files of a folder, sorted, with the folder's name; none if it does not exist."""
        prefix = f"{folder}/" if folder else ""
        try:
            with os.scandir(self.path / folder) as entries:
                return sorted(
                    prefix + entry.name
                    for entry in entries
                    if entry.is_file(follow_symlinks=False) and not entry.name.startswith(_NEW)
                )
        except FileNotFoundError:
            return []

    @contextlib.contextmanager
    def lock(self, name: str, wait: float) -> Iterator[None]:
        """Hold a lock against all other threads and processes; `Busy` after `wait` seconds."""
        _make(self.path)
        descriptor = os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600)
        self._held.add(descriptor)
        try:
            _acquire(lambda: _try_lock(descriptor), wait)
            try:
                yield
            finally:
                _unlock(descriptor)  # explicitly: a forked child may hold a copy of the descriptor
        finally:
            self._held.discard(descriptor)
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def after_fork(self) -> None:
        """In the child: close the parent's lock files without releasing the locks."""
        for descriptor in self._held:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._held = set()

    def _write(self, target: Path, data: bytes) -> Path:
        """Write the bytes to a synced, unfinished file in the target's folder."""
        _make(target.parent)
        unfinished, descriptor = _unfinished(target.parent)
        try:
            with os.fdopen(descriptor, "wb", closefd=True) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        return unfinished

    def sweep(self, older_than: float = 3600) -> None:
        """Remove unfinished files that crashes left; recent ones may still be in use."""
        for folder in ("", "outbox", "sent", "once"):
            with contextlib.suppress(OSError), os.scandir(self.path / folder) as entries:
                for entry in entries:
                    if (
                        entry.name.startswith(_NEW)
                        and time.time() - entry.stat().st_mtime > older_than
                    ):
                        os.unlink(entry.path)


def _unfinished(folder: Path) -> tuple[Path, int]:
    """A new file. Its name is not random: opting out must work without randomness."""
    while True:
        path = folder / f"{_NEW}{os.getpid()}-{next(_numbers)}"
        with contextlib.suppress(FileExistsError):  # an earlier process with this id left it
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _make(path: Path) -> None:
    """Make the directory, for the owner only; it and all new parents are synced."""
    if path.is_dir():
        return
    made = [path]
    while not made[-1].parent.is_dir():
        made.append(made[-1].parent)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in made:
        with contextlib.suppress(OSError):
            _sync_folder(folder.parent)


def _check_ours(descriptor: int) -> None:
    """Refuse what is not a file, or belongs to another user; make our own files private."""
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a file")
    if sys.platform == "win32":
        return
    user = os.geteuid()
    if user and found.st_uid not in (user, 0):
        raise PermissionError(errno.EPERM, "the file belongs to another user")
    if found.st_uid == user and found.st_mode & 0o077:
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, 0o600)


def _sync_folder(path: Path) -> None:
    if sys.platform == "win32":  # directories cannot be synced there; renames are journalled
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _acquire(attempt: Callable[[], bool], wait: float) -> None:
    deadline = time.monotonic() + wait
    pause = 0.001
    while not attempt():
        if time.monotonic() >= deadline:
            raise Busy(errno.EAGAIN, "another process holds the lock")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


if sys.platform == "win32":  # pragma: no cover - the tests run elsewhere
    import msvcrt

    def _try_lock(descriptor: int) -> bool:
        try:
            os.lseek(descriptor, 0, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def seal(kind: str, body: bytes) -> bytes:
    """The body under a line that names its kind and its SHA-256.

    >>> unseal("note", seal("note", b"text"))
    b'text'
    """
    return f"rappor-{kind}-v1 {_checksum(kind, body)}\n".encode("ascii") + body


def unseal(kind: str, data: bytes) -> bytes | None:
    """The body, or None if a single bit is wrong, missing or too many.

    >>> unseal("note", seal("note", b"text")[:-1]) is None
    True
    """
    body = data.partition(b"\n")[2]
    return body if data == seal(kind, body) else None


def _checksum(kind: str, body: bytes) -> str:
    return hashlib.sha256(f"rappor {kind} ".encode("ascii") + body).hexdigest()
