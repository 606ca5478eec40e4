"""The tables, as a list of migrations. docs/data-model.md describes each table.

A migration is one transaction. It waits until no collector is adding reports, and collectors wait
for it. `oldest` says which collectors may go on afterwards: those that know a schema of at least
this number. A migration that only adds something leaves `oldest` as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rappor.errors import StoreError
from rappor.store.postgres import functions
from rappor.store.postgres.connection import Connection
from rappor.store.postgres.locks import take_store

_NONE = "decode(repeat('00', 16), 'hex')"
_FIRST = "decode(repeat('00', 32), 'hex')"
NO_STORE = (
    "there is no store in this database; make it with rappor upgrade --store, or check the name"
)
_TEXT = 'text COLLATE "C" NOT NULL'  # sorted as Python sorts


class PostgresMigration(NamedTuple):
    """Statements that lead from one schema to the next.

    Attributes:
        statements: in their order.
        oldest: the oldest schema that a collector may know to go on writing afterwards.
    """

    statements: tuple[str, ...]
    oldest: int


_TABLES = (
    "CREATE SCHEMA IF NOT EXISTS rappor",
    # One row: the schema, the part that tokens go to and its day, the last day of retention, and
    # a number that grows when rows of other writers were changed.
    "CREATE TABLE rappor.state ("
    " id integer PRIMARY KEY CHECK (id = 1), version integer NOT NULL, oldest integer NOT NULL,"
    " part integer NOT NULL, day integer NOT NULL, retained integer NOT NULL,"
    " epoch bigint NOT NULL)",
    "INSERT INTO rappor.state VALUES (1, 0, 0, 0, 0, 0, 0)",
    f"CREATE TABLE rappor.definitions (collection {_TEXT}, version integer NOT NULL,"
    " toml text NOT NULL, checksum bytea NOT NULL, PRIMARY KEY (collection, version))",
    # Writer 0 has the rows of writers that are gone.
    "CREATE TABLE rappor.writers ("
    " writer bigint PRIMARY KEY, pid integer, cells integer NOT NULL DEFAULT 0,"
    f" parity bytea NOT NULL DEFAULT {_NONE})",
    "CREATE UNIQUE INDEX writers_pid ON rappor.writers (pid) WHERE pid IS NOT NULL",
    "INSERT INTO rappor.writers (writer) VALUES (0)",
    "CREATE TABLE rappor.cells (id bigint NOT NULL, writer bigint NOT NULL,"
    f" collection {_TEXT}, version integer NOT NULL, period {_TEXT}, dimensions {_TEXT},"
    " params_digest text NOT NULL, k integer NOT NULL, m integer NOT NULL,"
    " reports bigint NOT NULL, cohorts integer NOT NULL, parity bytea NOT NULL,"
    " checksum bytea NOT NULL, PRIMARY KEY (id, writer)) WITH (fillfactor = 50)",
    "CREATE INDEX cells_writer ON rappor.cells (writer)",
    # Rows are rewritten by each commit: half a page is free for the next version of a row, and
    # only long rows are stored outside the page.
    "CREATE TABLE rappor.counts (id bigint NOT NULL, writer bigint NOT NULL, data bytea NOT NULL,"
    " checksum bytea NOT NULL, PRIMARY KEY (id, writer))"
    " WITH (fillfactor = 50, toast_tuple_target = 4080)",
    "ALTER TABLE rappor.counts ALTER COLUMN data SET STORAGE EXTERNAL",
    "CREATE TABLE rappor.reports (slot bigint NOT NULL, number integer NOT NULL,"
    " data bytea NOT NULL, checksum bytea NOT NULL, PRIMARY KEY (slot, number))",
    "ALTER TABLE rappor.reports ALTER COLUMN data SET STORAGE EXTERNAL",
    "CREATE TABLE rappor.tokens (token bytea NOT NULL, part integer NOT NULL,"
    " PRIMARY KEY (token, part)) PARTITION BY LIST (part)",
    "CREATE TABLE rappor.token_parts (part integer PRIMARY KEY, day integer NOT NULL)",
    # Copies of the rows that pages may show.
    "CREATE TABLE rappor.released_cells (LIKE rappor.cells INCLUDING ALL)",
    "CREATE TABLE rappor.released_counts (LIKE rappor.counts INCLUDING ALL)",
    "CREATE TABLE rappor.imports (digest bytea PRIMARY KEY, detail text NOT NULL,"
    " checksum bytea NOT NULL)",
    "CREATE TABLE rappor.audit (id bigint PRIMARY KEY, at text NOT NULL, actor text NOT NULL,"
    " action text NOT NULL, detail text NOT NULL, checksum bytea NOT NULL)",
    "CREATE TABLE rappor.audit_end (id integer PRIMARY KEY CHECK (id = 1), size bigint NOT NULL,"
    " checksum bytea NOT NULL)",
    f"INSERT INTO rappor.audit_end VALUES (1, 0, {_FIRST})",  # noqa: S608 - a constant
)
_NO_STRANGERS = "REVOKE ALL ON ALL FUNCTIONS IN SCHEMA rappor FROM PUBLIC"

MIGRATIONS: tuple[PostgresMigration, ...] = (
    PostgresMigration((*_TABLES, *functions.FIRST, _NO_STRANGERS), oldest=1),
    # Anybody may call it: it does what the caller may do anyway.
    PostgresMigration((functions.ADD_BATCHES,), oldest=1),
    # The tables from which deleted rows are not yet erased.
    PostgresMigration(
        (
            "ALTER TABLE rappor.state ADD COLUMN to_rewrite text[] NOT NULL DEFAULT '{}'",
            functions.FORGET_RELEASED_BY_RANGE,
        ),
        oldest=1,
    ),
)
ADD_BATCHES_SINCE = 2  # the first schema that has `functions.ADD_BATCHES`


def exists(connection: Connection) -> bool:
    """Whether the database has a store."""
    row = connection.execute("SELECT to_regclass('rappor.state') IS NOT NULL").fetchone()
    return bool(row and row[0])


def check_exists(connection: Connection) -> None:
    """StoreError unless the database has a store."""
    if not exists(connection):
        raise StoreError(NO_STORE)


def migrate(connection: Connection, migrations: Sequence[PostgresMigration] = MIGRATIONS) -> bool:
    """Run the missing migrations; return whether there were any.

    If the process or the server is killed during a migration, the schema before it stays.
    """
    done = False
    while version(connection) < len(migrations):
        connection.execute("BEGIN")
        try:
            take_store(connection)
            present = version(connection)  # another process may have done it
            if present < len(migrations):
                for statement in migrations[present].statements:
                    connection.execute(statement)
                connection.execute(
                    "UPDATE rappor.state SET version = %s, oldest = %s",
                    (present + 1, migrations[present].oldest),
                )
                done = True
            connection.execute("COMMIT")
        except BaseException:
            if not connection.closed:
                connection.execute("ROLLBACK")
            raise
    return done


def verify(connection: Connection, known: int = len(MIGRATIONS)) -> None:
    """StoreError unless this version of rappor can read the store."""
    check_exists(connection)
    row = connection.execute("SELECT version, oldest FROM rappor.state").fetchone()
    if row is None:
        raise StoreError("damaged (its state is missing); restore a backup")
    check_version(row[0], row[1], known)
    if row[0] < known:
        raise StoreError(
            f"a store of schema {row[0]}: open it once for writing (rappor retain) to upgrade it "
            f"to {known}"
        )


def check_version(present: int, oldest: int, known: int = len(MIGRATIONS)) -> None:
    """StoreError if a newer rappor has changed the schema so that this one must not write."""
    if known < oldest:
        raise StoreError(
            f"a store of schema {present}, written by a newer rappor; this one knows {known}"
        )


def version(connection: Connection) -> int:
    """The schema's number; 0 if there is no store."""
    if not exists(connection):
        return 0
    row = connection.execute("SELECT version FROM rappor.state").fetchone()
    return 0 if row is None else int(row[0])
