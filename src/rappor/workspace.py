"""`rappor.open("data")`: decode and compare the collections of a data folder.

The command line and the demo go through this module. It shows the periods and the counts that the
pages show: by default the latest period with enough reports (`rappor.planning.reach`), and of
periods that are still open only what pages may show (`rappor.store.released`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from typing import Any, overload

from rappor.aggregate.counts import Counts
from rappor.aggregate.store_export import check_export, export, export_periods
from rappor.aggregate.stored_counts import BY_PERIOD, single, split, sum_cells, within
from rappor.checks import plural, show
from rappor.collection import Collection, Registry, days_of
from rappor.collection.periods import is_older
from rappor.decoding.candidates import Candidates
from rappor.decoding.closed_form import Overlap
from rappor.decoding.compare import Compared, compare
from rappor.decoding.decode import decode
from rappor.decoding.design import Design, build_design
from rappor.decoding.mapfile import read_map
from rappor.decoding.options import Correction, Method
from rappor.decoding.result import Decoded
from rappor.decoding.saved_candidates import saved_candidates
from rappor.errors import DecodeError, ParamsError
from rappor.formats import read_text
from rappor.host import actor
from rappor.planning.reach import default_period, values_tested
from rappor.store import CellKey, Store, StoredCounts, open_store
from rappor.store.released import STEP, ReleasedCounts

__all__ = ["DecodedParts", "StoredView", "Workspace", "open"]

_NOT_SHOWN = f"not shown yet: open periods are shown in steps of {STEP} for each cell"
ALL = "all"  # as a period: every stored period, added up
LookedFor = Iterable[str | bytes] | str | PathLike[str] | Candidates | Design | None
Progress = Callable[[str], None]
_Listed = Candidates | Design | str | PathLike[str] | None


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
        why = "with enough reports" if self.enough else "though none has enough reports"
        return f"{self.title}: of {of}, the latest {why}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know about the view."""
        if not self.on_pages:
            why = f"pages show an open period from {STEP} reports of a cell on, so none of these"
            return (self.words, why)
        if self.left_out:
            more = plural(self.left_out, "report is", "reports are")
            return (self.words, f"{more} {_NOT_SHOWN}")
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DecodedParts(Mapping[str, Decoded]):
    """One `Decoded` for each value of a dimension, or for each period; `print` shows them all."""

    by: str
    parts: Mapping[str, Decoded]

    def __getitem__(self, value: str) -> Decoded:
        return self.parts[value]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"<DecodedParts by {self.by}: {', '.join(self.parts)}>"

    def __str__(self) -> str:
        """What `rappor decode --by` prints."""
        tables = (f"{self.by} {value}\n{found}" for value, found in self.parts.items())
        return "\n\n".join(tables)


class Workspace:
    """A data folder to analyse. Each call reads it again; only `export` writes, to its audit log.

    Args:
        data: the folder.
        today: the day, which decides which periods are still open; default: today in UTC.
        exact: whether to count every stored report, also those of open periods that pages do not
            show yet.
    """

    def __init__(
        self, data: str | PathLike[str], today: date | None = None, *, exact: bool = False
    ) -> None:
        """Look whether there is a store, or StoreError."""
        self._data, self._today, self._exact = data, today, exact
        with closing(self._opened()):
            pass

    @property
    def collections(self) -> tuple[str, ...]:
        """The names of the collections."""
        with closing(self._opened()) as store:
            return tuple(collection.name for collection in _registry(store).newest())

    def collection(self, name: str, version: int | None = None) -> Collection:
        """A collection's definition, by default the newest version; ParamsError without one."""
        with closing(self._opened()) as store:
            return _known(_registry(store), name).get(name, version)

    def __repr__(self) -> str:
        return f"<Workspace {self._data}: {', '.join(self.collections) or 'no collections yet'}>"

    def periods(self, name: str, version: int | None = None) -> tuple[str, ...]:
        """The stored periods of a version, oldest first; default: the newest with reports."""
        return self.view(name, period=ALL, version=version).stored

    def dimensions(self, name: str, version: int | None = None) -> dict[str, tuple[str, ...]]:
        """The values of each dimension that the stored reports of a version have."""
        cells = self.view(name, period=ALL, version=version).cells
        found: dict[str, set[str]] = {}
        for cell in cells:
            for dimension, value in cell.cell.pairs:
                found.setdefault(dimension, set()).add(value)
        return {dimension: tuple(sorted(values)) for dimension, values in found.items()}

    def counts(
        self,
        name: str,
        *,
        period: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
    ) -> list[Counts]:
        """The counts of a view (see `view`): one Counts for each (p, q), for `rappor.decode`."""
        return self.view(name, period=period, dimensions=dimensions, version=version).counts

    def export(
        self,
        name: str,
        output: str | PathLike[str],
        *,
        period: str | None = None,
        version: int | None = None,
        reports: bool = False,
        force: bool = False,
    ) -> int:
        """Write all stored counts, or the kept reports, as `rappor export` does.

        The audit log of the store records who exported what: this is the only thing that a
        Workspace writes to its folder.

        Args:
            name: the collection.
            output: the file: .csv or .parquet, for counts also .npz.
            period: a period, "FROM..TO" or "all" (the default), which are added up.
            version: of the collection; default: the newest.
            reports: write the kept reports instead of counts.
            force: replace an existing file.

        Returns:
            The number of reports.
        """
        path = Path(output).expanduser()
        check_export(path, reports=reports)
        if path.is_file() and not force:
            raise ParamsError(f"{path}: exists already; force=True replaces it")
        with closing(open_store(self._data, read_only=False)) as store:
            collection = _known(_registry(store), name).get(name, version)
            chosen = export_periods(store, collection, *_days(period or ALL))
            return export(store, collection, chosen, path, reports=reports, actor=actor())

    def view(
        self,
        name: str,
        *,
        period: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        candidates: int = 0,
    ) -> StoredView:
        """The stored counts of a collection.

        Args:
            name: the collection.
            period: a period, "FROM..TO" or "all", which are added up; by default the latest period
                with enough reports.
            dimensions: only reports with these values, such as {"country": "NZ"}.
            version: of the collection; default: the newest that has reports.
            candidates: how many strings will be tested, which decides how many reports are enough.

        Raises:
            ParamsError: there is no such collection, version or dimension.
            DecodeError: there are no such reports.
        """
        with closing(self._opened()) as store:
            collection, everything, left_out = self._read(store, name, version)
            on_pages = bool(everything)
            if not everything:
                everything, left_out = store.counts(name, collection.version), {}
        stored = tuple(sorted({cell.cell.period for cell in everything}))
        chosen = dict(dimensions or {})
        _check_dimensions(chosen, collection)
        title = f"{collection.name} v{collection.version}"
        enough = True
        counted = _summed(everything)
        shown = default_period(collection, counted, values_tested(collection, candidates))
        if shown is None:
            raise DecodeError(f"nothing to decode in {title}: it has no reports yet")
        if period is None:
            periods, enough = {shown.period}, shown.enough
        else:
            known = {*stored, *(key.period for key in left_out)}
            periods = {each for each in known if within(each, *_days(period))}

        def is_asked_for(key: CellKey) -> bool:
            return key.period in periods and chosen.items() <= dict(key.pairs).items()

        cells = tuple(cell for cell in everything if is_asked_for(cell.cell))
        waiting = sum(more for key, more in left_out.items() if is_asked_for(key))
        if not cells:
            there = f"its periods are {stored[0]} to {stored[-1]}"
            if waiting:
                there = f"{plural(waiting, 'report is', 'reports are')} {_NOT_SHOWN}"
            elif periods:
                there = f"no report has {' and '.join(f'{k} {v}' for k, v in chosen.items())} there"
            raise DecodeError(f"nothing to decode in {title}: {there}")
        found = tuple(sorted({cell.cell.period for cell in cells}))
        return StoredView(
            collection=collection,
            periods=found,
            dimensions=chosen,
            stored=stored,
            is_default=period is None,
            enough=enough,
            left_out=waiting,
            on_pages=on_pages,
            cells=cells,
        )

    @overload
    def decode(
        self,
        name: str,
        candidates: LookedFor = None,
        *,
        by: None = None,
        period: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "fdr",
        alpha: float = 0.05,
        method: Method = "auto",
        overlap: Overlap = "bound",
        progress: Progress | None = None,
    ) -> Decoded: ...
    @overload
    def decode(
        self,
        name: str,
        candidates: LookedFor = None,
        *,
        by: str,
        period: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "fdr",
        alpha: float = 0.05,
        method: Method = "auto",
        overlap: Overlap = "bound",
        progress: Progress | None = None,
    ) -> DecodedParts: ...
    def decode(
        self,
        name: str,
        candidates: LookedFor = None,
        *,
        by: str | None = None,
        period: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "fdr",
        alpha: float = 0.05,
        method: Method = "auto",
        overlap: Overlap = "bound",
        progress: Progress | None = None,
    ) -> Decoded | DecodedParts:
        """Decode a collection as its page does; the first of `notes` names the periods.

        Args:
            name: the collection.
            candidates: for strings, as for `rappor.decode`; by default the newest list that was
                saved on the page Candidates. Other kinds declare their values.
            by: a dimension, whose values are decoded each by itself; or "period".
            period: see `view`; by default the latest period with enough reports, and all of them
                with by="period".
            dimensions: see `view`.
            version: see `view`.
            correction: see `rappor.decode`.
            alpha: see `rappor.decode`.
            method: see `rappor.decode`.
            overlap: see `rappor.decode`.
            progress: called with a line of text after each step.

        Returns:
            A `Decoded`; with `by`, a mapping of one for each value.
        """
        listed, said = self._listed(name, candidates)
        view = self.view(
            name,
            period=ALL if period is None and by == BY_PERIOD else period,
            dimensions=dimensions,
            version=version,
            candidates=list_size(listed),
        )

        def decoded(part: StoredView) -> Decoded:
            found = decode_view(
                part,
                listed,
                correction=correction,
                alpha=alpha,
                method=method,
                overlap=overlap,
                progress=progress,
            )
            return replace(found, notes=(*found.notes, *said))

        if by is None:
            return decoded(view)
        return DecodedParts(by, {value: decoded(part) for value, part in view.by(by).items()})

    def compare(
        self,
        name: str,
        candidates: LookedFor = None,
        *,
        period: str | None = None,
        against: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "fdr",
        alpha: float = 0.05,
        progress: Progress | None = None,
    ) -> Compared:
        """Compare two periods, or two values of a dimension, as the Results page does.

        A difference is the newer side minus the older one, whichever is named first. Between two
        values of a dimension it is the one in `dimensions` minus the one in `against`.

        Args:
            name: the collection.
            candidates: see `decode`.
            period: see `view`; by default the latest period with enough reports.
            against: a period, "FROM..TO", or a value such as "country=AU"; by default the period
                before.
            dimensions: see `view`.
            version: see `view`.
            correction: see `rappor.compare`.
            alpha: see `rappor.compare`.
            progress: called with a line of text after each step.
        """
        listed, said = self._listed(name, candidates)
        sides = self.sides(
            name,
            period=period,
            against=against,
            dimensions=dimensions,
            version=version,
            candidates=list_size(listed),
        )
        found = compare_views(*sides, listed, correction=correction, alpha=alpha, progress=progress)
        return replace(found, notes=(*found.notes, *said))

    def sides(
        self,
        name: str,
        *,
        period: str | None = None,
        against: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        candidates: int = 0,
    ) -> tuple[StoredView, StoredView]:
        """The two sides of `compare`: the newer, then the older.

        Raises:
            DecodeError: there is nothing to compare with, or both sides share reports.
        """
        chosen = dict(dimensions or {})
        one = self.view(
            name, period=period, dimensions=chosen, version=version, candidates=candidates
        )
        key, is_value, value = (against or "").partition("=")
        if is_value:
            if key not in chosen:
                raise DecodeError(f"{value} is part of all: choose a {key} to compare with it")
            chosen[key] = value
            against = f"{one.periods[0]}..{one.periods[-1]}"
        elif against is None:
            earlier = [each for each in one.stored if each < one.periods[0]]
            if not earlier:
                raise DecodeError(
                    f"{one.title}: there is no earlier period to compare with; choose what to "
                    "compare with"
                )
            against = earlier[-1]
        other = self.view(name, period=against, dimensions=chosen, version=one.collection.version)
        if {cell.cell for cell in one.cells} & {cell.cell for cell in other.cells}:
            raise DecodeError(f"{other.where} and {one.where} have reports in common")
        return (other, one) if is_older(one.periods, other.periods) else (one, other)

    def candidates(self, name: str, version: int | None = None) -> Candidates:
        """A list that was saved on the page Candidates, by default the newest.

        Raises:
            DecodeError: there is no such list.
        """
        saved = saved_candidates(self._data, name, version)
        if saved is None:
            which = "no list" if version is None else f"no version {version} of a list"
            raise DecodeError(f"the data folder has {which} of candidates for {show(name)}")
        return Candidates.of(saved.strings)

    def _listed(self, name: str, candidates: LookedFor) -> tuple[_Listed, tuple[str, ...]]:
        """The candidates, and a note if they are those of the data folder."""
        if candidates is not None or self.collection(name).kind != "string":
            return read_candidates(candidates), ()
        saved = saved_candidates(self._data, name)
        if saved is None:
            return None, ()
        size = plural(len(saved.strings), "string", "strings")
        said = f"the candidates are version {saved.version} of the list of {name}: {size}"
        return Candidates.of(saved.strings), (said,)

    def _opened(self) -> Store:
        return open_store(self._data, read_only=True)

    def _read(
        self, store: Store, name: str, version: int | None
    ) -> tuple[Collection, list[StoredCounts], dict[CellKey, int]]:
        """A version, by default the newest with reports; its counts, and what they leave out."""
        registry = _known(_registry(store), name)
        newest = registry.get(name, version)
        versions = [newest]
        if version is None:
            versions = [item for item in reversed(registry.all()) if item.name == name]
        released = ReleasedCounts(Path(self._data).expanduser())
        today = self._today or datetime.now(UTC).date()
        found: tuple[Collection, list[StoredCounts], dict[CellKey, int]] | None = None
        for collection in versions:
            cells, left_out = released.as_shown(store, today, name, collection.version)
            if self._exact:
                cells, left_out = store.counts(name, collection.version), {}
            if cells:
                return collection, cells, left_out
            if found is None or (left_out and not found[2]):
                found = (collection, cells, left_out)
        if found is None:
            raise ParamsError(f"the store has no collection {show(name)}")
        return found


def open(data: str | PathLike[str], *, exact: bool = False) -> Workspace:
    """Open a data folder to analyse it; StoreError if it has no store.

    Args:
        data: the folder.
        exact: whether to count every stored report, also those of open periods that pages do not
            show yet.
    """
    return Workspace(data, exact=exact)


def decode_view(
    view: StoredView,
    candidates: _Listed,
    *,
    correction: Correction = "fdr",
    alpha: float = 0.05,
    method: Method = "auto",
    overlap: Overlap = "bound",
    progress: Progress | None = None,
) -> Decoded:
    """Decode a view; the first of `notes` names it."""
    found = decode(
        view.counts,
        looked_for(view, candidates),
        correction=correction,
        alpha=alpha,
        method=method,
        overlap=overlap,
        null_reports=view.collection.null_reports,
        progress=progress,
    )
    return replace(found, notes=(*view.notes, *found.notes), title=view.title)


def compare_views(
    new: StoredView,
    old: StoredView,
    candidates: _Listed,
    *,
    correction: Correction = "fdr",
    alpha: float = 0.05,
    progress: Progress | None = None,
) -> Compared:
    """Compare two views: shares of the first minus shares of the second."""
    found = compare(
        single(new.counts),
        single(old.counts),
        looked_for(new, candidates),
        correction=correction,
        alpha=alpha,
        null_reports=new.collection.null_reports,
        names=(new.where, old.where),
        progress=progress,
    )
    title = f"{new.collection.name} v{new.collection.version}"
    said = f"{title}: {new.where} minus {old.where}"
    return replace(found, notes=(said, *found.notes), title=title)


def looked_for(view: StoredView, candidates: _Listed) -> Any:
    """What `decode` looks for: the placed candidates, the categories or the ranges."""
    collection = view.collection
    if collection.kind != "string":
        if candidates is not None:
            raise DecodeError(
                f"{collection.name} is of kind {collection.kind}: it needs no candidates"
            )
        return collection.categories or collection.ranges
    if candidates is None:
        raise DecodeError(
            f"strings are decoded against candidates, and the data folder has no list for "
            f"{collection.name}: give a list, a file or a map, or save a list on the page "
            "Candidates"
        )
    if isinstance(candidates, Design):
        return candidates
    if isinstance(candidates, Candidates):
        return build_design(candidates, collection.params, collection.dialect)
    return read_map(candidates, collection.params)


def read_candidates(
    candidates: LookedFor,
) -> _Listed:
    """Candidates in memory; a map stays a path, because only a version's parameters read it."""
    if candidates is None or isinstance(candidates, (Candidates, Design)):
        return candidates
    if isinstance(candidates, (str, PathLike)):
        is_map = str(candidates).lower().endswith("map.csv")
        return candidates if is_map else Candidates.read(candidates)
    return Candidates.of(candidates)


def list_size(listed: _Listed) -> int:
    """The number of candidates."""
    if isinstance(listed, Candidates):
        return len(listed)
    if isinstance(listed, Design):
        return len(listed.strings)
    if listed is None:
        return 0
    return sum(bool(line.strip()) for line in read_text(listed).splitlines())  # of a map


def _registry(store: Store) -> Registry:
    return Registry(Collection.from_toml(definition.toml) for definition in store.definitions())


def _known(registry: Registry, name: str) -> Registry:
    """The registry, if it has the collection."""
    if name not in registry:
        known = ", ".join(dict.fromkeys(item.name for item in registry)) or "none yet"
        raise ParamsError(f"the store has no collection {show(name)}; it has: {known}")
    return registry


def _summed(cells: Iterable[StoredCounts]) -> list[tuple[str, int]]:
    """The reports of each period over all cells."""
    found: dict[str, int] = {}
    for cell in cells:
        found[cell.cell.period] = found.get(cell.cell.period, 0) + cell.reports
    return list(found.items())


def _days(period: str) -> tuple[date | None, date | None]:
    """The first and the last day of a period, of "FROM..TO", or of all."""
    if period == ALL:
        return None, None
    first, dots, last = period.partition("..")
    start, end = days_of(first)[0], days_of(last if dots else first)[1]
    if end < start:
        raise ParamsError(f"{period} ends before it begins")
    return start, end


def _check_dimensions(chosen: Mapping[str, str], collection: Collection) -> None:
    for name in chosen:
        if name not in collection.dimensions:
            known = ", ".join(sorted(collection.dimensions)) or "none"
            raise ParamsError(f"{collection.name} has no dimension {show(name)}; it has: {known}")
