"""The tables of dashboard.sqlite, as a list of migrations, one transaction each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from rappor.errors import StoreError

APPLICATION_ID = 0x52505244  # "RPRD"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (  # 1: accounts, links, sessions, candidates, results, jobs, audit, facts
        # An account's token is kept as a digest; NULL where it may log in by links only.
        "CREATE TABLE accounts ("
        " name TEXT PRIMARY KEY, role TEXT NOT NULL, digest BLOB UNIQUE, made TEXT NOT NULL,"
        " maker TEXT NOT NULL, revoked TEXT) WITHOUT ROWID",
        "CREATE TABLE links ("
        " digest BLOB PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (name),"
        " expires INTEGER NOT NULL, used TEXT) WITHOUT ROWID",
        "CREATE TABLE sessions ("
        " digest BLOB PRIMARY KEY, account TEXT NOT NULL REFERENCES accounts (name),"
        " began INTEGER NOT NULL, seen INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE TABLE candidates ("
        " collection TEXT NOT NULL, version INTEGER NOT NULL, strings TEXT NOT NULL,"
        " size INTEGER NOT NULL, made TEXT NOT NULL, actor TEXT NOT NULL,"
        " PRIMARY KEY (collection, version)) WITHOUT ROWID",
        "CREATE TABLE results ("
        " key TEXT PRIMARY KEY, collection TEXT NOT NULL, kind TEXT NOT NULL, meta TEXT NOT NULL,"
        " content BLOB, made TEXT NOT NULL, number INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE INDEX results_collection ON results (collection, number)",
        "CREATE TABLE jobs ("
        " id TEXT PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, status TEXT NOT NULL,"
        " document TEXT NOT NULL, made TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE audit ("
        " id INTEGER PRIMARY KEY, at TEXT NOT NULL, actor TEXT NOT NULL, action TEXT NOT NULL,"
        " detail TEXT NOT NULL)",
        "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    ),
)


def migrate(
    connection: sqlite3.Connection, migrations: Sequence[tuple[str, ...]] = MIGRATIONS
) -> None:
    """Bring a file to the newest schema, or StoreError where it is another program's."""
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            version = version_of(connection)
            if version > len(migrations):
                raise StoreError(
                    f"dashboard state of schema {version}, written by a newer rappor; this one "
                    f"knows {len(migrations)}"
                )
            if version == len(migrations):
                connection.execute("ROLLBACK")
                return
            for statement in migrations[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def version_of(connection: sqlite3.Connection) -> int:
    """The schema's version, 0 in an empty file; StoreError where the file is not ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != APPLICATION_ID:
        raise StoreError("not a file of the dashboard: its application id is another")
    return int(version)
