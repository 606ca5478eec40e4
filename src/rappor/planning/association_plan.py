"""Plan an association: a tuple, its views and parameters, and how many reports the question needs.

The question: are two fields associated, if for a share `strength` of the clients the first value
decides the second? The others hold independent values, with Zipf frequencies in both fields. The
power that `association_power` gives is checked with simulated collections.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from rappor.checks import whole
from rappor.errors import ParamsError
from rappor.mechanism.views import Views
from rappor.params import Params
from rappor.planning.association_power import AssociationQuestion, TupleLayout
from rappor.planning.association_request import AssociationRequest
from rappor.planning.request import MAX_REPORTS, PlanRequest
from rappor.privacy import epsilon_infinity as infinity
from rappor.privacy import epsilon_one as one
from rappor.simulate import counts as simulated_counts
from rappor.simulate import tuples
from rappor.terminal import showable

_MAX_CHECKED = 10**9  # reports that are simulated
_MAX_CORRECTIONS = 5  # of a plan that simulations contradict
_SEED = 20_261_118


class MeasuredPower(NamedTuple):
    """How many of the simulated collections were found to be associated, and their mean λ."""

    found: int
    collections: int
    noncentrality: float

    @property
    def share(self) -> float:
        """The measured power."""
        return self.found / self.collections

    def falls_short(self, promised: float) -> bool:
        """Whether the power is below the promise by more than 2 standard errors."""
        error = math.sqrt(promised * (1 - promised) / self.collections)
        return self.share < promised - 2 * error


@dataclass(frozen=True, slots=True)
class AssociationPlan:
    """A tuple that answers the question.

    Attributes:
        table: how many values the two fields have.
        params: k, h, m, f, p and q.
        views: the fields, named first and second, and what cohorts see.
        epsilon_one: ε of one report, which tells both fields.
        epsilon_infinity: ε of any number of reports on one tuple of values.
        reports: N, as given or as needed.
        strength: the share of clients whose first value decides the second.
        power: the promised chance to find the association.
        detectable: the smallest strength that is found with the requested power.
        alpha: the level of the test.
        solved: what was not given: "reports", "epsilon" or "power".
        separate_reports: how many reports the same question needs if both fields are reported
            separately, each with half of the ε; inf if no number does.
        checked: the power in simulated collections; None if none were simulated.
    """

    table: tuple[int, int]
    params: Params
    views: Views = field(repr=False)
    epsilon_one: float
    epsilon_infinity: float
    reports: int
    strength: float
    power: float
    detectable: float
    alpha: float
    solved: Literal["reports", "epsilon", "power"]
    separate_reports: float
    checked: MeasuredPower | None = None

    def __str__(self) -> str:
        """What `rappor plan --associate` prints."""
        from rappor.planning.plan_text import describe_association

        return "\n".join(showable(line, sys.stdout) for line in describe_association(self))

    @property
    def falls_short(self) -> bool:
        """Whether simulated collections contradict the power; False if there were none."""
        return self.checked is not None and self.checked.falls_short(self.power)

    @property
    def bytes_per_report(self) -> int:
        """The size of a packed report."""
        return (self.params.k + 7) // 8


def plan_association(request: AssociationRequest) -> AssociationPlan:
    """A tuple for a table of two fields: parameters, views, and how many reports it needs.

    Raises:
        ParamsError: what is impossible, with the nearest that is possible.
    """
    epsilon_one, epsilon_infinity = request.epsilon_one, request.epsilon_infinity
    reports, check = request.reports, request.check
    question = AssociationQuestion.of(request)
    say = request.progress or (lambda _: None)
    if reports is not None:
        reports = whole("reports", reports, 1, MAX_REPORTS)
    solved: Literal["reports", "epsilon", "power"] = "reports" if reports is None else "power"
    if epsilon_one is None and epsilon_infinity is None:
        if reports is None:
            raise ParamsError(
                "give an ε or the number of reports: the other is solved for (epsilon_one, reports)"
            )
        say("solving for ε")
        goal, solved = question.min_epsilon(reports), "epsilon"
    else:
        asked = PlanRequest(epsilon_one, epsilon_infinity, reports or 1).checked().goal
        if asked is None or asked.epsilon_infinity == math.inf:
            raise ParamsError(
                "an association needs a finite epsilon_infinity: give one, or leave it out"
            )
        goal = asked
    say("comparing reports of different length")
    layout = question.best(goal)
    layout, wanted, checked = _confirmed(question, layout, reports, check, say)
    noncentrality = layout.per_report * wanted
    return AssociationPlan(
        table=question.table,
        params=layout.params,
        views=question.views,
        epsilon_one=one(layout.params, "tuple"),
        epsilon_infinity=infinity(layout.params, "tuple"),
        reports=wanted,
        strength=question.strength,
        power=question.chance(noncentrality, layout.freedom),
        detectable=question.strength * math.sqrt(question.needed(layout.freedom) / noncentrality),
        alpha=question.alpha,
        solved=solved,
        separate_reports=question.separate(goal),
        checked=checked,
    )


def _confirmed(
    question: AssociationQuestion,
    layout: TupleLayout,
    reports: int | None,
    check: int,
    say: Callable[[str], None],
) -> tuple[TupleLayout, int, MeasuredPower | None]:
    """The layout with the λ that simulations confirm, its reports, and the last simulations.

    Noisy margins take some of the signal that the formula counts on. Where simulated collections
    fall short of the promise, their λ takes its place, and other collections check that. A plan
    that falls short in the end says so.
    """
    needed = question.needed(layout.freedom)
    wanted = reports or _rounded_up(needed / layout.per_report)
    checked = _checked(question, layout.params, wanted, check, 0, say)
    for number in range(1, _MAX_CORRECTIONS + 1):
        promised = question.chance(layout.per_report * wanted, layout.freedom)
        if checked is None or not checked.falls_short(promised):
            break
        measured = max(checked.noncentrality, 1.0) / wanted
        layout = layout._replace(per_report=min(measured, layout.per_report))
        wanted = reports or _rounded_up(needed / layout.per_report)
        checked = _checked(question, layout.params, wanted, check, number * check, say)
    return layout, wanted, checked


def _rounded_up(reports: float) -> int:
    """Two significant digits, rounded up, or ParamsError."""
    if not reports <= MAX_REPORTS:
        raise ParamsError("no number of reports answers this question: raise ε or the strength")
    unit: int = 10 ** max(math.floor(math.log10(reports)) - 1, 0)
    return math.ceil(reports / unit) * unit


def _checked(
    question: AssociationQuestion,
    params: Params,
    reports: int,
    times: int,
    first: int,
    say: Callable[[str], None],
) -> MeasuredPower | None:
    """How often simulated collections are found to be associated."""
    from rappor.decoding.associate import associate

    times = whole("check", times, 0, 10**6)
    if not times or reports > _MAX_CHECKED:
        return None
    views = question.views
    population = tuples(views.fields, question.joint())
    lists = {
        declared.name: [f"{letter}{n}" for n in range(size)]
        for declared, letter, size in zip(views.fields, "xy", question.table, strict=True)
        if declared.kind == "string"
    }
    found, excess = 0, []
    for number in range(times):
        say(f"simulating: {number + 1} of {times} collections")
        drawn = simulated_counts(
            population,
            params,
            reports,
            seed=[_SEED, first + number],
            kind="tuple",
            fields=views.fields,
            views=views.views,
            cohort_sizes="random",
        )
        made = associate(drawn, lists, views=views, alpha=question.alpha)
        found += made.is_associated
        excess.append(made.independence.statistic - made.independence.freedom)
    return MeasuredPower(found, times, float(np.mean(excess)))
