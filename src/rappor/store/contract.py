"""The contract of a store: what goes in, what comes out, and what every backend has to do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rappor.store.cell_key import CellKey
from rappor.typing import IntArray

if TYPE_CHECKING:
    from rappor.collection import Registry
    from rappor.store.released import ReleasedCounts


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """The sum of some reports of one cell and cohort: what batches add to a store.

    Attributes:
        cell: their cell.
        cohort: their cohort, 0 to m - 1.
        params_digest: the digest of the parameters that they were made with.
        total: the number of reports.
        ones: for each bit, the number of reports that have it set; shape (k,), 64-bit.
        reports: if the collection keeps reports, the packed reports in a random order.
    """

    cell: CellKey
    cohort: int
    params_digest: str
    total: int
    ones: IntArray = field(repr=False)
    reports: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class StoredCounts:
    """The counts of one cell, of all cohorts.

    Attributes:
        cell: the cell.
        params_digest: the digest of the parameters that the reports were made with.
        totals: N_j, reports in cohort j; shape (m,), 64-bit.
        ones: c_ij, reports in cohort j with bit i set; shape (m, k), 64-bit.
    """

    cell: CellKey
    params_digest: str
    totals: IntArray = field(repr=False)
    ones: IntArray = field(repr=False)

    @property
    def reports(self) -> int:
        """N, over all cohorts."""
        return sum(self.totals.tolist())


class CellSummary(NamedTuple):
    """A cell without its numbers.

    Attributes:
        cell: the cell.
        params_digest: the digest of its parameters.
        k: the number of bits in a report.
        m: the number of cohorts.
        reports: the number of reports that were counted.
        kept: the number of reports that the store still keeps.
    """

    cell: CellKey
    params_digest: str
    k: int
    m: int
    reports: int
    kept: int


@dataclass(slots=True)
class CellCache:
    """Makes the next reading of all cells fast; see `Store.cells`.

    Attributes:
        rows: rows that were read and checked, in a form that the store knows.
    """

    rows: dict[object, tuple[CellSummary, bytes]] = field(default_factory=dict, repr=False)


class Definition(NamedTuple):
    """A collection's saved definition."""

    collection: str
    version: int
    toml: str


class AuditEntry(NamedTuple):
    """Who changed or exported something, and when (UTC, to the second)."""

    when: str
    actor: str
    action: str
    detail: str


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What retention removed, or would remove.

    Attributes:
        today: the day of retention.
        reports: the number of removed reports that were kept for too long.
        report_cells: the cells of those reports.
        count_cells: cells of expired collections, whose counts were removed.
        counted: the number of reports in the counts of those cells.
        tokens: the number of removed tokens.
        unknown: collections without a definition; nothing of them is removed.
        dry_run: whether nothing was really removed.
        settled: whether the bytes are gone from the disk. If not, a reader blocked it, and they go
            when a file settles after that, or with the next retention of a database.
    """

    today: date
    reports: int = 0
    report_cells: tuple[CellKey, ...] = ()
    count_cells: tuple[CellKey, ...] = ()
    counted: int = 0
    tokens: int = 0
    unknown: tuple[str, ...] = ()
    dry_run: bool = False
    settled: bool = False


class StoreSize(NamedTuple):
    """The space of a store.

    Attributes:
        used: bytes that it takes.
        free: bytes that are free on its disk; None if that is another machine's.
    """

    used: int
    free: int | None


class Store(Protocol):
    """Durable counts, reports and tokens. Tested by tests/support/store_contract.py.

    Each call that changes a store is one transaction. When the call returns, all of it is on disk;
    when it raises, nothing has changed.

    Attributes:
        accepted: what was missing when the store was opened and the loss was accepted; else None.
        retained: the latest day of retention by any process, as far as the store was told of it
            outside the audit log; else None.
    """

    accepted: str | None
    retained: date | None

    def add(
        self,
        tokens: Sequence[bytes],
        fold: Callable[[Sequence[int]], Iterable[Fold]],
        day: date,
    ) -> list[bool]:
        """Count batches exactly once.

        Args:
            tokens: the token of each batch, 16 random bytes.
            fold: gets the indices of the batches whose tokens are new, each token once, and returns
                what they add. It may be called with all of them first, before it is known which are
                new: the last call counts.
            day: today. Tokens are deleted when their batches cannot be accepted again.

        Returns:
            For each token, whether it was new. Tokens, counts and reports are on disk then.

        Raises:
            StoreFull: the disk is full; nothing was written, and the next call may succeed.
            StoreBroken: the disk failed; the process has to end.
            StoreError: the folds contradict their definition, or the store is damaged; nothing was
                written.
        """
        ...

    def add_file(self, digest: bytes, folds: Iterable[Fold], *, actor: str, detail: str) -> bool:
        """Count a file of reports exactly once, permanently; return whether it was new."""
        ...

    def counts(
        self,
        collection: str,
        version: int | None = None,
        *,
        periods: Iterable[str] | None = None,
        dimensions: str | None = None,
    ) -> list[StoredCounts]:
        """The counts of all matching cells, sorted by version, period and dimensions."""
        ...

    def counts_of(self, cells: Iterable[CellKey]) -> list[StoredCounts]:
        """The counts of these cells, in this order, without those that do not exist."""
        ...

    def cells(self, cache: CellCache | None = None) -> list[CellSummary]:
        """All cells, by key.

        Args:
            cache: from an earlier reading, also of another opening of the same store. Rows that
                have not changed are not checked again. It is filled for the next reading.
        """
        ...

    def reports(
        self,
        collection: str,
        version: int | None = None,
        *,
        periods: Iterable[str] | None = None,
        dimensions: str | None = None,
    ) -> Iterator[tuple[CellKey, int, bytes]]:
        """The kept reports of each cell and cohort, packed, in a new random order."""
        ...

    def save_definition(self, toml: str, *, actor: str) -> bool:
        """Save a collection's definition; return whether it is new or changed.

        Raises:
            StoreError: the change needs a new version.
        """
        ...

    def definitions(self) -> list[Definition]:
        """All saved definitions, sorted by collection and version."""
        ...

    def audit(self, actor: str, action: str, detail: str) -> None:
        """Append an entry to the audit log."""
        ...

    def audit_log(self) -> list[AuditEntry]:
        """The audit log, oldest entry first."""
        ...

    def retain(
        self,
        today: date,
        registry: Registry | None = None,
        *,
        dry_run: bool = False,
        actor: str = "store",
    ) -> RetentionResult:
        """Remove what is too old, so that its bytes are gone from the disk.

        Args:
            today: the day of retention.
            registry: the definitions to use. For a collection that it does not have, and if it is
                None, the saved definition is used.
            dry_run: remove nothing, and return what would be removed.
            actor: who asks for it, for the audit log.
        """
        ...

    def server_day(self) -> date | None:
        """Today in UTC by the clock of the store's server; None if the store has no server.

        Retention days ahead of it is refused: a wrong clock must not delete.
        """
        ...

    def settle(self) -> None:
        """Move everything to its final place, so that no trace of the order of arrival is left.

        To be called when there is little to do. `close` and `retain` do it too.
        """
        ...

    def probe(self) -> None:
        """Raise StoreError unless the store can be written to now."""
        ...

    def check(self) -> list[str]:
        """Read everything and return what is wrong; an empty list if nothing is."""
        ...

    def size(self) -> StoreSize:
        """The space that the store takes."""
        ...

    @property
    def released(self) -> ReleasedCounts:
        """What pages and commands may show of periods that still accept reports."""
        ...

    def losses(self) -> list[str]:
        """Possible losses of acknowledged transactions that nobody has accepted yet."""
        ...

    @property
    def in_place(self) -> bool:
        """Whether the open files are still those in the folder. Fast; any thread may ask."""
        ...

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a complete, verified and synced copy, even while others write."""
        ...

    def close(self) -> None:
        """Close the files. What `add` has accepted is on disk long before."""
        ...
