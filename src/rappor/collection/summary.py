"""What a collection means for a client, in numbers: ε, and what is sent."""

from __future__ import annotations

from dataclasses import dataclass

from rappor.collection.definition import Collection
from rappor.privacy import Step, epsilon_history


@dataclass(frozen=True, slots=True)
class Summary:
    """ε of one client, each rounded up, and the size of what it sends.

    Attributes:
        epsilon_report: of one report.
        epsilon_period: of all reports in one period, on one unchanged value.
        epsilon_value: of any number of reports on one value; ∞ in budget mode.
        epsilon_cap: of everything; at this limit the client stops.
        bytes_per_report: packed, without its cohort.
        cells: combinations of dimension values, "other" included.
    """

    epsilon_report: float
    epsilon_period: float
    epsilon_value: float
    epsilon_cap: float
    bytes_per_report: int
    cells: int


def summary(collection: Collection) -> Summary:
    """The numbers of a collection.

    >>> from rappor.params import Params
    >>> made = summary(Collection("homepage", 1, Params.preset("windows"), reports_per_period=2))
    >>> round(made.epsilon_period, 3), round(made.epsilon_cap, 3), made.bytes_per_report
    (2.017, 4.394, 16)
    """
    return Summary(
        epsilon_report=collection.epsilon_one,
        epsilon_period=_period(collection),
        epsilon_value=collection.epsilon_infinity,
        epsilon_cap=collection.max_epsilon,
        bytes_per_report=(collection.params.k + 7) // 8,
        cells=collection.cells,
    )


def _period(collection: Collection) -> float:
    if collection.one_time:
        return collection.epsilon_one
    periods = [None, *(phase.first_period for phase in collection.schedule)]
    phases = [collection.params_for(period) for period in periods]
    number = collection.reports_per_period
    return max(
        epsilon_history(params, [Step(params.p, params.q, number)], collection.kind)
        for params in phases
    )
