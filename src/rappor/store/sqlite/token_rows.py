"""The tokens of counted batches, by day. Nothing links a token to a report.

The number and the XOR of a day's tokens are kept too, so that a changed or lost token is noticed.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import compress

import numpy as np

from rappor.errors import StoreError
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.recent_tokens import EACH, RecentTokens, read, split
from rappor.store.sqlite.seals import NONE, typed, xor
from rappor.wire.protocol import ACCEPTANCE_DAYS, SKEW_DAYS, TOKEN_BYTES

WEEK_DAYS = 6  # a week is accepted until its last day is too old
CLOCK_DAYS = 3  # two for a clock that was ahead, one for a commit after midnight
_AT_ONCE = 100_000


def check_tokens(tokens: Sequence[bytes]) -> None:
    """StoreError unless each token is 16 bytes."""
    for token in tokens:
        if not isinstance(token, bytes) or len(token) != TOKEN_BYTES:
            raise StoreError(f"a token must be {TOKEN_BYTES} bytes")


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
        query = "SELECT tokens, parity FROM token_days WHERE day=?"
        row = connection.execute(query, (number,)).fetchone()
        known, parity = (0, NONE) if row is None else typed(row, "ib", f"the tokens of {day}")
        connection.execute(
            "INSERT OR REPLACE INTO token_days (day, tokens, parity) VALUES (?, ?, ?)",
            (number, known + len(added), xor(parity, _parity(added))),
        )
        recent.add(connection, added, number)
    return new


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
    row = connection.execute(query, (_first_kept(today, weekly),)).fetchone()
    (number,) = typed(row, "i", "the days of tokens")
    return int(number)


def forget(connection: Connection, today: date, weekly: bool) -> None:
    """Delete tokens that are too old to matter."""
    first = _first_kept(today, weekly)
    for table in ("tokens", "token_days"):
        connection.execute(f"DELETE FROM {table} WHERE day < ?", (first,))  # noqa: S608 - our own names


def _first_kept(today: date, weekly: bool) -> int:
    """The first day whose tokens are kept: batches of that day may still be sent again."""
    window = ACCEPTANCE_DAYS + SKEW_DAYS + (WEEK_DAYS if weekly else 0)
    return today.toordinal() - window - CLOCK_DAYS


def problems(connection: Connection) -> list[str]:
    """Days whose tokens are not those that were written."""
    found: dict[int, tuple[int, bytes]] = {}
    rows: dict[int, list[bytes]] = {}

    def settle() -> None:
        for day, tokens in rows.items():
            known, parity = found.get(day, (0, NONE))
            found[day] = known + len(tokens), xor(parity, _parity(tokens))
        rows.clear()

    for recent_row in read(connection):
        rows.setdefault(recent_row.day, []).extend(split(recent_row.data))
    for number, row in enumerate(connection.execute("SELECT token, day FROM tokens"), 1):
        try:
            token, day = typed(row, "bi", "a token")
            check_tokens([token])
        except StoreError:
            return ["tokens: damaged (one is not what was written there)"]
        rows.setdefault(day, []).append(token)
        if number % _AT_ONCE == 0:
            settle()
    settle()
    said = {
        day: (tokens, parity)
        for day, tokens, parity in connection.execute("SELECT day, tokens, parity FROM token_days")
    }
    wrong = {day for day in found.keys() | said.keys() if found.get(day) != said.get(day)}
    return [
        f"tokens of day {day}: damaged (not those that were written)"
        for day in sorted(wrong, key=repr)
    ]
