"""PageQuery: what the address of a page asks for, and what else it could ask for.

Two people who open one address see the same. An address leaves out default values and names its
fields in one order, so that each query has one address.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from rappor.charts.numbers import show_percent
from rappor.checks import show
from rappor.collection import Collection
from rappor.collection.periods import check_period, is_older
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import TooManyJobs
from rappor.dashboard.page_access import Endpoint
from rappor.dashboard.problems import problem
from rappor.dashboard.snapshot import Dimensions
from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.saved import CandidateVersion
from rappor.dashboard.templating import as_sentence
from rappor.decoding import options
from rappor.errors import ParamsError
from rappor.planning.reach import default_period, values_tested

UNITS = {"share": "Share", "count": "Count"}
SCALES = {"linear": "Linear", "log": "Log"}
CORRECTIONS: dict[str, str] = {
    name: correction.title for name, correction in options.CORRECTIONS.items()
}
METHODS = {"auto": "auto", "lasso": "lasso, the paper's"}
DEFAULT_SORT = "-estimate"
PAGE_ROWS = 200
_PREFIX = "dim."  # before the name of a dimension that is also the name of a field
_USUAL = {
    "unit": "share",
    "scale": "linear",
    "correction": "fdr",
    "alpha": "0.05",
    "method": "auto",
    "sort": DEFAULT_SORT,
    "page": "1",
}
PARAMETERS = frozenset(
    {"from", "to", "vs", "candidates", "q", "version", "show", "anyway", "format", *_USUAL}
)
# Columns that a table can be sorted by: those of strings, and those of a comparison.
SORTS = (
    "place",
    "string",
    "estimate",
    "low",
    "std_error",
    "p_value",
    "adjusted_p_value",
    "snr",
    "detected",
    "other",
    "difference",
)
_MAX_SEARCH = 400  # characters of a search
_MIN_ALPHA = 1e-9  # still a probability after a division by a million candidates


class Selection(NamedTuple):
    """The reports that are decoded: periods, and values of dimensions."""

    periods: tuple[str, ...]
    dimensions: Dimensions

    @property
    def words(self) -> str:
        """The selection in words.

        >>> Selection(("2026-W27",), (("country", "NZ"),)).words
        '2026-W27, NZ'
        """
        time = " – ".join(
            dict.fromkeys((self.periods[0], self.periods[-1])) if self.periods else ()
        )
        return ", ".join(part for part in (time, *(value for _, value in self.dimensions)) if part)


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The query of an address.

    Attributes:
        collection: its name.
        version: its version.
        first: the first period; "" if nothing is stored.
        last: the last period.
        periods: the stored periods from first to last, which are summed.
        dimensions: the chosen values, by name.
        vs: what it is compared with: a period, "P..Q" or "country=NZ".
        against: the reports behind `vs`; None if nothing is compared.
        unit: share or count.
        scale: linear or log.
        correction: fdr, bh, holm, bonferroni or none.
        alpha: the error rate.
        method: auto or lasso.
        candidates: the version of the list of candidates; None if there is none.
        q: the text that the table is searched for.
        sort: a column; with - before it, the largest value comes first.
        page: the page of the table, from 1 on.
        every: whether the table shows all rows, not only those of the chart.
        anyway: whether to decode even if there are too few reports.
        usual: default values, which an address leaves out.
    """

    collection: str
    version: int
    first: str = ""
    last: str = ""
    periods: tuple[str, ...] = ()
    dimensions: Dimensions = ()
    vs: str = ""
    against: Selection | None = None
    unit: str = "share"
    scale: str = "linear"
    correction: str = "fdr"
    alpha: float = 0.05
    method: str = "auto"
    candidates: int | None = None
    q: str = ""
    sort: str = DEFAULT_SORT
    page: int = 1
    every: bool = False
    anyway: bool = False
    usual: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(
        cls, params: Mapping[str, str], catalogue: Catalogue, state: DashboardState, name: str
    ) -> PageQuery:
        """Read the query of an address, and check each part of it.

        Args:
            params: the parameters after the ? of the address.
            catalogue: what is stored.
            state: the lists of candidates.
            name: the collection.

        Raises:
            ParamsError: names the field, what was given and what is allowed.
        """
        return _read(params, catalogue, state, name)

    @property
    def selection(self) -> Selection:
        """The reports that are decoded."""
        return Selection(self.periods, self.dimensions)

    @property
    def difference(self) -> tuple[Selection, Selection]:
        """The two sides of a comparison: a difference is the first minus the second.

        The newer comes first, whichever is shown. Two values of a dimension keep their order.
        """
        shown, other = self.selection, self.against or Selection((), ())
        return (other, shown) if is_older(shown.periods, other.periods) else (shown, other)

    @property
    def key(self) -> str:
        """A digest of everything that changes the decoded numbers, and of nothing else."""
        said = [
            options.DECODER_VERSION,
            self.collection,
            self.version,
            self.periods,
            self.dimensions,
            self.against,
            self.correction,
            self.alpha,
            self.method,
            self.candidates,
        ]
        text = json.dumps(said, ensure_ascii=True, allow_nan=False)
        return blake2b(text.encode(), digest_size=16, person=b"rappor-view").hexdigest()

    def fields(self, **changes: Any) -> dict[str, str]:
        """The fields of its address, in order, without default values.

        Args:
            changes: other values, by attribute. Any change but one of `page` goes back to page 1.
        """
        query = replace(self, **({"page": 1} | changes)) if changes else self
        said = {
            "from": query.first,
            "to": query.last,
            **{parameter(key): value for key, value in query.dimensions},
            "vs": query.vs,
            "unit": query.unit,
            "scale": query.scale,
            "correction": query.correction,
            "alpha": repr(query.alpha),
            "method": query.method,
            "candidates": "" if query.candidates is None else str(query.candidates),
            "q": query.q,
            "sort": query.sort,
            "version": str(query.version),
            "show": "all" if query.every else "",
            "anyway": "1" if query.anyway else "",
            "page": str(query.page),
        }
        usual = {**_USUAL, **self.usual, "from": query.last}
        return {key: value for key, value in said.items() if value and value != usual.get(key)}

    def query_string(self, **changes: Any) -> str:
        """The query string of its address, with changes as in `fields`.

        >>> shown = PageQuery("homepage", 1, "2026-W27", "2026-W28", usual={"version": "1"})
        >>> shown.query_string(unit="count", dimensions=(("country", "NZ"),))
        'from=2026-W27&to=2026-W28&country=NZ&unit=count'
        """
        return urlencode(self.fields(**changes))

    def path(self, ending: str = "", **changes: Any) -> str:
        """Its address, on a page of the collection (such as "/trends") or as a file (".csv")."""
        params = self.query_string(**changes)
        return f"/collections/{self.collection}{ending}{'?' if params else ''}{params}"

    @property
    def carried(self) -> str:
        """The query string that all pages of a collection share: periods, dimensions, decoding.

        >>> PageQuery("homepage", 1, "2026-W27", "2026-W28", q="x", usual={"version": "1"}).carried
        'from=2026-W27&to=2026-W28'
        """
        usual = {"unit": "share", "scale": "linear", "sort": self.usual.get("sort", DEFAULT_SORT)}
        return self.query_string(vs="", q="", every=False, **usual)

    @property
    def decoding(self) -> str:
        """How it is decoded, in one line.

        >>> PageQuery("homepage", 1, alpha=0.05).decoding.replace("\u00a0", " ")
        'Adaptive FDR 5 % · method auto'
        """
        parts = [f"{CORRECTIONS[self.correction]} {show_percent(self.alpha)}"]
        if self.candidates is not None:
            parts.append(f"candidates v{self.candidates}")
        return " · ".join([*parts, f"method {self.method}"])


def parameter(dimension: str) -> str:
    """The field of a dimension in an address: its name, unless that is another field.

    >>> parameter("country"), parameter("from")
    ('country', 'dim.from')
    """
    return f"{_PREFIX}{dimension}" if dimension in PARAMETERS else dimension


def between(periods: Iterable[str], first: str, last: str) -> tuple[str, ...]:
    """The periods from one to another, both included; periods sort by their text.

    >>> between(["2026-W26", "2026-W27", "2026-W28"], "2026-W27", "2026-W28")
    ('2026-W27', '2026-W28')
    """
    return tuple(period for period in periods if first <= period <= last)


def _read(
    params: Mapping[str, str], catalogue: Catalogue, state: DashboardState, name: str
) -> PageQuery:
    collection = _collection(params, catalogue, name)
    counted = catalogue.periods(name, collection.version)
    stored = [count.period for count in counted]
    lists = _lists(state, collection)
    candidates = _candidates(params, lists)
    size = values_tested(collection, list_size(state, collection, candidates))
    shown = default_period(collection, counted, size)
    usual_period = shown.period if shown else ""
    last = _period(params, "to", collection, usual_period)
    first = _period(params, "from", collection, last)
    first, last = sorted((first, last))
    dimensions = _dimensions(params, collection, catalogue)
    side = Selection(between(stored, first, last), dimensions)
    vs = params.get("vs", "")
    usual = {
        "to": usual_period,
        "version": str(_newest(catalogue, name)),
        "candidates": str(lists[-1]) if lists else "",
    }
    # Ranges are read from low to high, all else from large to small.
    usual["sort"] = "place" if collection.kind == "ordinal" else DEFAULT_SORT
    method = one_of(params, "method", METHODS)
    if collection.kind != "string":
        method = "auto"
    return PageQuery(
        collection=name,
        version=collection.version,
        first=first,
        last=last,
        periods=side.periods,
        dimensions=dimensions,
        vs=vs,
        against=_against(vs, side, stored, collection) if vs else None,
        unit=one_of(params, "unit", UNITS),
        scale=one_of(params, "scale", SCALES),
        correction=one_of(params, "correction", CORRECTIONS),
        alpha=_alpha(params.get("alpha", "")),
        method=method,
        candidates=candidates,
        q=params.get("q", "").strip()[:_MAX_SEARCH],
        sort=_sort(params.get("sort", "") or usual["sort"]),
        page=_whole(params, "page"),
        every=params.get("show", "") == "all",
        anyway=params.get("anyway", "") == "1",
        usual=usual,
    )


def _newest(catalogue: Catalogue, name: str) -> int:
    """The newest version that has reports, or the newest of all."""
    versions = catalogue.versions(name)
    with_reports = [version for version in versions if catalogue.periods(name, version)]
    return (with_reports or versions)[-1]


def _collection(params: Mapping[str, str], catalogue: Catalogue, name: str) -> Collection:
    version = _whole(params, "version") if params.get("version") else _newest(catalogue, name)
    return catalogue.get(name, version)


def _whole(params: Mapping[str, str], field: str) -> int:
    text = params.get(field, "") or "1"
    if text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= 1:
        return int(text)
    raise ParamsError(f"{field} must be a whole number from 1, got {show(text)}")


def _period(params: Mapping[str, str], field: str, collection: Collection, usual: str) -> str:
    text = params.get(field, "") or usual
    if not text:
        return ""
    try:
        return check_period(collection.period, text)
    except ParamsError as error:
        raise ParamsError(f"{field}: {error}") from None


def one_of(
    params: Mapping[str, str], field: str, allowed: Mapping[str, str] | Sequence[str]
) -> str:
    """The value of a field of an address; the first that is allowed if it is not given."""
    text = params.get(field, "") or next(iter(allowed))
    if text not in allowed:
        raise AddressError(f"{field} must be one of {', '.join(allowed)}; got {show(text)}")
    return text


def _alpha(text: str) -> float:
    """Read an error rate, also in percent.

    >>> _alpha(""), _alpha("0.01"), _alpha("1 %")
    (0.05, 0.01, 0.01)
    """
    if not text:
        return 0.05
    number, percent, _ = text.partition("%")
    try:
        alpha = float(number) / (100 if percent else 1)
    except ValueError:
        alpha = math.nan
    if not _MIN_ALPHA <= alpha < 1:
        raise ParamsError(
            f"alpha must be a number from {_MIN_ALPHA:g} on and below 1, got {show(text)}"
        )
    return alpha


def _sort(text: str) -> str:
    if text.removeprefix("-") not in SORTS:
        raise ParamsError(f"sort must be one of {', '.join(SORTS)}; got {show(text)}")
    return text


def _dimensions(
    params: Mapping[str, str], collection: Collection, catalogue: Catalogue
) -> Dimensions:
    found = []
    for name in sorted(collection.dimensions):
        value = params.get(parameter(name), "")
        if value:
            found.append((name, _value(name, value, collection, catalogue)))
    return tuple(found)


def _value(
    name: str, value: str, collection: Collection, catalogue: Catalogue | None = None
) -> str:
    allowed = {*collection.dimensions[name], "other"}
    if catalogue is not None:
        allowed.update(catalogue.values(collection.name, collection.version, name))
    if value not in allowed:
        raise ParamsError(f"{name} must be one of {', '.join(sorted(allowed))}; got {show(value)}")
    return value


def _against(vs: str, side: Selection, stored: Sequence[str], collection: Collection) -> Selection:
    """The other side of a comparison, which shares no report with the first."""
    name, is_dimension, value = vs.partition("=")
    if is_dimension:
        if name not in collection.dimensions:
            known = ", ".join(sorted(collection.dimensions)) or "none"
            raise ParamsError(f"vs: there is no dimension {show(name)}; there is: {known}")
        chosen = dict(side.dimensions)
        if name not in chosen:
            raise ParamsError(f"vs: {show(value)} is part of all: choose a {name} to compare first")
        if chosen[name] == _value(name, value, collection):
            raise ParamsError(f"vs: {show(value)} is what is shown: choose another {name}")
        return Selection(side.periods, tuple(sorted((chosen | {name: value}).items())))
    first, dots, last = vs.partition("..")
    params = {"vs": first, "to": last if dots else first}
    first, last = (_period(params, name, collection, "") for name in ("vs", "to"))
    periods = between(stored, *sorted((first, last)))
    if set(periods) & set(side.periods):
        raise ParamsError(f"vs: {vs} is part of what is shown: choose other periods")
    return Selection(periods, side.dimensions)


def list_size(state: DashboardState, collection: Collection, version: int | None) -> int:
    """The number of candidates in a version of a collection's list; 0 if there is none."""
    if collection.kind != "string" or version is None:
        return 0
    versions = state.candidate_versions(collection.name)
    return next((listed.size for listed in versions if listed.version == version), 0)


def _lists(state: DashboardState, collection: Collection) -> list[int]:
    """The versions of the list of candidates, oldest first."""
    if collection.kind != "string":
        return []
    return sorted(version.version for version in state.candidate_versions(collection.name))


def _candidates(params: Mapping[str, str], lists: Sequence[int]) -> int | None:
    if not lists:
        return None
    text = params.get("candidates", "").removeprefix("v")
    if not text:
        return lists[-1]
    if text not in map(str, lists):
        known = ", ".join(map(str, lists))
        raise ParamsError(f"candidates must be one of the versions {known}; got {show(text)}")
    return int(text)


def moved(query: PageQuery, stored: Sequence[str], by: int, page: str = "") -> str:
    """The address of the same number of periods, earlier (-1) or later (1); "" if there are none.

    Args:
        query: the present query.
        stored: all stored periods, oldest first.
        by: how many periods to move.
        page: the page of the collection, such as "/trends".

    >>> weeks = ["2026-W26", "2026-W27", "2026-W28"]
    >>> shown = PageQuery("homepage", 1, "2026-W27", "2026-W27", usual={"to": "2026-W28"})
    >>> moved(shown, weeks, -1, "/trends"), moved(shown, weeks, 2)
    ('/collections/homepage/trends?to=2026-W26&version=1', '')
    """
    shown = between(stored, query.first, query.last)
    if not shown:
        return ""
    places = list(stored)
    first, last = (places.index(shown[end]) + by for end in (0, -1))
    if first < 0 or last >= len(places):
        return ""
    vs = query.vs if "=" in query.vs else ""  # the other periods may be among the new ones
    return query.path(page, first=places[first], last=places[last], vs=vs)


class Dimension(NamedTuple):
    """A dimension to choose from."""

    name: str
    parameter: str
    values: Sequence[str]
    chosen: str


class Choices(NamedTuple):
    """The choices that a page offers.

    Attributes:
        periods: stored periods, newest first.
        dimensions: the dimensions with their stored values.
        lists: versions of the list of candidates, newest first.
        corrections: names by value.
        methods: names by value; empty if there is no choice.
        before: the address one period earlier; empty if there is none.
        after: the address one period later.
    """

    periods: Sequence[str]
    dimensions: Sequence[Dimension]
    lists: Sequence[CandidateVersion]
    corrections: dict[str, str]
    methods: dict[str, str]
    before: str
    after: str


def choices(context: Context, query: PageQuery, periods: Sequence[str], page: str) -> Choices:
    """The choices on a page (such as "/trends"), of these stored periods."""
    collection = context.catalogue.get(query.collection, query.version)
    chosen = dict(query.dimensions)
    named = []
    for name in sorted(collection.dimensions):
        stored = context.catalogue.values(query.collection, query.version, name)
        here = chosen.get(name, "")
        values = list(dict.fromkeys([*stored, here] if here else stored))
        named.append(Dimension(name, parameter(name), values, here))
    is_string = collection.kind == "string"
    lists = context.state.candidate_versions(query.collection) if is_string else []
    return Choices(
        list(periods)[::-1],
        named,
        lists,
        CORRECTIONS,
        METHODS if is_string else {},
        moved(query, periods, -1, page),
        moved(query, periods, 1, page),
    )


Answer = Callable[[Context, Request, Visitor, PageQuery], Response]


class AddressError(ParamsError):
    """A part of an address that cannot be read."""


def with_query(answer: Answer, *, ignored: Container[str] = ()) -> Endpoint:
    """An endpoint that reads the query of its address; it says what is wrong with the address.

    Args:
        answer: answers with the query.
        ignored: fields of the address that mean nothing on this page.
    """

    def endpoint(context: Context, request: Request, visitor: Visitor) -> Response:
        name = request.path_params["name"]
        context.catalogue.get(name)  # ParamsError: not there
        params = {
            field: text for field, text in request.query_params.items() if field not in ignored
        }
        try:
            try:
                query = PageQuery.of(params, context.catalogue, context.state, name)
            except ParamsError as error:
                raise AddressError(str(error)) from None
            return answer(context, request, visitor, query)
        except AddressError as error:
            title = "This address cannot be read"
            return problem(context, request, visitor, 400, title, as_sentence(str(error)))
        except TooManyJobs as error:
            return problem(context, request, visitor, 503, "Too much at once", f"{error}.")

    return endpoint
