"""Read the query of an address, and say what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response

from rappor.checks import show
from rappor.collection import Collection
from rappor.collection.periods import check_period
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import TooManyJobs
from rappor.dashboard.page_access import Endpoint
from rappor.dashboard.page_query import (
    CORRECTIONS,
    DEFAULT_SORT,
    METHODS,
    SCALES,
    SORTS,
    UNITS,
    PageQuery,
    Selection,
    between,
    parameter,
)
from rappor.dashboard.problems import problem
from rappor.dashboard.snapshot import Dimensions
from rappor.dashboard.state import DashboardState
from rappor.dashboard.templating import as_sentence
from rappor.errors import ParamsError
from rappor.mechanism.kinds import HASHED, KINDS
from rappor.planning.reach import default_period, values_tested

_MAX_SEARCH = 400  # characters of a search
_MIN_ALPHA = 1e-9  # still a probability after a division by a million candidates
DECODED = frozenset(KINDS) - {"tuple"}  # kinds that are decoded; the fields of a tuple are not
_RENAMED = {"unlisted": "undetected_mass"}  # names in addresses of before


class AddressError(ParamsError):
    """A part of an address that cannot be read."""


def current_name(text: str) -> str:
    """What a chart or a column is called now; a sort order keeps its sign.

    >>> current_name("-unlisted"), current_name("reports")
    ('-undetected_mass', 'reports')
    """
    bare = text.removeprefix("-")
    return text.removesuffix(bare) + _RENAMED.get(bare, bare)


def read_query(
    params: Mapping[str, str], catalogue: Catalogue, state: DashboardState, name: str
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
    # An association asks which single pairs depart: as `rappor associate`, it holds every one.
    usual["correction"] = "holm" if collection.kind == "tuple" else "fdr"
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
        correction=_correction(params, usual["correction"]),
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


def _correction(params: Mapping[str, str], usual: str) -> str:
    """The correction that was chosen, or the usual one."""
    return one_of({"correction": params.get("correction", "") or usual}, "correction", CORRECTIONS)


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
    if collection.kind not in HASHED or version is None:
        return 0
    versions = state.candidate_versions(collection.name)
    return next((listed.size for listed in versions if listed.version == version), 0)


def _lists(state: DashboardState, collection: Collection) -> list[int]:
    """The versions of the list of candidates, oldest first."""
    if collection.kind not in HASHED:
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


def _other_page(collection: Collection) -> tuple[str, str]:
    """Title and text for a page that a collection of this kind does not have."""
    name = collection.name
    if collection.kind == "tuple":
        text = f"Open its page Associations, or run rappor associate {name} --data DIR."
        return f"{name} is of kind tuple: its fields are associated, not decoded", text
    text = "An association needs the fields of a tuple. Open the page Results."
    return f"{name} is of kind {collection.kind}: it holds one variable", text


Answer = Callable[[Context, Request, Visitor, PageQuery], Response]


def with_query(
    answer: Answer, *, ignored: Container[str] = (), kinds: Container[str] = DECODED
) -> Endpoint:
    """An endpoint that reads the query of its address; it says what is wrong with the address.

    Args:
        answer: answers with the query.
        ignored: fields of the address that mean nothing on this page.
        kinds: the kinds of collections that the page is for.
    """

    def endpoint(context: Context, request: Request, visitor: Visitor) -> Response:
        name = request.path_params["name"]
        context.catalogue.get(name)  # ParamsError: not there
        params = {
            field: text for field, text in request.query_params.items() if field not in ignored
        }
        try:
            try:
                query = read_query(params, context.catalogue, context.state, name)
            except ParamsError as error:
                raise AddressError(str(error)) from None
            collection = context.catalogue.get(name, query.version)
            if collection.kind not in kinds:
                return problem(context, request, visitor, 404, *_other_page(collection))
            return answer(context, request, visitor, query)
        except AddressError as error:
            title = "This address cannot be read"
            return problem(context, request, visitor, 400, title, as_sentence(str(error)))
        except TooManyJobs as error:
            return problem(context, request, visitor, 503, "Too much at once", f"{error}.")

    return endpoint
