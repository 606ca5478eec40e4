"""`rappor upgrade --check --data DIR`: what has to be done before a new version starts.

It only reads. A store is upgraded by the first command of the new version that writes to it, and an
older version cannot read it then; so this runs with the new version, before the old one stops.
"""

from __future__ import annotations

import argparse
import platform
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rappor._version import __version__
from rappor.cli.arguments import UsageError, need_analysis
from rappor.cli.output import say, say_json, table
from rappor.cli.paths import existing_file, existing_folder
from rappor.cli.store_options import (
    add_data,
    data_folder,
    definitions_in,
    open_data,
    shown,
    today,
    verb,
    where,
)
from rappor.collection import Collection, Registry, days_of, diff, lint_all
from rappor.collection.findings import errors
from rappor.collection.registry import definition_files
from rappor.collection.toml import renamed_fields
from rappor.errors import RapporError, StoreError
from rappor.host import actor
from rappor.wire.protocol import ACCEPTANCE_DAYS

if TYPE_CHECKING:
    from rappor.store import AuditEntry, CellSummary, Definition

State = Literal["ok", "note", "do first"]
DO_FIRST = 1  # the exit code if something has to be done
NEWEST = -1  # in place of a number: the schema that this version writes
_RECENT = timedelta(days=1)  # a backup that is older does not count
_ROOM = 64 * 2**20  # bytes, besides three times the files: the backup, its draft, and the log


class _Check(NamedTuple):
    """One line: its subject, whether something has to be done, and what."""

    name: str
    state: State
    text: str


class _Folder(NamedTuple):
    """What is in a data folder, or in a database."""

    path: Path | str
    schema: int
    definitions: list[Definition]
    cells: list[CellSummary]
    audit: list[AuditEntry]
    losses: list[str]


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verb(
        verbs,
        "upgrade",
        "check what has to be done before a new version starts",
        "Check a data folder with the new version before the old one stops: the store's schema, "
        "definitions, keys, free space, and the versions of collections that clients still send. "
        "One line each: ok, a note, or what to do first. Nothing is changed. Exit code 1 means "
        "that something has to be done first. docs/upgrade.md is the guide. With --store and "
        "without --check, make or upgrade the tables of a database and save the definitions, for "
        "collectors whose role may not.",
        "rappor upgrade --check --data data --collections collections --keys keys.json",
    )
    add_data(parser)
    parser.add_argument("--check", action="store_true", help="check, and change nothing")
    parser.add_argument(
        "--collections", metavar="DIR", help="the collector's folder of definitions"
    )
    parser.add_argument("--keys", metavar="FILE", help="the collector's file of keys")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Print one line for each check."""
    if not args.check and args.store is None:
        raise UsageError(
            "give --check. There is nothing else to run: a new version upgrades the data folder at "
            "its first start (docs/upgrade.md)"
        )
    need_analysis("store", "numpy")
    if not args.check:
        return _upgrade_database(args)
    if args.collections is not None:
        existing_folder(args.collections, "folder of collections")
    if args.keys is not None:
        existing_file(args.keys, "file of keys")
    checks = list(_checks(args))
    wrong = any(check.state == "do first" for check in checks)
    if args.json:
        say_json(
            {"version": __version__, "ok": not wrong, "checks": [item._asdict() for item in checks]}
        )
    else:
        for line in table([(item.state, item.name, item.text) for item in checks], left=3):
            say(line)
    return DO_FIRST if wrong else 0


def _upgrade_database(args: argparse.Namespace) -> int:
    """Make or upgrade the store in a database, and save definitions, as its operator.

    Collectors whose role may do neither (docs/operate.md) start afterwards.
    """
    found = None if args.collections is None else definitions_in(args.collections)
    with closing(open_data(args.store, read_only=False, create=True)) as store:
        changed = [
            f"{item.name} v{item.version}"
            for item in found or ()
            if store.save_definition(item.to_toml(), actor=actor())
        ]
        saved = len(store.definitions())
    where_to = shown(args.store)
    if args.json:
        say_json({"store": where_to, "saved": changed, "definitions": saved})
    else:
        say(f"{where_to}: ready, {saved} definitions")
        for name in changed:
            say(f"  saved: {name}")
    return 0


def _checks(args: argparse.Namespace) -> Iterator[_Check]:
    import sqlite3  # here, because --help needs no database

    from rappor.store.open import url_of

    python, sqlite = platform.python_version(), sqlite3.sqlite_version
    yield _Check("program", "ok", f"rappor {__version__}, Python {python}, SQLite {sqlite}")
    url = args.store or url_of(data_folder(where(args)))
    path = None if args.data is None else data_folder(args.data)
    try:
        folder = _read_database(url) if url is not None else _read(data_folder(args.data))
    except StoreError as error:
        yield _Check("store", "do first", str(error))
    else:
        yield _store(folder)
        yield from _definitions(folder, args.collections)
        yield _clients(folder, args.collections)
    if path is not None:
        yield _dashboard(path)
    yield _keys(args.keys)
    if path is not None and url is None:
        yield _space(path)
        yield _process(path)


def _read(path: Path) -> _Folder:
    """Read a folder with any schema that this version can upgrade; StoreError if it cannot."""
    from rappor.store import open_store
    from rappor.store.open import FILE_NAME
    from rappor.store.sqlite import schema
    from rappor.store.sqlite.connection import APPLICATION_ID

    file = path / FILE_NAME
    version, newest = _schema_of(file, APPLICATION_ID), len(schema.MIGRATIONS)
    if version > newest:
        raise StoreError(
            f"{file}: schema {version}, written by a newer rappor; this one knows {newest}: "
            "install that version again, or restore a backup of before"
        )
    if version < newest:
        return _read_older(file, version)
    with closing(open_store(path, read_only=True)) as store:
        return _Folder(
            path, version, store.definitions(), store.cells(), store.audit_log(), store.losses()
        )


def _read_database(url: str) -> _Folder:
    """Read a store in a database; StoreError if its schema is not that of this version."""
    from rappor.store import open_store

    with closing(open_store(url, read_only=True)) as store:
        contents = (store.definitions(), store.cells(), store.audit_log(), store.losses())
        return _Folder(shown(url), NEWEST, *contents)


def _schema_of(file: Path, application_id: int) -> int:
    """The version of a file's schema. Reads the log too, and moves nothing."""
    from rappor.store.sqlite import schema_upgrade
    from rappor.store.sqlite.connection import connect, translating

    with translating(file), closing(connect(file, True, "ro")) as connection:
        try:
            return schema_upgrade.version_of(connection, application_id, "a file of rappor")
        except StoreError as error:
            raise StoreError(f"{file}: {error}") from None


def _read_older(file: Path, version: int) -> _Folder:
    """Read a store that only writing would upgrade."""
    from rappor.store import CellCache
    from rappor.store.sqlite import audit, cell_rows, definitions
    from rappor.store.sqlite.connection import connect, translating

    with translating(file), closing(connect(file, True, "ro")) as connection:
        return _Folder(
            file.parent,
            version,
            definitions.read(connection),
            cell_rows.summaries(connection, CellCache()),
            audit.read(connection),
            [],
        )


def _store(folder: _Folder) -> _Check:
    from rappor.store.sqlite import schema

    newest = len(schema.MIGRATIONS)
    if folder.schema == NEWEST:
        return _Check("store", "ok", f"{folder.path}: the schema that this version writes")
    if folder.losses:
        return _Check(
            "store", "do first", f"{folder.losses[0]}: rappor status --data {folder.path}"
        )
    if folder.schema == newest:
        return _Check("store", "ok", f"schema {newest}, which this version writes")
    becomes = f"schema {folder.schema} becomes {newest} at the first start; there is no way back"
    backups = [entry.when for entry in folder.audit if entry.action == "backup"]
    if backups and _age(backups[-1]) <= _RECENT:
        return _Check("store", "ok", f"{becomes}, but the backup of {backups[-1]}")
    return _Check(
        "store",
        "do first",
        f"{becomes}: make a backup with the version that runs now (rappor backup --data "
        f"{folder.path} --output FILE)",
    )


def _age(when: str) -> timedelta:
    return datetime.now(UTC) - datetime.strptime(when, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _definitions(folder: _Folder, collections: str | None) -> Iterator[_Check]:
    """Whether saved definitions can be read, and files may take their place."""
    name = "definitions"
    saved: dict[tuple[str, int], Collection] = {}
    wrong = []
    for item in folder.definitions:
        try:
            saved[item.collection, item.version] = Collection.from_toml(item.toml)
        except RapporError as error:
            wrong.append(f"{item.collection} v{item.version} in the store: {error}")
    if wrong:
        text = f"{wrong[0]}; this version cannot decode it: stay with the old one, and report this"
        yield _Check(name, "do first", text)
        return
    if collections is None:
        yield _Check(
            name, "note", f"{len(saved)} in the store are good; --collections checks files"
        )
        return
    try:
        files = definition_files(collections)
        found = Registry(Collection.read(path) for path in files)
        for collection in found:
            old = saved.get((collection.name, collection.version))
            refusal = "" if old is None else diff(old, collection).refusal
            if refusal:
                wrong.append(f"{collection.name} v{collection.version}: {refusal}")
    except (RapporError, OSError) as error:
        wrong.append(str(error))
    if wrong:
        yield _Check(name, "do first", f"{wrong[0]}; the collector would not start")
        return
    yield _Check(name, "ok", f"{len(found)} files, {len(saved)} in the store")
    renamed = [path.name for path in files if renamed_fields(path.read_text(encoding="utf-8"))]
    if renamed:
        yield _Check(name, "note", f"{', '.join(renamed)}: old names of fields; run lint")
    if bad := errors(lint_all(found)):
        yield _Check(name, "note", f"lint finds {len(bad)} errors, the first: {bad[0].code}")


def _clients(folder: _Folder, collections: str | None) -> _Check:
    """Versions of collections that reports of the last days have, and the files that they need."""
    oldest = today() - timedelta(days=ACCEPTANCE_DAYS)
    seen: Counter[tuple[str, int]] = Counter()
    for summary in folder.cells:
        if days_of(summary.cell.period)[1] >= oldest:
            seen[summary.cell.collection, summary.cell.version] += summary.reports
    if not seen:
        return _Check("clients", "ok", f"no reports in the last {ACCEPTANCE_DAYS} days")
    totals: Counter[str] = Counter()
    for (name, _), reports in seen.items():
        totals[name] += reports
    text = ", ".join(
        f"{name} v{version} ({reports / totals[name]:.0%})"
        for (name, version), reports in sorted(seen.items())
    )
    text = f"seen in the last {ACCEPTANCE_DAYS} days: {text}"
    if collections is None:
        return _Check("clients", "ok", text)
    try:
        found = {(item.name, item.version) for item in Registry.open(collections)}
    except RapporError:
        return _Check("clients", "note", f"{text}; not compared with the files")
    missing = [
        f"{name} v{version}" for name, version in sorted(seen) if (name, version) not in found
    ]
    if missing:
        return _Check(
            "clients",
            "do first",
            f"clients still send {', '.join(missing)}, and {collections} has no file of it: put it "
            "back until they stop, or their reports are refused",
        )
    return _Check("clients", "ok", text)


def _dashboard(path: Path) -> _Check:
    from rappor.dashboard.settings import APPLICATION_ID, STATE_FILE, STATE_SCHEMA

    file = path / STATE_FILE
    if not file.is_file():
        return _Check("dashboard", "ok", "no accounts and candidate lists yet")
    try:
        version = _schema_of(file, APPLICATION_ID)
    except StoreError as error:
        return _Check("dashboard", "do first", str(error))
    if version > STATE_SCHEMA:
        text = f"{file}: schema {version}, written by a newer rappor; this one knows"
        return _Check("dashboard", "do first", f"{text} {STATE_SCHEMA}")
    if version == STATE_SCHEMA:
        return _Check("dashboard", "ok", f"schema {STATE_SCHEMA}, which this version writes")
    text = f"schema {version} becomes {STATE_SCHEMA} at the first start; a backup has it as it is"
    return _Check("dashboard", "ok", text)


def _keys(file: str | None) -> _Check:
    from rappor.collector.keys import list_keys

    if file is None:
        return _Check("keys", "note", "not checked: give --keys FILE if the collector has one")
    try:
        keys = list_keys(file)
        mode = Path(file).expanduser().stat().st_mode & 0o077
    except (RapporError, OSError) as error:
        return _Check("keys", "do first", str(error))
    valid = [key for key in keys if not key.revoked]
    text = f"{len(valid)} valid, {len(keys) - len(valid)} revoked"
    if mode:
        return _Check("keys", "note", f"{text}; others can read {file}: chmod 600 {file}")
    return _Check("keys", "ok", text)


def _space(path: Path) -> _Check:
    try:
        size = sum(file.stat().st_size for file in path.glob("*.sqlite*"))
        free = shutil.disk_usage(path).free
    except OSError as error:
        return _Check("space", "do first", f"{path}: {error.strerror}")
    need = 3 * size + _ROOM
    text = f"{free / 1e6:,.0f} MB free; a backup and the upgrade take up to {need / 1e6:,.0f} MB"
    return _Check("space", "ok", text) if free >= need else _Check("space", "do first", text)


def _process(path: Path) -> _Check:
    from rappor.collector.folder_lock import is_locked

    if is_locked(path):
        return _Check("process", "note", "a collector runs on this folder: stop it when you switch")
    return _Check("process", "ok", "no collector runs on this folder")
