"""View: what a page shows of a collection, as its address says it.

Two people who open one address see the same. What is usual is left out of it, and an address says
everything in one order, so that there is one address for a view.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rappor.charts.numbers import show_percent
from rappor.decoding import options

UNITS = {"share": "Share", "count": "Count"}
SCALES = {"linear": "Linear", "log": "Log"}
CORRECTIONS: dict[str, str] = {
    name: correction.title for name, correction in options.CORRECTIONS.items()
}
METHODS = {"auto": "auto", "lasso": "lasso, the paper's"}
DEFAULT_SORT = "-estimate"
PAGE_ROWS = 200
_PREFIX = "dim."  # before the name of a dimension that is called like something of ours


class Side(NamedTuple):
    """Which reports are decoded: some periods, and some values of dimensions."""

    periods: tuple[str, ...]
    dimensions: tuple[tuple[str, str], ...]

    @property
    def words(self) -> str:
        """It in words.

        >>> Side(("2026-W27",), (("country", "NZ"),)).words
        '2026-W27, NZ'
        """
        time = " – ".join(
            dict.fromkeys((self.periods[0], self.periods[-1])) if self.periods else ()
        )
        return ", ".join(part for part in (time, *(value for _, value in self.dimensions)) if part)


@dataclass(frozen=True, slots=True)
class View:
    """What is shown.

    Attributes:
        collection: its name.
        version: its version.
        first: the first period; "" where nothing is stored.
        last: the last one.
        periods: the stored ones among them, which are added up.
        dimensions: (name, value) of those that are chosen, by name; no others are restricted.
        vs: what it is compared with, as the address has it: a period, "P..Q" or "country=NZ".
        against: the reports behind `vs`; None where nothing is compared.
        unit: share or count.
        scale: linear or log.
        correction: fdr, holm, bonferroni or none.
        alpha: the error rate.
        method: auto or lasso.
        candidates: the version of the list of candidates; None where there is none.
        q: what the table is searched for.
        sort: a column, with - before it from large to small.
        page: of the table, from 1 on.
        every: whether the table shows all rows, not only those of the chart.
        anyway: whether results are shown that hold few reports.
        usual: values that an address leaves out.
    """

    collection: str
    version: int
    first: str = ""
    last: str = ""
    periods: tuple[str, ...] = ()
    dimensions: tuple[tuple[str, str], ...] = ()
    vs: str = ""
    against: Side | None = None
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
    def of(cls, query: Mapping[str, str], catalogue: Any, state: Any, name: str) -> View:
        """The view that an address asks for.

        Args:
            query: what stands after the ? of the address.
            catalogue: what is stored.
            state: the lists of candidates.
            name: the collection.

        Raises:
            ParamsError: names the field, what was given and what is allowed.
        """
        from rappor.dashboard.view_reading import read_view

        return read_view(query, catalogue, state, name)

    @property
    def side(self) -> Side:
        """The reports that are decoded."""
        return Side(self.periods, self.dimensions)

    @property
    def key(self) -> str:
        """A digest of all that changes the decoded numbers, and of nothing else."""
        said = [
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
        """The parts of its address, in order, without what is usual.

        Args:
            changes: other values, by attribute; `dimensions` as a mapping or pairs. Where `page` is
                not among them it goes back to the first.
        """
        if "dimensions" in changes:
            given = changes["dimensions"]
            pairs = given.items() if isinstance(given, Mapping) else given
            changes["dimensions"] = tuple(sorted((key, value) for key, value in pairs if value))
        view = replace(self, **({"page": 1} | changes)) if changes else self
        said = {
            "from": view.first,
            "to": view.last,
            **{parameter(key): value for key, value in view.dimensions},
            "vs": view.vs,
            "unit": view.unit,
            "scale": view.scale,
            "correction": view.correction,
            "alpha": repr(view.alpha),
            "method": view.method,
            "candidates": "" if view.candidates is None else str(view.candidates),
            "q": view.q,
            "sort": view.sort,
            "version": str(view.version),
            "show": "all" if view.every else "",
            "anyway": "1" if view.anyway else "",
            "page": str(view.page),
        }
        usual = {**_USUAL, **self.usual, "from": view.last}
        return {key: value for key, value in said.items() if value and value != usual.get(key)}

    def query(self, **changes: Any) -> str:
        """What stands after the ? of its address, with changes as in `fields`; "" where nothing.

        >>> shown = View("homepage", 1, "2026-W27", "2026-W28", usual={"version": "1"})
        >>> shown.query(unit="count", dimensions={"country": "NZ"})
        'from=2026-W27&to=2026-W28&country=NZ&unit=count'
        """
        return urlencode(self.fields(**changes))

    def path(self, ending: str = "", **changes: Any) -> str:
        """Its address, of a page of the collection (such as "/trends") or a file (".csv")."""
        query = self.query(**changes)
        return f"/collections/{self.collection}{ending}{'?' if query else ''}{query}"

    @property
    def carried(self) -> str:
        """What all pages of a collection have in common of its address: when, where, how decoded.

        >>> View("homepage", 1, "2026-W27", "2026-W28", q="x", usual={"version": "1"}).carried
        'from=2026-W27&to=2026-W28'
        """
        usual = {"unit": "share", "scale": "linear", "sort": self.usual.get("sort", DEFAULT_SORT)}
        return self.query(vs="", q="", every=False, **usual)

    @property
    def decoding(self) -> str:
        """How it is decoded, in one line.

        >>> View("homepage", 1, alpha=0.05).decoding.replace("\u00a0", " ")
        'FDR 5 % · method auto'
        """
        parts = [f"{CORRECTIONS[self.correction]} {show_percent(self.alpha)}"]
        if self.candidates is not None:
            parts.append(f"candidates v{self.candidates}")
        return " · ".join([*parts, f"method {self.method}"])


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


def parameter(dimension: str) -> str:
    """How an address calls a dimension: by its name, unless that means something else there.

    >>> parameter("country"), parameter("from")
    ('country', 'dim.from')
    """
    return f"{_PREFIX}{dimension}" if dimension in PARAMETERS else dimension


def between(periods: Iterable[str], first: str, last: str) -> tuple[str, ...]:
    """The periods from one to another, both counted; they sort as their text does.

    >>> between(["2026-W26", "2026-W27", "2026-W28"], "2026-W27", "2026-W28")
    ('2026-W27', '2026-W28')
    """
    return tuple(period for period in periods if first <= period <= last)
