"""Tokens of the latest commits, in a few rows of their own: a commit then writes one page of them.

A random token has a page of the big table to itself, so sixty of them in a commit would be sixty
pages to write and sync. New tokens are mixed into a row of `fresh_tokens` instead. Of many such
rows, rows of neighbours are made, which follow into `tokens` bit by bit, a page for many of them. A
token is in one of the two tables at any time, and `token_days` counts both (ADR 011).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rappor.errors import StoreError
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.row_ids import new_id
from rappor.store.sqlite.seals import checksum, typed
from rappor.wire.protocol import TOKEN_BYTES

FULL = 192  # tokens in a row that takes no more
BLOCK = 248  # neighbours in a row: with all that belongs to it, a page
MOST = 131_072  # tokens that wait, before rows of neighbours are made of them
PACE = 2  # tokens that follow into the big table, for each that comes
SECONDS = 60.0  # that rows may tell which tokens came together, while more and more come

# Where each token of a blob begins: all of them in one statement, which lets other threads run.
EACH = (
    "WITH RECURSIVE at (i) AS (SELECT 1 WHERE length(:data) > 0 UNION ALL "
    "SELECT i + 16 FROM at WHERE i + 16 <= length(:data)) "
)


class TokenRow(NamedTuple):
    """A row of `fresh_tokens`: its number, its day, its tokens one after the other."""

    id: int
    day: int
    data: bytes


class Last(NamedTuple):
    """The row that takes more, with its tokens in their order."""

    id: int
    day: int
    tokens: list[bytes]


class RecentTokens:
    """What one process knows of these rows, so that it need not read them for each commit.

    To be used within a transaction that writes. What is known is true as long as nobody else writes
    and nothing is rolled back; `SqliteStore` has it read again then.
    """

    def __init__(self) -> None:
        self.tokens: set[bytes] = set()
        self._last: Last | None = None
        self._neighbours: list[TokenRow] = []  # to follow, the last one first
        self._arranged_at = time.monotonic()

    def read_again(self, connection: Connection) -> None:
        """Read the rows: they may have changed."""
        self.tokens = {token for row in read(connection) for token in split(row.data)}
        self._last, self._neighbours = None, []

    def add(self, connection: Connection, tokens: Sequence[bytes], day: int) -> None:
        """Write tokens that are new."""
        last = self._last
        if last is None or last.day != day:
            last = Last(new_id(connection, "fresh_tokens"), day, [])
        last.tokens.extend(tokens)
        last.tokens.sort()
        _write(connection, TokenRow(last.id, day, b"".join(last.tokens)))
        self._last = last if len(last.tokens) < FULL else None
        self.tokens.update(tokens)
        if self._neighbours:
            self._follow(connection, PACE * len(tokens))
        many = len(self.tokens) >= MOST and not self._neighbours
        if many or time.monotonic() - self._arranged_at >= SECONDS:
            self.arrange(connection)

    def arrange(self, connection: Connection) -> None:
        """Put all tokens into rows of neighbours: nothing tells any more which came together."""
        every = _by_day(read(connection))
        connection.execute("DELETE FROM fresh_tokens")
        size, made = BLOCK * TOKEN_BYTES, []
        for day, data in every.items():
            for at in range(0, len(data), size):
                made.append(TokenRow(new_id(connection, "fresh_tokens"), day, data[at : at + size]))
                _write(connection, made[-1])
        self._last, self._neighbours = None, made
        self._arranged_at = time.monotonic()

    def _follow(self, connection: Connection, wanted: int) -> None:
        """Move so many tokens, or some more, to where they stay."""
        while wanted > 0 and self._neighbours:
            row = self._neighbours.pop()
            connection.execute("DELETE FROM fresh_tokens WHERE id=?", (row.id,))
            _move(connection, row.day, row.data)
            self.tokens.difference_update(split(row.data))
            wanted -= len(row.data) // TOKEN_BYTES

    def merge(self, connection: Connection) -> bool:
        """Move all tokens to where they stay; whether there were any."""
        if not self.tokens:
            return False
        for day, data in _by_day(read(connection)).items():
            _move(connection, day, data)
        connection.execute("DELETE FROM fresh_tokens")
        self.tokens.clear()
        self._last, self._neighbours = None, []
        self._arranged_at = time.monotonic()
        return True


def split(data: bytes) -> list[bytes]:
    """The tokens of a row.

    >>> [len(token) for token in split(bytes(32))]
    [16, 16]
    """
    return [data[at : at + TOKEN_BYTES] for at in range(0, len(data), TOKEN_BYTES)]


def read(connection: Connection) -> Iterator[TokenRow]:
    """All rows, or StoreError where one was changed; `token_days` tells where one is gone."""
    for row in connection.execute("SELECT id, day, data, checksum FROM fresh_tokens"):
        number, day, data, seal = typed(row, "iibb", "fresh tokens")
        if checksum("fresh", number, day, data) != seal or len(data) % TOKEN_BYTES:
            raise StoreError("fresh tokens: damaged (checksum)")
        yield TokenRow(number, day, data)


def _write(connection: Connection, row: TokenRow) -> None:
    connection.execute(
        "INSERT INTO fresh_tokens VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
        "data=excluded.data, checksum=excluded.checksum",
        (row.id, row.day, row.data, checksum("fresh", row.id, row.day, row.data)),
    )


def _by_day(rows: Iterator[TokenRow]) -> dict[int, bytes]:
    """The tokens of each day, neighbours in the big table beside each other."""
    found: dict[int, list[bytes]] = {}
    for row in rows:
        found.setdefault(row.day, []).append(row.data)
    return {day: _sorted(b"".join(parts)) for day, parts in sorted(found.items())}


def _sorted(data: bytes) -> bytes:
    """Tokens in their order.

    >>> _sorted(b"b" * 16 + b"a" * 15 + b"c" + b"a" * 16) == b"a" * 31 + b"c" + b"b" * 16
    True
    """
    halves = np.frombuffer(data, ">u8").astype(np.uint64).reshape(-1, 2)
    table = np.frombuffer(data, np.uint8).reshape(-1, TOKEN_BYTES)
    return table[np.lexsort((halves[:, 1], halves[:, 0]))].tobytes()


def _move(connection: Connection, day: int, data: bytes) -> None:
    """Write tokens to where they stay; one that is there already is damage, and an error."""
    query = "INSERT INTO tokens (token, day) SELECT substr(:data, i, 16), :day FROM at"
    connection.execute(EACH + query, {"data": data, "day": day})
