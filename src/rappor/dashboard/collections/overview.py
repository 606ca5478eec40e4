"""The rows of the Collections page: one for each collection, sorted and searched."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from rappor.collection import Collection, period_of
from rappor.dashboard.query_reading import current_name
from rappor.dashboard.snapshot import Entry, Standing
from rappor.decoding.exports import mass_in
from rappor.mechanism.kinds import HASHED
from rappor.planning.reach import ALPHA, about, default_period, reach_of, values_tested
from rappor.privacy import add_up

SPARK_PERIODS, SPARK_WIDTH, SPARK_HEIGHT = 14, 72, 20
_MARGIN = 2.5
KINDS = {
    "string": "strings",
    "category": "categories",
    "boolean": "yes or no",
    "ordinal": "numbers",
    "bits": "predicates",
    "tuple": "tuples",
}
_WITH_REST = ("string", "category")  # kinds with reports that no listed value explains
DEFAULT_SORT = "name"


@dataclass(frozen=True, slots=True)
class Decode:
    """The newest decode of a collection over all dimensions.

    Attributes:
        detected: the number of detected strings.
        undetected_mass: reports that no detected string explains: share, low, high; None if not
            known.
        period: the periods that were decoded, in words.
    """

    detected: int
    undetected_mass: tuple[float, float, float] | None
    period: str


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """One collection.

    Attributes:
        entry: what the store says.
        one: ε of one report.
        ever: ε of all reports about one value.
        current: whether the newest stored period is today's.
        decode: its newest decode; None before the first.
        few: the message about too few reports in the newest period; empty if they suffice.
        pending: whether `rappor.dashboard.prefetch` will decode it.
    """

    entry: Entry
    one: float
    ever: float
    current: bool
    decode: Decode | None
    few: str = ""
    pending: bool = False

    @property
    def collection(self) -> Collection:
        """Its definition."""
        return self.entry.collection

    @property
    def kind(self) -> str:
        """What clients report, in a word."""
        return KINDS[self.collection.kind]

    @property
    def period(self) -> str | None:
        """The newest stored period; None without reports."""
        return self.entry.periods[-1].period if self.entry.periods else None

    @property
    def spark(self) -> Spark | None:
        """The last periods as a line; None without reports."""
        last = [period.reports for period in self.entry.periods[-SPARK_PERIODS:]]
        return spark_of(last) if last else None

    def record(self) -> dict[str, Any]:
        """The row for JSON and CSV."""
        mass = self.decode.undetected_mass if self.decode else None
        low_high = mass or (None, None, None)
        return {
            "collection": self.collection.name,
            "version": self.collection.version,
            "kind": self.collection.kind,
            "owner": self.collection.owner,
            "state": self.entry.standing.value,
            "epsilon_one": self.one,
            "epsilon_infinity": self.ever,
            "period": self.period,
            "reports": self.entry.reports,
            "detected": self.decode.detected if self.decode else None,
            "undetected_mass": low_high[0],
            "undetected_mass_low_95": low_high[1],
            "undetected_mass_high_95": low_high[2],
            "decoded": self.decode.period if self.decode else None,
            "expires": self.collection.expires.isoformat() if self.collection.expires else None,
        }


@dataclass(frozen=True, slots=True)
class Spark:
    """A sparkline: the points of a polyline, and its end."""

    points: str
    x: float
    y: float


def spark_of(values: Sequence[int]) -> Spark:
    """A line from 0 up to the largest value, in a box of 72 by 20.

    >>> spark_of([0, 10])
    Spark(points='2.5,17.5 69.5,2.5', x=69.5, y=2.5)
    """
    top = max(*values, 1)
    width, height = SPARK_WIDTH - 2 * _MARGIN, SPARK_HEIGHT - 2 * _MARGIN
    step = width / max(len(values) - 1, 1)
    first = SPARK_WIDTH - _MARGIN - step * (len(values) - 1)
    places = [
        (round(first + step * index, 1), round(_MARGIN + height * (1 - value / top), 1))
        for index, value in enumerate(values)
    ]
    return Spark(" ".join(f"{x:g},{y:g}" for x, y in places), *places[-1])


@functools.lru_cache(maxsize=4096)
def _epsilons(collection: Collection) -> tuple[float, float]:
    return collection.epsilon_one, collection.epsilon_infinity


def rows_of(
    entries: Sequence[Entry],
    results: Mapping[str, Mapping[str, Any]],
    today: date,
    lists: Mapping[str, int] | None = None,
) -> list[CollectionRow]:
    """One row for each collection.

    Args:
        entries: the collections.
        results: facts of the newest decode by collection; those of other versions are ignored.
        today: the present day.
        lists: the number of candidates by collection; collections without a list are absent.
    """
    found = []
    for entry in entries:
        one, ever = _epsilons(entry.collection)
        newest = entry.periods[-1].period if entry.periods else None
        current = newest == period_of(entry.collection.period, today)
        meta = results.get(entry.name)
        if meta is not None and meta.get("version") != entry.collection.version:
            meta = None
        decode = None if meta is None else _decode(meta, entry.collection.kind)
        listed = (lists or {}).get(entry.name, 0)
        few = "" if decode else _few(entry, listed)
        kind = entry.collection.kind
        declared = kind not in HASHED or not _has_strings(entry.collection)
        can = entry.standing is Standing.ACTIVE and bool(listed or declared)
        pending = can and newest is not None and not decode and not few
        found.append(CollectionRow(entry, one, ever, current, decode, few, pending))
    return found


def _has_strings(collection: Collection) -> bool:
    """Whether it takes a list of candidates."""
    fields = collection.fields
    return fields is None or any(field.kind == "string" for field in fields)


def _few(entry: Entry, listed: int) -> str:
    """The message about too few reports; empty if the default period has enough."""
    collection = entry.collection
    candidates = values_tested(collection, listed)
    shown = default_period(collection, entry.periods, candidates)
    if shown is None or shown.enough:
        return ""
    newest = entry.periods[-1]
    seen = reach_of(collection, newest.period, newest.reports, candidates, ALPHA)
    return f"{newest.reports:,} so far; 1\u00a0% needs at most about {about(seen.needed)}"


def _decode(meta: Mapping[str, Any], kind: str) -> Decode:
    mass = (mass_in(meta) or {}) if kind in _WITH_REST else {}
    share, low, high = (mass.get(name) for name in ("proportion", "prop_low_95", "prop_high_95"))
    undetected_mass = None
    if isinstance(share, float) and isinstance(low, float) and isinstance(high, float):
        undetected_mass = (share, low, high)
    periods = list(meta.get("periods") or ())
    ends = dict.fromkeys(periods[:1] + periods[-1:])
    return Decode(int(meta.get("detected") or 0), undetected_mass, " – ".join(ends))


def total_epsilon(rows: Sequence[CollectionRow]) -> float:
    """ε of a client that reports one value to each active collection, permanently."""
    return add_up((row.ever, 1) for row in active(rows))


def active(rows: Sequence[CollectionRow]) -> list[CollectionRow]:
    """The rows of active collections."""
    return [row for row in rows if row.entry.standing is Standing.ACTIVE]


_SORTS: dict[str, Any] = {
    "name": lambda row: row.collection.name,
    "owner": lambda row: row.collection.owner.casefold(),
    "state": lambda row: list(Standing).index(row.entry.standing),
    "epsilon": lambda row: row.ever,
    "reports": lambda row: row.entry.reports,
    "detected": lambda row: -1 if row.decode is None else row.decode.detected,
    "undetected_mass": lambda row: (
        row.decode.undetected_mass[0] if row.decode and row.decode.undetected_mass else -1.0
    ),
    "expires": lambda row: row.collection.expires or date.max,
}


def chosen(rows: Sequence[CollectionRow], q: str, state: str, sort: str) -> list[CollectionRow]:
    """The rows that match a search, sorted; an unknown sort order is ignored."""
    wanted = q.casefold().strip()
    found = [
        row
        for row in rows
        if (not state or row.entry.standing == state) and (not wanted or wanted in _searched(row))
    ]
    key = sort.removeprefix("-")
    order = _SORTS.get(key, _SORTS[DEFAULT_SORT])
    found.sort(key=lambda row: row.collection.name)
    found.sort(key=order, reverse=sort.startswith("-"))
    return found


def _searched(row: CollectionRow) -> str:
    it = row.collection
    return " ".join((it.name, it.owner, it.description, row.kind)).casefold()


def known_sort(text: str) -> str:
    """A sort order, or the default if it is unknown.

    >>> known_sort("-reports"), known_sort("nonsense"), known_sort("unlisted")
    ('-reports', 'name', 'undetected_mass')
    """
    text = current_name(text)
    return text if text.removeprefix("-") in _SORTS else DEFAULT_SORT
