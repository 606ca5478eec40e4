"""Cells and counts that were written last, so that a commit need not read and verify them again.

To be used within a transaction that writes. The cache is valid until another process writes or a
transaction is rolled back; `SqliteStore` clears it then.
"""

from __future__ import annotations

from rappor.store.cell_key import CellKey
from rappor.store.sqlite.cell_rows import CellRow

MAX_BYTES = 16 * 2**20  # of counts; above, the cache is cleared


class RowCache:
    """Rows that this process has read or written.

    Attributes:
        cells: cells by key.
        counts: bytes and checksum of rows of counts, by row number.
    """

    def __init__(self) -> None:
        """Start empty."""
        self.cells: dict[CellKey, CellRow] = {}
        self.counts: dict[int, tuple[bytes, bytes]] = {}
        self._bytes = 0

    def forget(self) -> None:
        """Clear the cache."""
        self.cells.clear()
        self.counts.clear()
        self._bytes = 0

    def learn(self, slot: int, data: bytes, seal: bytes) -> None:
        """Save the present bytes and checksum of a row of counts."""
        if slot not in self.counts:
            self._bytes += len(data)
        self.counts[slot] = data, seal

    def shrink(self) -> None:
        """Clear the cache if it is too large."""
        if self._bytes > MAX_BYTES:
            self.forget()
