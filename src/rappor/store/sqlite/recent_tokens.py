"""Tokens of the latest commits, many in a row, so that a commit writes one page of tokens.

In the large table `tokens`, each random token is on another page: a commit of sixty would write and
sync sixty pages. So new tokens first go into rows of `fresh_tokens`. When there are many, they are
sorted into rows of neighbours, and these move to `tokens` little by little, many tokens to a page.
A token is in one of the two tables at any time, and `token_days` counts both
(docs/adr/011-fresh-tokens.md).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from rappor.errors import StoreError
from rappor.store.checksums import checksum, typed
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.row_ids import new_id
from rappor.wire.protocol import TOKEN_BYTES

FULL = 192  # tokens in a full row
BLOCK = 248  # neighbours in a row, which then fills a page
MAX_TOKENS = 131_072  # before they are sorted into rows of neighbours
PACE = 2  # tokens that move to the large table for each new one
SECONDS = 60.0  # the longest time in which rows tell which tokens came together

# The offset of each token of a blob: one statement for all, which lets other threads run.
EACH = (
    "WITH RECURSIVE at (i) AS (SELECT 1 WHERE length(:data) > 0 UNION ALL "
    "SELECT i + 16 FROM at WHERE i + 16 <= length(:data)) "
)


class TokenRow(NamedTuple):
    """A row of `fresh_tokens`: its number, its day, its tokens one after the other."""

    id: int
    day: int
    data: bytes


class OpenRow(NamedTuple):
    """The row that is not full, with its tokens sorted."""

    id: int
    day: int
    tokens: list[bytes]


class RecentTokens:
    """These rows in memory, so that they need not be read for each commit.

    To be used within a transaction that writes. The copy is valid until another process writes or a
    transaction is rolled back; `SqliteStore` calls `read_again` then.
    """

    def __init__(self) -> None:
        self.tokens: set[bytes] = set()
        self._last: OpenRow | None = None
        self._neighbours: list[TokenRow] = []  # to be moved, the last one first
        self._arranged_at = time.monotonic()

    def read_again(self, connection: Connection) -> None:
        """Read the rows, which may have changed."""
        self.tokens = {token for row in read(connection) for token in split(row.data)}
        self._last, self._neighbours = None, []

    def add(self, connection: Connection, tokens: Sequence[bytes], day: int) -> None:
        """Add new tokens."""
        last = self._last
        if last is None or last.day != day:
            last = OpenRow(new_id(connection, "fresh_tokens"), day, [])
        last.tokens.extend(tokens)
        last.tokens.sort()
        _write(connection, TokenRow(last.id, day, b"".join(last.tokens)))
        self._last = last if len(last.tokens) < FULL else None
        self.tokens.update(tokens)
        if self._neighbours:
            self._move_some(connection, PACE * len(tokens))
        many = len(self.tokens) >= MAX_TOKENS and not self._neighbours
        if many or time.monotonic() - self._arranged_at >= SECONDS:
            self.arrange(connection)

    def arrange(self, connection: Connection) -> None:
        """Sort all tokens into rows of neighbours, which do not tell which tokens came together."""
        days = _by_day(read(connection))
        connection.execute("DELETE FROM fresh_tokens")
        size, made = BLOCK * TOKEN_BYTES, []
        for day, data in days.items():
            for at in range(0, len(data), size):
                made.append(TokenRow(new_id(connection, "fresh_tokens"), day, data[at : at + size]))
                _write(connection, made[-1])
        self._last, self._neighbours = None, made
        self._arranged_at = time.monotonic()

    def _move_some(self, connection: Connection, wanted: int) -> None:
        """Move at least this many tokens to the large table."""
        while wanted > 0 and self._neighbours:
            row = self._neighbours.pop()
            connection.execute("DELETE FROM fresh_tokens WHERE id=?", (row.id,))
            _move(connection, row.day, row.data)
            self.tokens.difference_update(split(row.data))
            wanted -= len(row.data) // TOKEN_BYTES

    def merge(self, connection: Connection) -> bool:
        """Move all tokens to the large table; return whether there were any."""
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
    """All rows, or StoreError if one was changed. `token_days` shows whether one is missing."""
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
    """The tokens of each day, sorted as in the large table."""
    days: dict[int, list[bytes]] = {}
    for row in rows:
        days.setdefault(row.day, []).append(row.data)
    return {day: _sorted(b"".join(parts)) for day, parts in sorted(days.items())}


def _sorted(data: bytes) -> bytes:
    """Sort tokens.

    >>> _sorted(b"b" * 16 + b"a" * 15 + b"c" + b"a" * 16) == b"a" * 31 + b"c" + b"b" * 16
    True
    """
    halves = np.frombuffer(data, ">u8").astype(np.uint64).reshape(-1, 2)
    table = np.frombuffer(data, np.uint8).reshape(-1, TOKEN_BYTES)
    return table[np.lexsort((halves[:, 1], halves[:, 0]))].tobytes()


def _move(connection: Connection, day: int, data: bytes) -> None:
    """Insert tokens into the large table; SQLite raises if one is there already."""
    query = "INSERT INTO tokens (token, day) SELECT substr(:data, i, 16), :day FROM at"
    connection.execute(EACH + query, {"data": data, "day": day})
