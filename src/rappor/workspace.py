"""`rappor.open("data")`: decode, compare and associate the collections of a data folder.

The command line and the demo go through this module. It shows the periods and the counts that the
pages show: by default the latest period with enough reports (`rappor.planning.reach`), and of
periods that are still open only what pages may show (`rappor.store.released`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from typing import Any, Unpack, overload

from rappor.aggregate.counts import Counts
from rappor.aggregate.store_export import check_export, export, export_periods
from rappor.aggregate.stored_counts import BY_PERIOD
from rappor.checks import plural, show
from rappor.collection import Collection, Registry
from rappor.decoding.association import Association
from rappor.decoding.candidates import Candidates
from rappor.decoding.differences import Compared
from rappor.decoding.field_design import FieldValues
from rappor.decoding.field_lists import field_lists
from rappor.decoding.options import Correction
from rappor.decoding.result import Decoded
from rappor.decoding.saved_candidates import saved_candidates
from rappor.decoding.tuple_design import field_candidates, values_by_field
from rappor.errors import DecodeError, ParamsError
from rappor.host import actor
from rappor.store import CellKey, Store, StoredCounts, open_store
from rappor.store.url import is_url, public_url
from rappor.stored_view import (
    ALL,
    StoredSource,
    StoredView,
    compared_with,
    days_in,
    in_order,
    sides_by,
)
from rappor.view_results import (
    ComparedParts,
    DecodedParts,
    DecodeOptions,
    Listed,
    LookedFor,
    Progress,
    associate_view,
    compare_views,
    decode_view,
    list_size,
    read_candidates,
)

__all__ = ["ComparedParts", "DecodedParts", "Workspace", "open"]


class Workspace:
    """A store to analyse. Each call reads it again; only `export` writes, to its audit log.

    Args:
        data: the data folder, or the URL of a PostgreSQL database.
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
        names = ", ".join(self.collections) or "no collections yet"
        return f"<Workspace {_shown(self._data)}: {names}>"

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
            chosen = export_periods(store, collection, *days_in(period or ALL))
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
        return self.source(name, version).view(period, dimensions, candidates)

    def source(self, name: str, version: int | None = None) -> StoredSource:
        """The counts of a version, by default the newest with reports, read once for many views."""
        with closing(self._opened()) as store:
            collection, everything, left_out = self._read(store, name, version)
            if everything:
                return StoredSource(collection, everything, left_out)
            return StoredSource(
                collection, store.counts(name, collection.version), {}, on_pages=False
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
        **options: Unpack[DecodeOptions],
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
        **options: Unpack[DecodeOptions],
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
        **options: Unpack[DecodeOptions],
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
            **options: `correction`, `alpha`, `method`, `decoder`, `overlap` and `progress` of
                `rappor.decode`.

        Returns:
            A `Decoded`; with `by`, a mapping of one for each value.
        """
        listed = self._listed(name, candidates)
        view = self.view(
            name,
            period=ALL if period is None and by == BY_PERIOD else period,
            dimensions=dimensions,
            version=version,
            candidates=list_size(listed),
        )

        if by is None:
            return decode_view(view, listed, **options)
        parts = view.by(by).items()
        return DecodedParts(
            by, {value: decode_view(part, listed, **options) for value, part in parts}
        )

    def associate(
        self,
        name: str,
        candidates: Sequence[FieldValues] | Mapping[str, FieldValues] = (None, None),
        *,
        fields: Sequence[str] | None = None,
        period: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "holm",
        alpha: float = 0.05,
    ) -> Association:
        """The joint table of two fields of a collection of kind tuple.

        Args:
            name: the collection.
            candidates: as for `rappor.associate`: a pair, or a mapping by the names of fields. Only
                strings need any; by default those of the newest list that was saved on the page
                Candidates, and a note says so.
            fields: which two fields; by default the only two there are.
            period: see `view`.
            dimensions: see `view`.
            version: see `view`.
            correction: as for `rappor.associate`.
            alpha: as for `rappor.associate`.
        """
        listed = self._field_lists(self.collection(name, version), candidates, fields)
        view = self.view(
            name,
            period=period,
            dimensions=dimensions,
            version=version,
            candidates=sum(len(each) for each in listed.values() if isinstance(each, Candidates)),
        )
        return associate_view(view, listed, fields=fields, correction=correction, alpha=alpha)

    @overload
    def compare(
        self,
        name: str,
        candidates: LookedFor = None,
        *,
        by: None = None,
        period: str | None = None,
        against: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "fdr",
        alpha: float = 0.05,
        progress: Progress | None = None,
    ) -> Compared: ...
    @overload
    def compare(
        self,
        name: str,
        candidates: LookedFor = None,
        *,
        by: str,
        period: str | None = None,
        against: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "fdr",
        alpha: float = 0.05,
        progress: Progress | None = None,
    ) -> ComparedParts: ...
    def compare(
        self,
        name: str,
        candidates: LookedFor = None,
        *,
        by: str | None = None,
        period: str | None = None,
        against: str | None = None,
        dimensions: Mapping[str, str] | None = None,
        version: int | None = None,
        correction: Correction = "fdr",
        alpha: float = 0.05,
        progress: Progress | None = None,
    ) -> Compared | ComparedParts:
        """Compare two periods, or two values of a dimension, as the Results page does.

        A difference is the newer side minus the older one, whichever is named first. Between two
        values of a dimension it is the one in `dimensions` minus the one in `against`.

        Args:
            name: the collection.
            candidates: see `decode`.
            by: a dimension, whose values are compared each by itself: the changes by country.
            period: see `view`; by default the latest period with enough reports.
            against: a period, "FROM..TO", or a value such as "country=AU"; by default the period
                before.
            dimensions: see `view`.
            version: see `view`.
            correction: see `rappor.compare`; with `by`, for each value by itself.
            alpha: see `rappor.compare`.
            progress: called with a line of text after each step.

        Returns:
            A `Compared`; with `by`, a mapping of one for each value that both sides have.
        """
        listed = self._listed(name, candidates)
        sides = self.sides(
            name,
            period=period,
            against=against,
            dimensions=dimensions,
            version=version,
            candidates=list_size(listed),
        )

        asked: dict[str, Any] = {"correction": correction, "alpha": alpha, "progress": progress}
        if by is None:
            return compare_views(*sides, listed, **asked)
        parts = sides_by(*sides, by).items()
        return ComparedParts(by, {one: compare_views(*two, listed, **asked) for one, two in parts})

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
        one = self.view(
            name, period=period, dimensions=dimensions, version=version, candidates=candidates
        )
        where, chosen = compared_with(one, against)
        other = self.view(name, period=where, dimensions=chosen, version=one.collection.version)
        return in_order(one, other)

    def candidates(self, name: str, version: int | None = None) -> Candidates:
        """A list that was saved on the page Candidates, by default the newest.

        Raises:
            DecodeError: there is no such list.
        """
        saved = saved_candidates(self._data, name, version)
        if saved is None:
            which = "no list" if version is None else f"no version {version} of a list"
            raise DecodeError(
                f"the data folder has {which} of candidates for {show(name)}: give one, or save "
                "one on the page Candidates"
            )
        size = plural(len(saved.strings), "string", "strings")
        said = f"the candidates are version {saved.version} of the list of {name}: {size}"
        listed = Candidates.of(saved.strings)
        return replace(listed, notes=(said, *listed.notes))

    def _listed(self, name: str, candidates: LookedFor) -> Listed:
        """The candidates; by default those of the data folder, None if it has none."""
        if candidates is not None or self.collection(name).kind != "string":
            return read_candidates(candidates)
        return None if saved_candidates(self._data, name) is None else self.candidates(name)

    def saved_field_lists(self, name: str, fields: Sequence[str]) -> dict[str, Candidates]:
        """The candidates of some string fields of a tuple, from the newest saved list.

        Raises:
            DecodeError: there is no list, or it has no line for one of the fields.
        """
        views = self.collection(name).tuple_views
        saved = saved_candidates(self._data, name)
        if views is None or saved is None:
            raise DecodeError(
                f"{fields[0]} holds strings, and the data folder has no list for {name}: give "
                "candidates, or save a list on the page Candidates"
            )
        lists = field_lists(views, saved.strings)
        found = {}
        for field in fields:
            if not lists.get(field):
                raise DecodeError(
                    f"{field} holds strings, and the list of {name} has no line {field}=STRING: "
                    "give candidates, or save a list that has some"
                )
            listed = Candidates.of(lists[field])
            size = plural(len(listed), "string", "strings")
            said = (
                f"the candidates of {field} are version {saved.version} of the list of {name}: "
                f"{size}"
            )
            found[field] = replace(listed, notes=(said, *listed.notes))
        return found

    def _field_lists(
        self,
        collection: Collection,
        candidates: Sequence[FieldValues] | Mapping[str, FieldValues],
        fields: Sequence[str] | None,
    ) -> dict[str, FieldValues]:
        """What to look for in two fields; for strings by default what the data folder holds."""
        views = collection.tuple_views
        if views is None:
            return {}
        given = values_by_field(views, fields, candidates)
        strings = {declared.name for declared in views.fields if declared.kind == "string"}
        missing = [name for name in given if name in strings and given[name] is None]
        if missing:
            given |= self.saved_field_lists(collection.name, missing)
        read = {name: field_candidates(name, given[name]) for name in given if name in strings}
        return {**given, **read}

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
        released = store.released
        today = self._today or datetime.now(UTC).date()
        found: tuple[Collection, list[StoredCounts], dict[CellKey, int]] | None = None
        for collection in versions:
            left_out: dict[CellKey, int] = {}
            if self._exact:
                cells = store.counts(name, collection.version)
            else:
                cells, left_out = released.as_shown(store, today, name, collection.version)
            if cells:
                return collection, cells, left_out
            if found is None or (left_out and not found[2]):
                found = (collection, cells, left_out)
        if found is None:
            raise ParamsError(f"the store has no collection {show(name)}; check the name")
        return found


def open(data: str | PathLike[str], *, exact: bool = False) -> Workspace:
    """Open a store to analyse it; StoreError if there is none.

    Args:
        data: the data folder, or the URL of a PostgreSQL database.
        exact: whether to count every stored report, also those of open periods that pages do not
            show yet.
    """
    return Workspace(data, exact=exact)


def _shown(data: str | PathLike[str]) -> str:
    return public_url(str(data)) if is_url(str(data)) else str(data)


def _registry(store: Store) -> Registry:
    return Registry(Collection.from_toml(definition.toml) for definition in store.definitions())


def _known(registry: Registry, name: str) -> Registry:
    """The registry, if it has the collection."""
    if name not in registry:
        known = ", ".join(dict.fromkeys(item.name for item in registry)) or "none yet"
        raise ParamsError(f"the store has no collection {show(name)}; it has: {known}")
    return registry
