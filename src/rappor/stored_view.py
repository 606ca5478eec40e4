"""The stored periods and dimensions that were asked for, and the two sides of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date

from rappor.aggregate.counts import Counts
from rappor.aggregate.stored_counts import BY_PERIOD, split, sum_cells, within
from rappor.checks import plural, show
from rappor.collection import Collection, days_of
from rappor.collection.periods import is_older
from rappor.errors import DecodeError, ParamsError
from rappor.planning.reach import default_period, values_tested
from rappor.store import CellKey, StoredCounts
from rappor.store.released import STEP

ALL = "all"  # as a period: every stored period, added up
NOT_SHOWN = f"not shown yet: open periods are shown in steps of {STEP} for each cell"


@dataclass(frozen=True, slots=True)
class StoredView:
    """The stored counts that were asked for.

    Attributes:
        collection: the collection, in the version that is shown.
        periods: the periods, oldest first; several are added up.
        dimensions: the chosen values of dimensions, by name.
        stored: all periods of the version, oldest first.
        is_default: whether no period was asked for, so that the latest with enough was taken.
        enough: False if no period has enough reports, so that the latest of all was taken.
        left_out: reports of open periods that are stored and not shown yet.
        on_pages: False if pages show none of these reports yet, because they are too few.
        cells: the counts, by cell.
    """

    collection: Collection
    periods: tuple[str, ...]
    dimensions: Mapping[str, str]
    stored: tuple[str, ...]
    is_default: bool
    enough: bool
    left_out: int
    on_pages: bool
    cells: tuple[StoredCounts, ...] = field(repr=False)

    @property
    def counts(self) -> list[Counts]:
        """One Counts for each (p, q)."""
        return sum_cells(self.cells, self.collection)

    @property
    def reports(self) -> int:
        """The number of reports."""
        return sum(cell.reports for cell in self.cells)

    @property
    def where(self) -> str:
        """Periods and dimensions in words, such as "2026-W46 to 2026-W47, country NZ"."""
        ends = " to ".join(dict.fromkeys((self.periods[0], self.periods[-1])))
        return ", ".join([ends, *(f"{key} {value}" for key, value in self.dimensions.items())])

    @property
    def title(self) -> str:
        """The collection, its version, the periods and the dimensions."""
        return f"{self.collection.name} v{self.collection.version}, {self.where}"

    @property
    def words(self) -> str:
        """The title, and why these periods."""
        if len(self.periods) > 1:
            return f"{self.title}: {len(self.periods)} periods added up"
        if not self.is_default or (self.enough and len(self.stored) == 1):
            return self.title
        of = plural(len(self.stored), "period", "periods")
        if self.enough:
            return f"{self.title}: of {of}, the latest with enough reports"
        if len(self.stored) == 1:
            return f"{self.title}: the only period; it has too few reports"
        return f"{self.title}: the latest of {of}; none has enough reports"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about the view."""
        if not self.on_pages:
            why = f"pages show an open period from {STEP} reports of a cell on, so none of these"
            return (self.words, why)
        if self.left_out:
            more = plural(self.left_out, "report is", "reports are")
            return (self.words, f"{more} {NOT_SHOWN}")
        return (self.words,)

    def by(self, name: str) -> dict[str, StoredView]:
        """One view for each value of a dimension, or for each period; see `split`."""
        parts = {}
        for value, cells in split(self.cells, name).items():
            if name == BY_PERIOD:
                part = replace(self, periods=(value,), cells=tuple(cells), is_default=False)
            else:
                dimensions = {**self.dimensions, name: value}
                part = replace(self, dimensions=dimensions, cells=tuple(cells))
            parts[value] = part
        return parts


@dataclass(frozen=True, slots=True)
class StoredSource:
    """All counts of a version of a collection, read once: any number of views are cut from them.

    Attributes:
        collection: the collection, in the version that is shown.
        cells: its counts, by cell.
        left_out: reports that are stored and not shown yet, by cell.
        on_pages: False if pages show none of these reports yet.
    """

    collection: Collection
    cells: Sequence[StoredCounts] = field(repr=False)
    left_out: Mapping[CellKey, int] = field(repr=False)
    on_pages: bool = True

    @property
    def periods(self) -> tuple[str, ...]:
        """The stored periods, oldest first."""
        return tuple(sorted({cell.cell.period for cell in self.cells}))

    def view(
        self,
        period: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        candidates: int = 0,
    ) -> StoredView:
        """A view, as `rappor.workspace.Workspace.view` describes it."""
        return select_view(
            self.collection,
            self.cells,
            self.left_out,
            period=period,
            dimensions=dimensions or {},
            candidates=candidates,
            on_pages=self.on_pages,
        )


def compared_with(one: StoredView, against: str | None) -> tuple[str, dict[str, str]]:
    """The period and the dimensions of the other side of a comparison.

    Args:
        one: the side that is known.
        against: a period, "FROM..TO", a value such as "country=AU"; None is the period before.

    Raises:
        DecodeError: there is no period before, or no value of the dimension was chosen.
    """
    chosen = dict(one.dimensions)
    if against is None:
        earlier = [period for period in one.stored if period < one.periods[0]]
        if not earlier:
            raise DecodeError(
                f"{one.title}: there is no earlier period to compare with; choose what to "
                "compare with"
            )
        return earlier[-1], chosen
    name, is_value, value = against.partition("=")
    if not is_value:
        return against, chosen
    if name not in chosen:
        raise DecodeError(f"{value} is part of all: choose a {name} to compare with it")
    return f"{one.periods[0]}..{one.periods[-1]}", chosen | {name: value}


def in_order(one: StoredView, other: StoredView) -> tuple[StoredView, StoredView]:
    """The newer side, then the older; DecodeError if they share reports."""
    if {cell.cell for cell in one.cells} & {cell.cell for cell in other.cells}:
        raise DecodeError(
            f"{other.where} and {one.where} have reports in common: choose two that do not overlap"
        )
    return (other, one) if is_older(one.periods, other.periods) else (one, other)


def sides_by(
    new: StoredView, old: StoredView, name: str
) -> dict[str, tuple[StoredView, StoredView]]:
    """The two sides of a comparison for each value of a dimension that both have.

    Raises:
        DecodeError: the sides are themselves values of the dimension, or have none in common.
    """
    if name == BY_PERIOD:
        raise DecodeError("a comparison is of two periods: compare by a dimension")
    if name in new.dimensions:
        raise DecodeError(
            f"{new.dimensions[name]} is one {name}: leave it out to compare by {name}"
        )
    ones, others = new.by(name), old.by(name)
    both = {value: (one, others[value]) for value, one in ones.items() if value in others}
    if not both:
        raise DecodeError(
            f"{new.where} and {old.where} have no {name} in common: compare by another dimension"
        )
    return both


def select_view(
    collection: Collection,
    everything: Sequence[StoredCounts],
    left_out: Mapping[CellKey, int],
    *,
    period: str | None,
    dimensions: Mapping[str, str],
    candidates: int,
    on_pages: bool,
) -> StoredView:
    """Choose the cells of a view.

    Args:
        collection: the collection, in the version that is shown.
        everything: all of its counts.
        left_out: reports that are stored and not shown yet, by cell.
        period: a period, "FROM..TO" or "all"; None takes the latest with enough reports.
        dimensions: only reports with these values.
        candidates: how many strings will be tested.
        on_pages: whether pages show these counts.

    Raises:
        ParamsError: there is no such dimension, or no such period can be.
        DecodeError: there are no such reports.
    """
    stored = tuple(sorted({cell.cell.period for cell in everything}))
    _check_dimensions(dimensions, collection)
    title = f"{collection.name} v{collection.version}"
    enough = True
    shown = default_period(collection, _summed(everything), values_tested(collection, candidates))
    if shown is None:
        raise DecodeError(f"nothing to decode in {title}: it has no reports yet")
    if period is None:
        periods, enough = {shown.period}, shown.enough
    else:
        known = {*stored, *(key.period for key in left_out)}
        periods = {each for each in known if within(each, *days_in(period))}

    def is_asked_for(key: CellKey) -> bool:
        return key.period in periods and dimensions.items() <= dict(key.pairs).items()

    cells = tuple(cell for cell in everything if is_asked_for(cell.cell))
    waiting = sum(more for key, more in left_out.items() if is_asked_for(key))
    if not cells:
        there = f"its periods are {stored[0]} to {stored[-1]}"
        if waiting:
            there = f"{plural(waiting, 'report is', 'reports are')} {NOT_SHOWN}"
        elif periods:
            there = f"no report has {' and '.join(f'{k} {v}' for k, v in dimensions.items())} there"
        raise DecodeError(f"nothing to decode in {title}: {there}")
    return StoredView(
        collection=collection,
        periods=tuple(sorted({cell.cell.period for cell in cells})),
        dimensions=dict(dimensions),
        stored=stored,
        is_default=period is None,
        enough=enough,
        left_out=waiting,
        on_pages=on_pages,
        cells=cells,
    )


def days_in(period: str) -> tuple[date | None, date | None]:
    """The first and the last day of a period, of "FROM..TO", or of all."""
    if period == ALL:
        return None, None
    first, dots, last = period.partition("..")
    start, end = days_of(first)[0], days_of(last if dots else first)[1]
    if end < start:
        raise ParamsError(f"{period} ends before it begins: write the earlier one first")
    return start, end


def _summed(cells: Iterable[StoredCounts]) -> list[tuple[str, int]]:
    """The reports of each period over all cells."""
    found: dict[str, int] = {}
    for cell in cells:
        found[cell.cell.period] = found.get(cell.cell.period, 0) + cell.reports
    return list(found.items())


def _check_dimensions(chosen: Mapping[str, str], collection: Collection) -> None:
    for name in chosen:
        if name not in collection.dimensions:
            known = ", ".join(sorted(collection.dimensions)) or "none"
            raise ParamsError(f"{collection.name} has no dimension {show(name)}; it has: {known}")
