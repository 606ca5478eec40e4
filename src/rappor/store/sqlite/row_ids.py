"""Random row numbers, which tell nothing about the order of arrival."""

from __future__ import annotations

import os

from rappor.store.sqlite.connection import Connection

_BITS = 62


def new_id(connection: Connection, table: str) -> int:
    """A random number that no row of a table has yet."""
    query = f"SELECT 1 FROM {table} WHERE id=?"  # noqa: S608 - a name of ours
    while True:
        number = int.from_bytes(os.urandom(8), "little") >> (64 - _BITS)
        if connection.execute(query, (number,)).fetchone() is None:
            return number
