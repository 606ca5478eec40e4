"""A backup of a data folder in one file: the store, and the other databases next to it.

The file is a ZIP archive without compression: `backup.json`, which has the SHA-256 of each other
member, then the databases. Files next to the store are copied first, so that none of them is ahead
of the store. A backup of the store alone, as earlier versions wrote it, is restored too.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from rappor.errors import StoreBroken, StoreError, StoreFull
from rappor.store import released
from rappor.store.contract import Store
from rappor.store.open import FILE_NAME, restore_store
from rappor.store.sqlite import backup as sqlite_backup
from rappor.store.sqlite.connection import FAILURES, translated, translating
from rappor.store.sqlite.session import sync_file, sync_folder

FORMAT = 1
MANIFEST = "backup.json"
_CHUNK = 2**20
_WITHOUT = "move it away to make a backup without it"


@dataclass(frozen=True, slots=True)
class Companion:
    """A database next to the store that a backup carries.

    Attributes:
        name: the name of its file.
        application_id: SQLite's application id of such files.
        left_out: statements that delete from the copy what a backup does not carry.
        figures: what to say about a copy: a noun, and the query of its number.
        replaceable: whether a file in the folder is kept instead of the backup's; otherwise it is a
            reason to refuse.
    """

    name: str
    application_id: int
    left_out: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict)
    replaceable: bool = False


# A newer file in the folder says what pages have shown already: it stays.
RELEASED = Companion(released.FILE_NAME, released.APPLICATION_ID, replaceable=True)


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """One database in a backup: its name, its size in bytes, and the figures of a `Companion`."""

    name: str
    size: int
    figures: Mapping[str, int] = field(default_factory=dict)


def write_archive(
    store: Store, folder: Path | None, target: Path, companions: Iterable[Companion]
) -> list[ArchivedFile]:
    """Copy a store, which may be in use, and its companions in a folder to one file.

    The file's folder is made, for its owner only; it is removed again if the backup fails.
    Every copy is verified, and the archive is read back and synced, before it gets its name. An
    older backup of that name is replaced.

    Raises:
        StoreError: a file is damaged, or the target is a file that a store uses.
    """
    if folder is None:
        sqlite_backup.check_no_store(target)
    else:
        sqlite_backup.check_target(folder / FILE_NAME, target)
    with sqlite_backup.folder_of(target), _workspace(target.parent, target, target) as place:
        files = []
        if folder is not None:
            files = [
                _copy(companion, folder / companion.name, place / companion.name, target)
                for companion in companions
                if (folder / companion.name).exists()
            ]
        store.backup(place / FILE_NAME)
        files.append(ArchivedFile(FILE_NAME, (place / FILE_NAME).stat().st_size))
        archive = place / "archive"
        _pack(place, [file.name for file in files], archive)
        sync_file(archive)
        os.replace(archive, target)
    sync_folder(target.parent)
    return files


def restore_archive(
    source: Path,
    folder: Path | None,
    companions: Iterable[Companion],
    *,
    store_only: bool = False,
    url: str | None = None,
) -> list[ArchivedFile]:
    """Verify a backup and put its files into a folder that has no store.

    Args:
        source: the backup.
        folder: the data folder; made if missing. None: restore the store and nothing else.
        companions: the databases next to the store.
        store_only: restore the store and nothing else.
        url: an empty database for the store; None if the folder says where it is.

    Returns:
        The files that were restored.

    Raises:
        StoreError: there is a store or a companion, or the backup is damaged. Nothing is changed
            then.
    """
    target: str | Path = url or folder or ""
    if not zipfile.is_zipfile(source):  # a store alone, or no backup at all
        restore_store(source, target)
        return [ArchivedFile(FILE_NAME, source.stat().st_size)]
    known = {} if store_only or folder is None else {item.name: item for item in companions}
    base = Path(tempfile.gettempdir()) if folder is None else folder
    with sqlite_backup.folder_of(base / FILE_NAME), _workspace(base, base, source) as place:
        digests = _unpack(source, place, [FILE_NAME, *known])
        placed: list[Path] = []
        files: list[ArchivedFile] = []
        size = (place / FILE_NAME).stat().st_size
        try:
            for name, companion in known.items():
                if name not in digests or _stays(companion, base / name):
                    continue
                files.append(_inspect(companion, place / name, source, sqlite_backup.ANOTHER))
                _put(place / name, base / name)
                placed.append(base / name)
            restore_store(place / FILE_NAME, target)
        except BaseException:
            for path in placed:
                path.unlink(missing_ok=True)
            raise
    sync_folder(base)
    return [*files, ArchivedFile(FILE_NAME, size)]


def _stays(companion: Companion, path: Path) -> bool:
    """Whether a file in the folder is kept; StoreError if it is in the way."""
    if path.exists() and not companion.replaceable:
        raise StoreError(
            f"{path}: exists already; move it away, or keep it and restore the store alone with "
            "--store-only"
        )
    return path.exists()


def _copy(companion: Companion, source: Path, copy: Path, target: Path) -> ArchivedFile:
    """A verified snapshot of a companion without what is left out; a full disk names the target."""
    with (
        translating(target),
        _damage(source, _WITHOUT),
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True)) as reader,
        closing(sqlite3.connect(copy, isolation_level=None)) as writer,
    ):
        reader.backup(writer)
        writer.execute("PRAGMA secure_delete=ON").fetchall()
        for statement in companion.left_out:
            writer.execute(statement)
        writer.execute("PRAGMA journal_mode=DELETE").fetchone()  # one file without a log
    return _inspect(companion, copy, source, _WITHOUT)


@contextmanager
def _damage(name: Path, way_out: str) -> Iterator[None]:
    """Turn errors of SQLite about a companion into StoreError; those of the disk stay."""
    try:
        yield
    except FAILURES as error:
        meaning = translated(error, name)
        if isinstance(meaning, (StoreFull, StoreBroken)):
            raise
        if type(meaning) is StoreError:
            meaning = StoreError(f"{name}: damaged, or of another program ({error}); {way_out}")
        raise meaning from error


def _inspect(companion: Companion, copy: Path, name: Path, way_out: str) -> ArchivedFile:
    """Verify a copy of a companion and read its figures.

    Args:
        companion: the kind of database.
        copy: the file.
        name: the file that is damaged if the copy is.
        way_out: what to do then.
    """
    with (
        translating(name),
        _damage(name, way_out),
        closing(sqlite3.connect(copy, isolation_level=None)) as connection,
    ):
        (found,) = connection.execute("PRAGMA application_id").fetchone()
        wrong = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
        if wrong != ["ok"]:
            raise StoreError(f"{name}: damaged ({wrong[0]}); {way_out}")
        if found != companion.application_id:
            raise StoreError(f"{name}: {companion.name} is of another program; {way_out}")
        figures = {
            noun: int(connection.execute(query).fetchone()[0])
            for noun, query in companion.figures.items()
        }
    return ArchivedFile(companion.name, copy.stat().st_size, figures)


def _pack(place: Path, names: list[str], archive: Path) -> None:
    """Write the archive and read it back; each database is deleted when it is in the archive."""
    digests = {}
    for name in names:
        with (place / name).open("rb") as file:
            digests[name] = _digest(file)
    os.close(os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as pack:
        pack.writestr(MANIFEST, json.dumps({"format": FORMAT, "sha256": digests}, indent=2))
        for name in names:
            pack.write(place / name, name)
            (place / name).unlink()
    with zipfile.ZipFile(archive) as pack:
        for name in names:
            with pack.open(name) as member:
                if _digest(member) != digests[name]:
                    raise StoreError(f"{name}: the disk returned other bytes than were written")


def _unpack(source: Path, place: Path, names: list[str]) -> dict[str, str]:
    """Extract the named databases that an archive has, or StoreError if it is damaged."""
    try:
        with zipfile.ZipFile(source) as pack:
            manifest = json.loads(pack.read(MANIFEST))
            if manifest["format"] != FORMAT:
                raise StoreError(f"{source}: written by a newer rappor; restore it with that one")
            digests: dict[str, str] = manifest["sha256"]
            for name in names:
                if name in digests:
                    _extract(pack, name, place / name)
                    with (place / name).open("rb") as copied:
                        if _digest(copied) != digests[name]:
                            raise ValueError(f"{name} has another checksum")
                    sync_file(place / name)
    except (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError, EOFError) as error:
        raise StoreError(
            f"{source}: damaged, not a complete backup ({error}); {sqlite_backup.ANOTHER}"
        ) from None
    if not (place / FILE_NAME).exists():
        raise StoreError(f"{source}: damaged, it has no store; {sqlite_backup.ANOTHER}")
    return digests


def _extract(pack: zipfile.ZipFile, name: str, target: Path) -> None:
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with pack.open(name) as member, target.open("wb") as file:
        shutil.copyfileobj(member, file, _CHUNK)


def _put(source: Path, target: Path) -> None:
    """Give a file its name. Unlike a rename, this fails if a file of that name exists."""
    try:
        os.link(source, target)
    except FileExistsError:
        raise StoreError(f"{target}: exists already; move it away") from None


def _digest(file: IO[bytes]) -> str:
    hashed = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        hashed.update(chunk)
    return hashed.hexdigest()


@contextmanager
def _workspace(folder: Path, target: Path, backup: Path) -> Iterator[Path]:
    """A folder for its owner only, on the same disk, which is deleted at the end.

    Its name means nothing to users: errors of the system name the target, and errors about a
    database in it name the backup.
    """
    place = folder / f".{target.name}.{os.getpid()}.part"
    try:
        place.mkdir(mode=0o700)
        yield place
    except OSError as error:
        if error.filename is None or str(error.filename).startswith(str(place)):
            error.filename, error.filename2 = str(target), None
        raise
    except StoreError as error:
        text = str(error)
        for inner in (f"{place / FILE_NAME}", f"{place}"):
            text = text.replace(inner, str(backup))
        raise type(error)(text) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
