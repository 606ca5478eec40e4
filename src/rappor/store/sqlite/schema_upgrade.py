"""Upgrades an SQLite file of ours to its newest schema. A migration is one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rappor.errors import StoreError
from rappor.store.sqlite.connection import Connection, roll_back

Step = str | Callable[[Connection], None]  # one statement, or a function
Migration = tuple[Step, ...]


def version_of(connection: Connection, application_id: int, what: str) -> int:
    """The schema's version; 0 for an empty file. StoreError if the file is not `what`."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application == 0 and version == 0 and tables == 0:
        return 0
    if application != application_id:
        raise StoreError(f"not {what}: its application id is another")
    return int(version)


def migrate(
    connection: Connection, migrations: Sequence[Migration], application_id: int, what: str
) -> bool:
    """Run the missing migrations; return whether there were any.

    If the process is killed during a migration, the file keeps the schema before it.
    """
    done = False
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Within the transaction, because another process may have done it.
            version = version_of(connection, application_id, what)
            if version >= len(migrations):
                connection.execute("ROLLBACK")
                return done
            for step in migrations[version]:
                run(connection, step)
            connection.execute(f"PRAGMA application_id={application_id}")
            connection.execute(f"PRAGMA user_version={version + 1}")
            connection.execute("COMMIT")
            done = True
        except BaseException:
            roll_back(connection)
            raise


def run(connection: Connection, step: Step) -> None:
    """Run one step of a migration within its transaction."""
    if callable(step):
        step(connection)
    else:
        connection.execute(step)


def check_not_newer(version: int, migrations: Sequence[Migration], what: str) -> None:
    """StoreError if a file has a newer schema than this rappor knows."""
    if version > len(migrations):
        raise StoreError(
            f"{what} of schema {version}, written by a newer rappor; this one knows "
            f"{len(migrations)}"
        )
