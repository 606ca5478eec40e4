"""What to simulate: the population, the parameters, and how clients report (§2, §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import NamedTuple

from numpy.typing import ArrayLike

from rappor.checks import is_real, show, whole
from rappor.errors import ParamsError
from rappor.mechanism.views import Field, View, Views, views_of
from rappor.params import Params
from rappor.simulate.populations import Population

Members = Population | Mapping[str, float] | Sequence[str]
Seed = int | Sequence[int] | None

VALUES = ("same", "changing", "distinct")
_MAX_REPORTS = 2**62


class Workload(NamedTuple):
    """How many clients there are, how often each reports, and how many report once more."""

    clients: int
    reports_each: int
    one_more: int


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A collection to simulate: the arguments of `simulate`, `counts` and `reports`.

    Attributes:
        population: a Population, or how frequent each value is, in any unit; a plain list gives all
            values the same frequency. For categories and ordinals, value i sets bit i (of a
            Population: candidate i).
        params: the parameters of the collection.
        reports: N, a multiple of `reports_per_client` unless `clients` is given.
        seed: of numpy's generator; None draws another collection each time. With the same seed and
            arguments, `simulate` and `reports` have the same clients holding the same values.
        kind: the kind of collection; "bits" cannot be simulated because it has no list of values.
        dialect: how strings and tuples are placed.
        cohort_sizes: relative sizes of cohorts, by default all equal; "random": each client draws
            its cohort, as real clients do.
        reports_per_client: how often each client reports.
        values: "same": a client keeps one value; "changing": before each further report the value
            is drawn again with probability `change`; "distinct": a client never reports a value
            twice. A client's reports on one value share B', also when the client returns to it.
        change: for changing values, from 0 to 1.
        fields: of kind tuple, whose values are JSON objects of their fields: `tuples` makes them
            from a joint table. A client keeps its tuple.
        views: of kind tuple; by default as in `rappor.mechanism.Views`.
        clients: how many there are, instead of `reports_per_client`: if `reports` is not a multiple
            of it, some clients report once more than others.

    >>> from rappor.simulate import counts
    >>> params = Params(128, 2, 16, 0.5, 0.5, 0.75)
    >>> counts({"a.org": 3, "b.org": 1}, params, reports=10**6, seed=7).reports
    1000000
    """

    population: Members = field(repr=False)
    params: Params
    reports: int
    _: KW_ONLY
    seed: Seed = None
    kind: str = "string"
    dialect: str = "rappor-v1"
    cohort_sizes: ArrayLike | str | None = None
    reports_per_client: int = 1
    values: str = "same"
    change: float | None = None
    fields: Sequence[Field] | None = None
    views: Sequence[View] | None = None
    clients: int | None = None

    def tuple_views(self) -> Views | None:
        """The fields and views of kind tuple, None for other kinds; or ParamsError."""
        found = views_of(self.fields, self.views)
        if (found is not None) != (self.kind == "tuple"):
            raise ParamsError("fields belong to kind tuple, which needs them")
        if found is not None and self.values != "same":
            raise ParamsError(f"values must be same for kind tuple, got {show(self.values)}")
        return found

    def workload(self) -> Workload:
        """The reports divided among clients, or ParamsError."""
        n = whole("reports", self.reports, 0, _MAX_REPORTS)
        repeats = whole("reports_per_client", self.reports_per_client, 1, 2**31)
        if self.clients is not None:
            number = whole("clients", self.clients, 1, _MAX_REPORTS)
            if repeats != 1:
                raise ParamsError("give clients or reports_per_client, not both")
            return Workload(number, n // number, n % number)
        if n % repeats:
            raise ParamsError(
                f"reports must be a multiple of reports_per_client, got {n} and {repeats}"
            )
        return Workload(n // repeats, repeats, 0)

    def chance_of_change(self) -> float:
        """The chance that a value is drawn again before a report, or ParamsError."""
        if not isinstance(self.values, str) or self.values not in VALUES:
            raise ParamsError(f"values must be one of {', '.join(VALUES)}; got {show(self.values)}")
        if self.values != "changing":
            if self.change is not None:
                raise ParamsError(
                    f"change goes with values changing, not with values {self.values}"
                )
            return 0.0
        if self.change is None or not is_real(self.change) or not 0 <= self.change <= 1:
            raise ParamsError(
                "changing values need change, the chance that a value is drawn again before a "
                f"report: a number from 0 to 1, got {show(self.change)}"
            )
        return float(self.change)
