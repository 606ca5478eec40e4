"""Backup and restore: a copy is complete, verified and synced before it gets its name.

`rappor.files` is not enough here: a copy is verified first, and a restore never replaces a store.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from rappor.errors import StoreBusy, StoreError
from rappor.store.sqlite import commits, integrity, schema
from rappor.store.sqlite.connection import FAILURES, connect, translated, translating
from rappor.store.sqlite.session import sync_file, sync_folder
from rappor.store.sqlite.store_lock import StoreLock

ANOTHER = "restore another backup"  # the way out if a backup is damaged
_PIECE = 2**20  # bytes


def backup(source: Path, target: Path) -> None:
    """Copy a store, which may be in use, to one file; replace an older backup of that name."""
    check_target(source, target)
    with _new_file_for(target) as copy:
        with translating(source):
            reader = connect(source, True)
        with (
            translating(target),
            closing(reader),
            closing(sqlite3.connect(copy, isolation_level=None)) as writer,
        ):
            _copy_pages(reader, writer, source)
            commits.finish(writer)  # nobody writes to a copy
            writer.execute("PRAGMA journal_mode=DELETE").fetchone()  # one file without a log
        verify(copy, target, "check the disk, and make it again")
        sync_file(copy)
        os.replace(copy, target)
    sync_folder(target.parent)


def restore(source: Path, target: Path) -> None:
    """Put a backup where there is no store.

    Raises:
        StoreError: there is a store, or the backup is damaged; nothing is changed then.
    """
    if source.is_dir():
        raise StoreError(f"{source}: this is a folder; name the file that `rappor backup` wrote")
    if not source.exists():
        raise StoreError(f"{source}: there is no backup; check the path")
    for name in (target, *(Path(f"{target}{end}") for end in ("-wal", "-shm", "-journal"))):
        if name.exists():
            raise StoreError(
                f"{name} exists already: a backup is not restored over a store; move it away first"
            )
    _check_not_open(target)
    with folder_of(target), _new_file_for(target) as copy:
        with source.open("rb") as data, copy.open("wb") as written:
            shutil.copyfileobj(data, written, _PIECE)  # unlike copyfile, whose errors name `source`
        verify(copy, source, ANOTHER)
        sync_file(copy)
        Path(f"{target}{commits.ENDING}").unlink(missing_ok=True)  # of an earlier store
        try:
            os.link(copy, target)  # unlike a rename, fails if a store was made meanwhile
        except FileExistsError:
            raise StoreError(f"{target} exists already") from None
    sync_folder(target.parent)


def check_target(source: Path, target: Path) -> None:
    """StoreError if a backup cannot have that name."""
    if target.exists() and not target.is_file():
        raise StoreError(f"{target}: not a file")
    if target.exists() and source.exists() and os.path.samefile(source, target):
        raise StoreError(f"{target}: that is the store itself")
    check_no_store(target)


def check_no_store(target: Path) -> None:
    """StoreError if a copy of that name would replace a file that a store uses."""
    ends = ("-wal", "-shm", "-journal", commits.ENDING)
    used = target.name.endswith((*ends, ".lock")) or target.with_suffix(".lock").exists()
    if used or any(Path(f"{target}{end}").exists() for end in ends):
        raise StoreError(f"{target}: a store uses this name; choose another for the backup")


def _check_not_open(target: Path) -> None:
    """StoreError if a process still writes to a store whose files were deleted."""
    file = target.with_suffix(".lock")
    if not file.exists():
        return
    lock = StoreLock(file, read_only=False)
    try:
        if lock.works and not lock.alone():
            raise StoreBusy(f"{target}: a process still has the former store open; stop it first")
    finally:
        lock.close()


def _copy_pages(reader: sqlite3.Connection, writer: sqlite3.Connection, source: Path) -> None:
    """Copy in one step: a snapshot, even if others write. Damage names the store, not the copy."""
    try:
        reader.backup(writer)
    except FAILURES as error:
        code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_BUSY):
            raise translated(error, source) from error
        raise


def verify(copy: Path, name: Path, way_out: str) -> None:
    """StoreError unless a copy is complete and undamaged; the error calls it by this name."""
    with translating(name, way_out), closing(connect(copy, True)) as connection:
        version = schema.version_of(connection)
        if version == len(schema.MIGRATIONS):
            wrong = integrity.problems(connection)
        else:  # of an older rappor; opening it for writing upgrades it
            wrong = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            wrong = [line for line in wrong if line != "ok"]
            if not 0 < version < len(schema.MIGRATIONS):
                what = f"schema {version} is not known to this rappor" if version else "no store"
                wrong.append(what)
    if wrong:
        raise StoreError(f"{name}: damaged, not a complete copy ({wrong[0]}); {way_out}")


@contextmanager
def folder_of(target: Path) -> Iterator[None]:
    """Make the folder; remove it again if nothing can be put into it."""
    new = [folder for folder in target.parents if not folder.exists()]
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # it is not empty: not only we use it
            for folder in new:
                folder.rmdir()
        raise


@contextmanager
def _new_file_for(target: Path) -> Iterator[Path]:
    """A new file for its owner only; it is deleted at the end unless it was renamed.

    An error of the system names the target: the new file's name means nothing to users.
    """
    copy = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        yield copy
    except OSError as error:
        if error.filename in (None, str(copy)):
            error.filename, error.filename2 = str(target), None
        raise
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            with suppress(OSError):  # a read-only disk refuses even this
                Path(f"{copy}{end}").unlink(missing_ok=True)
