"""The tokens of counted batches, in one part (a partition) for each day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from rappor.store.postgres.connection import Connection
from rappor.store.token_window import first_kept

_EXACT_PAGES = 8192  # 64 MB: a tenth of a second to count
_PAGE_TOKENS = 157  # in a page of 8 KB: rows of 48 bytes and a pointer of 4; none is ever deleted


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
    """The parts that are too old to matter, and about how many tokens they have."""
    query = "SELECT part FROM rappor.token_parts WHERE day < %s AND part <> 0 ORDER BY part"
    first = first_kept(today, weekly)
    parts = [row[0] for row in connection.execute(query, (first,))]
    return parts, sum(_count(connection, part) for part in parts)


def _count(connection: Connection, part: int) -> int:
    """The number of tokens in a part; of a large one an estimate from its size.

    Nobody adds reports meanwhile, and to count the tokens of a busy day takes minutes.
    """
    query = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::bigint"
    row = connection.execute(query, (f"rappor.tokens_{part}",)).fetchone()
    pages = 0 if row is None else int(row[0])
    if pages > _EXACT_PAGES:
        return pages * _PAGE_TOKENS
    query = "SELECT count(*) FROM rappor.tokens WHERE part = %s"
    row = connection.execute(query, (part,)).fetchone()
    return 0 if row is None else int(row[0])


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
