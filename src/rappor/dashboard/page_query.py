"""PageQuery: what the address of a page asks for.

Two people who open one address see the same. An address leaves out default values and names its
fields in one order, so that each query has one address.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import urlencode

from rappor.charts.numbers import show_percent
from rappor.collection.periods import is_older
from rappor.dashboard.snapshot import Dimensions
from rappor.decoding import options

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
    {
        "from",
        "to",
        "vs",
        "candidates",
        "q",
        "version",
        "show",
        "anyway",
        "format",
        "fields",
        "given",
        *_USUAL,
    }
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
