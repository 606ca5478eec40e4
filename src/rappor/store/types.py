"""What goes into a store, what comes out of it, and what any backend has to do (R19, R20, R35)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from os import PathLike
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rappor.store.cells import CellKey
from rappor.typing import IntArray

if TYPE_CHECKING:
    from rappor.collection import Registry


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Some reports of one cell and cohort, added up: what a batch brings to a store.

    Attributes:
        cell: where they belong.
        cohort: 0 to m - 1.
        params_digest: the digest of the parameters that they were made with.
        total: how many reports.
        ones: how many of them have each bit set; shape (k,), 64-bit.
        reports: the reports themselves, packed and one after the other, where the collection keeps
            them; in no order that means anything.
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
        cell: which.
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
        cell: which.
        params_digest: the digest of its parameters.
        k: bits in a report.
        m: cohorts.
        reports: reports that were counted.
        kept: reports that are still kept beside the counts.
    """

    cell: CellKey
    params_digest: str
    k: int
    m: int
    reports: int
    kept: int


@dataclass(slots=True)
class SeenCells:
    """What one reading of all cells leaves to the next one, so that it is quick; see `Store.cells`.

    Attributes:
        rows: what was found and checked; only the store that filled it knows what is in it.
    """

    rows: dict[object, tuple[CellSummary, bytes]] = field(default_factory=dict, repr=False)


class Definition(NamedTuple):
    """A collection's definition, as it was when it was saved."""

    collection: str
    version: int
    toml: str


class AuditEntry(NamedTuple):
    """Who changed or exported what, and when (UTC, to the second)."""

    when: str
    actor: str
    action: str
    detail: str


@dataclass(frozen=True, slots=True)
class Retained:
    """What retention removed, or would remove.

    Attributes:
        today: the day that it went by.
        reports: kept reports that were too old, and are gone.
        report_cells: the cells that they were in.
        count_cells: cells of expired collections, whose counts are gone.
        counted: the reports in those cells' counts.
        tokens: tokens too old to matter.
        unknown: collections that no definition describes; nothing of theirs is removed.
        dry_run: whether nothing was removed after all.
        settled: whether the bytes are gone from disk; if not, a reader was in the way, and they go
            when it has left and the store settles.
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


class Store(Protocol):
    """Durable counts, reports and tokens. Tested by tests/support/store_contract.py.

    Everything that changes a store is one transaction: all of it happened when the call returns,
    and none of it when the call raises.

    Attributes:
        accepted: what was missing when the store was opened, where that was accepted; else None.
    """

    accepted: str | None

    def add(
        self,
        tokens: Sequence[bytes],
        fold: Callable[[Sequence[int]], Iterable[Fold]],
        day: date,
    ) -> list[bool]:
        """Count batches exactly once.

        Args:
            tokens: one for each batch, 16 random bytes.
            fold: given the indices of the batches whose tokens are new (also within the call),
                returns what they add. Not called where none is new.
            day: today; tokens are forgotten when no replay of theirs can be accepted.

        Returns:
            For each token whether it was new, after tokens, counts and reports are on disk.

        Raises:
            StoreFull: no room; nothing was written, and the next call may succeed.
            StoreBroken: the disk failed; the process has to end.
            StoreError: folds that contradict their definition, or damage; nothing was written.
        """
        ...

    def add_file(self, digest: bytes, folds: Iterable[Fold], *, actor: str, detail: str) -> bool:
        """Count a file of reports exactly once, for ever; whether it was new."""
        ...

    def counts(
        self,
        collection: str,
        version: int | None = None,
        *,
        periods: Iterable[str] | None = None,
        dimensions: str | None = None,
    ) -> list[StoredCounts]:
        """The counts of all cells that match, by version, period and dimensions."""
        ...

    def counts_of(self, cells: Iterable[CellKey]) -> list[StoredCounts]:
        """The counts of these cells, in this order; those that are gone are left out."""
        ...

    def cells(self, seen: SeenCells | None = None) -> list[CellSummary]:
        """All cells, by key.

        Args:
            seen: what an earlier reading saw, also through another opening of the same store: what
                is the same since is not checked again. It is filled for the next reading.
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
        """The kept reports of each cell and cohort, packed, in an order drawn anew."""
        ...

    def save_definition(self, toml: str, *, actor: str) -> bool:
        """Keep a collection's definition; whether it is new or changed.

        Raises:
            StoreError: a change of a saved version that its rules do not allow.
        """
        ...

    def definitions(self) -> list[Definition]:
        """All saved definitions, by collection and version."""
        ...

    def audit(self, actor: str, action: str, detail: str) -> None:
        """Write down who did what."""
        ...

    def audit_log(self) -> list[AuditEntry]:
        """Everything that was written down, oldest first."""
        ...

    def retain(
        self,
        today: date,
        registry: Registry | None = None,
        *,
        dry_run: bool = False,
        actor: str = "store",
    ) -> Retained:
        """Remove what is too old, so that its bytes are gone.

        Args:
            today: the day to go by.
            registry: the definitions to go by; those in the store where None, or where it has none.
            dry_run: remove nothing, and say what would be.
            actor: who asks for it.
        """
        ...

    def settle(self) -> None:
        """Move everything to its final place: no trace of the order in which things came is left.

        To be called when there is a moment of quiet; `close` and `retain` do it too.
        """
        ...

    def check(self) -> list[str]:
        """Read everything, and say each thing that is wrong; an empty list where nothing is."""
        ...

    def losses(self) -> list[str]:
        """Acknowledged transactions that may be missing, and that nobody has accepted yet."""
        ...

    @property
    def in_place(self) -> bool:
        """Whether the open files are still those in the folder: cheap, and for any thread."""
        ...

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a whole, verified and synced copy, also while others write."""
        ...

    def close(self) -> None:
        """Let go of the files; what was returned from `add` is on disk long before."""
        ...
