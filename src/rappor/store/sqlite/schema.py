"""The tables, as a list of migrations. docs/data-model.md describes each table."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from rappor.errors import StoreError
from rappor.store.sqlite import report_chunks, schema_upgrade
from rappor.store.sqlite.connection import APPLICATION_ID, Connection
from rappor.store.sqlite.schema_upgrade import Migration

_NONE = "zeroblob(16)"

MIGRATIONS: tuple[Migration, ...] = (
    (  # 1: definitions, counts, reports, tokens, audit
        "CREATE TABLE definitions ("
        " collection TEXT NOT NULL, version INTEGER NOT NULL, toml TEXT NOT NULL,"
        " checksum BLOB NOT NULL, PRIMARY KEY (collection, version)) WITHOUT ROWID",
        "CREATE TABLE cells ("
        " id INTEGER PRIMARY KEY, collection TEXT NOT NULL, version INTEGER NOT NULL,"
        " period TEXT NOT NULL, dimensions TEXT NOT NULL, params_digest TEXT NOT NULL,"
        " k INTEGER NOT NULL, m INTEGER NOT NULL, reports INTEGER NOT NULL,"
        " cohorts INTEGER NOT NULL, parity BLOB NOT NULL, kept INTEGER NOT NULL,"
        " chunks INTEGER NOT NULL, chunk_parity BLOB NOT NULL, checksum BLOB NOT NULL,"
        " FOREIGN KEY (collection, version) REFERENCES definitions (collection, version))",
        "CREATE TABLE counts ( id INTEGER PRIMARY KEY, data BLOB NOT NULL, checksum BLOB NOT NULL)",
        "CREATE TABLE reports ("
        " id INTEGER PRIMARY KEY, slot INTEGER NOT NULL, size INTEGER NOT NULL,"
        " data BLOB NOT NULL, checksum BLOB NOT NULL)",
        "CREATE INDEX reports_slot ON reports (slot, size)",
        "CREATE TABLE tokens (token BLOB PRIMARY KEY, day INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE token_days ("
        " day INTEGER PRIMARY KEY, tokens INTEGER NOT NULL, parity BLOB NOT NULL)",
        "CREATE TABLE audit ("
        " id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,"
        " detail TEXT NOT NULL, checksum BLOB NOT NULL)",
        "CREATE TABLE seals ("
        " name TEXT PRIMARY KEY, size INTEGER NOT NULL, parity BLOB NOT NULL) WITHOUT ROWID",
        f"INSERT INTO seals VALUES ('audit', 0, {_NONE}), ('cells', 0, {_NONE}),"  # noqa: S608 - our own names
        f" ('definitions', 0, {_NONE})",
    ),
    (  # 2: files that were imported, each exactly once
        "CREATE TABLE imports ("
        " digest BLOB PRIMARY KEY, detail TEXT NOT NULL, checksum BLOB NOT NULL) WITHOUT ROWID",
        f"INSERT INTO seals VALUES ('imports', 0, {_NONE})",  # noqa: S608 - our own names
    ),
    (  # 3: tokens of the latest commits, many in a row
        "CREATE TABLE fresh_tokens ("
        " id INTEGER PRIMARY KEY, day INTEGER NOT NULL, data BLOB NOT NULL,"
        " checksum BLOB NOT NULL)",
    ),
    (  # 4: the number of commits, in one row
        "CREATE TABLE commits ("
        " id INTEGER PRIMARY KEY CHECK (id=1), number INTEGER NOT NULL,"
        " unfinished INTEGER NOT NULL, checksum BLOB NOT NULL)",
        f"INSERT INTO commits VALUES (1, 0, 0, {_NONE})",  # noqa: S608 - our own names
    ),
    (
        report_chunks.mix_again,
    ),  # 5: kept reports in one order for a whole cohort, on pages of their own
)


COUNTS_COMMITS = 4  # the first schema that counts commits


def version_of(connection: Connection) -> int:
    """The schema's version; 0 for an empty file. StoreError if the file is not a store."""
    return schema_upgrade.version_of(connection, APPLICATION_ID, "a store of rappor")


def migrate(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Upgrade a file to the newest schema and verify it; return whether it was older."""
    done = schema_upgrade.migrate(connection, migrations, APPLICATION_ID, "a store of rappor")
    verify(connection, migrations)
    return done


def verify(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """StoreError unless the schema is exactly that of this version of rappor."""
    version = version_of(connection)
    schema_upgrade.check_not_newer(version, migrations, "a store")
    if version < len(migrations):
        raise StoreError(
            f"a store of schema {version}: open it once for writing (rappor retain) to upgrade "
            f"it to {len(migrations)}"
        )
    wanted = sqlite3.connect(":memory:")
    try:
        for step in (step for migration in migrations for step in migration):
            schema_upgrade.run(wanted, step)
        expected = _statements(wanted)
    finally:
        wanted.close()
    if _statements(connection) != expected:
        raise StoreError("the schema is damaged: it is not what rappor wrote")


def _statements(connection: Connection) -> list[tuple[object, ...]]:
    found = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema")
    return sorted((tuple(row) for row in found), key=repr)
