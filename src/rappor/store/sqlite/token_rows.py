"""The tokens of counted batches, by day. Nothing links a token to a report.

The number and the XOR of a day's tokens are kept too, so that a changed or lost token is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from itertools import compress

import numpy as np

from rappor.errors import StoreError
from rappor.store.checksums import NONE, typed, xor
from rappor.store.sqlite import recent_tokens
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.recent_tokens import EACH, RecentTokens, split
from rappor.store.token_window import check_tokens, first_kept

_AT_ONCE = 100_000


def insert(
    connection: Connection, recent: RecentTokens, tokens: Sequence[bytes], day: date
) -> list[bool]:
    """Add tokens; return for each whether it was new."""
    seen = _seen(connection, tokens)
    if not seen and len(set(tokens)) == len(tokens) and recent.tokens.isdisjoint(tokens):
        new = [True] * len(tokens)  # nearly always
    else:
        new = []
        for token in tokens:
            new.append(token not in seen and token not in recent.tokens)
            seen.add(token)
    added = list(compress(tokens, new))
    if added:
        number = day.toordinal()
        _count(connection, added, number)
        recent.add(connection, added, number)
    return new


def _count(connection: Connection, added: Sequence[bytes], number: int) -> None:
    """Add tokens to the number and the XOR of their day."""
    query = "SELECT tokens, parity FROM token_days WHERE day=?"
    row = connection.execute(query, (number,)).fetchone()
    what = f"the tokens of {date.fromordinal(number)}"
    known, parity = (0, NONE) if row is None else typed(row, "ib", what)
    connection.execute(
        "INSERT OR REPLACE INTO token_days (day, tokens, parity) VALUES (?, ?, ?)",
        (number, known + len(added), xor(parity, _parity(added))),
    )


def load(connection: Connection, tokens: Sequence[bytes], number: int) -> None:
    """Add tokens of a day, given as an ordinal, of which none is there yet."""
    check_tokens(tokens)
    _count(connection, tokens, number)
    rows = [(token, number) for token in tokens]
    connection.executemany("INSERT INTO tokens (token, day) VALUES (?, ?)", rows)


def _seen(connection: Connection, tokens: Sequence[bytes]) -> set[bytes]:
    """Those of some tokens that are in the large table."""
    query = "SELECT token FROM at CROSS JOIN tokens ON token=substr(:data, i, 16)"
    return {row[0] for row in connection.execute(EACH + query, {"data": b"".join(tokens)})}


def _parity(tokens: Sequence[bytes]) -> bytes:
    halves = np.frombuffer(b"".join(tokens), np.uint64).reshape(-1, 2)
    return bytes(np.bitwise_xor.reduce(halves, axis=0))


def expired(connection: Connection, today: date, weekly: bool) -> int:
    """The number of tokens that are too old to matter; `weekly` if a collection has weeks."""
    query = "SELECT coalesce(sum(tokens), 0) FROM token_days WHERE day < ?"
    row = connection.execute(query, (first_kept(today, weekly),)).fetchone()
    (number,) = typed(row, "i", "the days of tokens")
    return int(number)


def forget(connection: Connection, today: date, weekly: bool) -> None:
    """Delete tokens that are too old to matter."""
    first = first_kept(today, weekly)
    for table in ("tokens", "token_days"):
        connection.execute(f"DELETE FROM {table} WHERE day < ?", (first,))  # noqa: S608 - our own names


def read(connection: Connection) -> Iterator[tuple[int, list[bytes]]]:
    """All tokens by day, some at a time."""
    rows: dict[int, list[bytes]] = {}
    for recent_row in recent_tokens.read(connection):
        rows.setdefault(recent_row.day, []).extend(split(recent_row.data))
    for number, row in enumerate(connection.execute("SELECT token, day FROM tokens"), 1):
        try:
            token, day = typed(row, "bi", "a token")
            check_tokens([token])
        except StoreError:
            raise StoreError("tokens: damaged (one is not what was written there)") from None
        rows.setdefault(day, []).append(token)
        if number % _AT_ONCE == 0:
            yield from rows.items()
            rows = {}
    yield from rows.items()


def problems(connection: Connection) -> list[str]:
    """Days whose tokens are not those that were written."""
    found: dict[int, tuple[int, bytes]] = {}
    try:
        for day, tokens in read(connection):
            known, parity = found.get(day, (0, NONE))
            found[day] = known + len(tokens), xor(parity, _parity(tokens))
    except StoreError as error:
        return [str(error)]
    said = {
        day: (tokens, parity)
        for day, tokens, parity in connection.execute("SELECT day, tokens, parity FROM token_days")
    }
    wrong = {day for day in found.keys() | said.keys() if found.get(day) != said.get(day)}
    return [
        f"tokens of day {day}: damaged (not those that were written)"
        for day in sorted(wrong, key=repr)
    ]
