"""The tokens of counted batches, in one part (a partition) for each day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from rappor.store.postgres.connection import Connection
from rappor.store.token_window import first_kept


def insert(connection: Connection, tokens: Sequence[bytes], part: int) -> list[bool]:
    """Add tokens; return for each whether it was new.

    They are inserted in the order of their bytes, so that two transactions with the same tokens
    cannot wait for each other in a circle. A token that another transaction is just inserting is
    waited for. The second query sees what was committed meanwhile, the first one need not.
    """
    wanted = sorted(set(tokens))
    query = "SELECT token FROM rappor.tokens WHERE token = ANY(%s::bytea[])"
    seen = {row[0] for row in connection.execute(query, (wanted,), binary=True)}
    missing = [token for token in wanted if token not in seen] if seen else wanted
    added: set[bytes] = set()
    if missing:
        rows = connection.execute(
            "INSERT INTO rappor.tokens (token, part) SELECT token, %s "
            "FROM unnest(%s::bytea[]) AS new(token) ON CONFLICT DO NOTHING RETURNING token",
            (part, missing),
            binary=True,
        )
        added = {row[0] for row in rows}
    if len(added) == len(tokens):
        return [True] * len(tokens)  # nearly always
    new = []
    for token in tokens:
        new.append(token in added)
        added.discard(token)  # the same token again is a replay
    return new


def expired(connection: Connection, today: date, weekly: bool) -> tuple[list[int], int]:
    """The parts that are too old to matter, and the number of their tokens."""
    query = "SELECT part FROM rappor.token_parts WHERE day < %s AND part <> 0 ORDER BY part"
    first = first_kept(today, weekly)
    parts = [row[0] for row in connection.execute(query, (first,))]
    row = connection.execute(
        "SELECT count(*) FROM rappor.tokens WHERE part = ANY(%s::integer[])", (parts,)
    ).fetchone()
    return parts, 0 if row is None else int(row[0])


def forget(connection: Connection, parts: Sequence[int]) -> None:
    """Drop parts; the next token opens a new one if the present one is among them."""
    for part in parts:
        connection.execute(f"DROP TABLE rappor.tokens_{int(part)}")
    connection.execute(
        "DELETE FROM rappor.token_parts WHERE part = ANY(%s::integer[])", (list(parts),)
    )
    connection.execute(
        "UPDATE rappor.state SET day = 0 WHERE part = ANY(%s::integer[])", (list(parts),)
    )
