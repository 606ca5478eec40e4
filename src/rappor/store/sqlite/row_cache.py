"""Cells and counts as they were written last, so that a commit need not read and verify them again.

To be used within a transaction that writes. What is known is true as long as nobody else writes and
nothing is rolled back; `SqliteStore` forgets it then.
"""

from __future__ import annotations

from rappor.store.cells import CellKey
from rappor.store.sqlite.cell_rows import CellRow

MOST_BYTES = 16 * 2**20  # of counts; then it begins anew


class Known:
    """What one process knows of some rows.

    Attributes:
        cells: by key.
        counts: bytes and checksum, by the row's number.
    """

    def __init__(self) -> None:
        """Nothing is known."""
        self.cells: dict[CellKey, CellRow] = {}
        self.counts: dict[int, tuple[bytes, bytes]] = {}
        self._bytes = 0

    def forget(self) -> None:
        """Somebody else may have written."""
        self.cells.clear()
        self.counts.clear()
        self._bytes = 0

    def learn(self, slot: int, data: bytes, seal: bytes) -> None:
        """A row of counts is now this."""
        if slot not in self.counts:
            self._bytes += len(data)
        self.counts[slot] = data, seal

    def shrink(self) -> None:
        """Begin anew where it has become too much."""
        if self._bytes > MOST_BYTES:
            self.forget()
