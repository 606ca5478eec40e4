"""The tables of dashboard.sqlite, as a list of migrations, one transaction each."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from rappor.store.sqlite import schema_upgrade
from rappor.store.sqlite.schema_upgrade import Migration

APPLICATION_ID = 0x52505244  # "RPRD"

MIGRATIONS: tuple[Migration, ...] = (
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
    # 2: results of exact counts go: one set beside released counts could show a single report
    ("DELETE FROM results WHERE kind != 'draft'",),
)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring a file to the newest schema, or StoreError where it is another program's."""
    what = "a file of the dashboard"
    schema_upgrade.migrate(connection, migrations, APPLICATION_ID, what)
    version = schema_upgrade.version_of(connection, APPLICATION_ID, what)
    schema_upgrade.check_not_newer(version, migrations, "dashboard state")
