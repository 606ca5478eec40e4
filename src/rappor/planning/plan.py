"""Parameters from goals: ranked by what they detect, never above the requested ε (§4).

>>> found = plan(1.0743, 4.3944, reports=10**6, candidates=200, check=0)
>>> found.best.params
Params(k=256, h=1, m=64, f=0.2001, p=0.2252, q=0.5325)
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec, Protocol, overload

from rappor.charts import Chart
from rappor.charts.plans import PowerLine
from rappor.charts.plans import plans as draw
from rappor.checks import called_with
from rappor.errors import ParamsError
from rappor.params import Params
from rappor.planning.association_plan import AssociationPlan, plan_association
from rappor.planning.association_request import AssociationRequest
from rappor.planning.cautions import Caution, cautions, refuse_unsound
from rappor.planning.expected_detections import ExpectedCrowd, ExpectedDetections, expected
from rappor.planning.layouts import Layout, best_first, rank_layouts
from rappor.planning.power import Detector
from rappor.planning.power_check import PlanCheck, Simulations, simulate_promise
from rappor.planning.refusals import Settled, refuse_impossible, settle
from rappor.planning.request import PlanRequest, Progress
from rappor.privacy import Detectable, epsilon_n
from rappor.privacy import epsilon_infinity as infinity
from rappor.privacy import epsilon_one as one
from rappor.privacy.rounding import up
from rappor.terminal import showable
from rappor.typing import Kind

POWERS = (0.5, 0.8, 0.95)
MAX_SHARE = 0.9  # the largest share that can be planted next to others


_Single = ParamSpec("_Single")
_Joint = ParamSpec("_Joint")


class _Planner(Protocol[_Single, _Joint]):
    """`plan`: what it returns depends on whether a table of two fields is asked for."""

    @overload
    def __call__(self, *args: _Single.args, **kwargs: _Single.kwargs) -> Plans: ...
    @overload
    def __call__(self, *args: _Joint.args, **kwargs: _Joint.kwargs) -> AssociationPlan: ...


def _or_association(
    joint: Callable[_Joint, AssociationPlan],
) -> Callable[[Callable[_Single, Plans]], _Planner[_Single, _Joint]]:
    """Let a planner of single variables take `associate`, which asks for a plan of two fields."""

    def decorate(single: Callable[_Single, Plans]) -> _Planner[_Single, _Joint]:
        of_one, of_two = (dict(inspect.signature(each).parameters) for each in (single, joint))

        @functools.wraps(single)
        def call(*args: Any, **given: Any) -> Any:
            given = {name: value for name, value in given.items() if (name, value) != _NO_TABLE}
            asked, other = (of_two, of_one) if "associate" in given else (of_one, of_two)
            names = [*list(of_one)[: len(args)], *given]
            wrong = next((name for name in names if name in other and name not in asked), None)
            if wrong is None:
                return joint(*args, **given) if asked is of_two else single(*args, **given)
            if asked is of_two:
                raise ParamsError(f"{wrong} does not go with associate: leave it out")
            raise ParamsError(f"{wrong} goes with associate, such as associate=(50, 10)")

        asks = inspect.signature(single)
        of_two["associate"] = of_two["associate"].replace(default=None)
        more = [each for name, each in of_two.items() if name not in of_one]
        call.__signature__ = asks.replace(  # type: ignore[attr-defined]  # what help() shows
            parameters=[*of_one.values(), *more],
            return_annotation=f"{asks.return_annotation} | AssociationPlan",
        )
        return call

    return decorate


_NO_TABLE = ("associate", None)


@_or_association(called_with(AssociationRequest)(plan_association))
@called_with(PlanRequest)
def plan(request: PlanRequest) -> Plans:
    """Parameters that keep a privacy goal, best first.

    The best plan has the shortest report among those within 1 % of the rarest string that any
    detects. The others follow, ordered by the rarest string that they detect.

    Give two of (ε, reports, frequency), and the third is solved for; or all three, which must be
    possible together. No plan's exact ε is above the request. The arguments are the fields of
    `rappor.planning.PlanRequest`.

    With `associate`, such as associate=(50, 10) or "50x10", the plan is one `AssociationPlan`: a
    tuple of two fields with this many values, its views, and how many reports show that the fields
    are associated. The arguments are then the fields of `rappor.planning.AssociationRequest`.

    Raises:
        ParamsError: what is impossible, with the nearest that is possible.

    >>> made = plan(1.0743, 4.3944, associate=(20, 2), check=0)
    >>> made.params.h, made.reports < made.separate_reports / 20
    (1, True)
    """
    refuse_impossible(request)
    request = request.checked()
    say = request.progress or (lambda _: None)
    crowd = ExpectedCrowd.of(request.shape)
    refuse_unsound(request)
    settled = settle(request, crowd, say)
    made = rank_layouts(request, crowd, settled.goal, settled.reports)
    made = best_first(made, request.frequency or math.inf)
    best, *others = (_plan(request, crowd, settled, each) for each in _worth_showing(made))
    best, checked = _confirmed(best, request, settled, say)
    return Plans((best, *others), replace(request, progress=None), settled, checked)


def _worth_showing(made: list[Layout]) -> list[Layout]:
    """The best, the same with longer and shorter reports, and the same with other hashes.

    A layout that detects nothing is no plan.
    """
    best = made[0].params
    return [
        each
        for each in made
        if each.frequency <= 1 and (each.params.h == best.h or each.params.k == best.k)
    ]


def _plan(request: PlanRequest, crowd: ExpectedCrowd, settled: Settled, design: Layout) -> Plan:
    params, kind = design.params, request.kind
    powers = sorted({*POWERS, request.power})
    return Plan(
        params=params,
        kind=kind,
        epsilon_one=one(params, kind),
        epsilon_n={} if request.one_time else {n: epsilon_n(params, n, kind) for n in request.n},
        epsilon_infinity=infinity(params, kind),
        detectable=tuple(design.detector.detectable(each) for each in powers),
        expected=expected(design.detector, crowd, request.candidates, request.alpha),
        bytes_per_report=(params.k + 7) // 8,
        cohort_size=settled.reports / params.m,
        cautions=cautions(request, params, settled.reports),
        detector=design.detector,
    )


def _confirmed(
    plan: Plan, request: PlanRequest, settled: Settled, say: Progress
) -> tuple[Plan, PlanCheck | None]:
    """The best plan, checked by simulation.

    If the simulations disagree with the formula, the plan takes the frequencies that they show, and
    those are checked again with other collections.
    """
    times = request.check
    if not times or settled.reports >= 2**60:  # too many to simulate
        return plan, None
    critical = plan.detector.critical

    def simulate(first: int) -> Simulations | None:
        promised = [each for each in plan.detectable if each.frequency < MAX_SHARE]
        if not promised:
            return None
        asked = (request, plan.params, settled.reports, promised, times)
        return simulate_promise(*asked, progress=say, first=first)

    simulated = simulate(0)
    law = simulated.law(critical) if simulated and request.kind == "string" else None
    if law is not None:
        detector = replace(plan.detector, measured=law)
        detectable = tuple(detector.detectable(each.power) for each in plan.detectable)
        plan = replace(plan, detector=detector, detectable=detectable)
        simulated = simulate(times * 100)  # other collections than those that gave the law
    return plan, simulated.check(critical, law is not None) if simulated else None


_LINES = 4
_DECADES = 2  # each way of the request


@dataclass(frozen=True, slots=True)
class Plan:
    """One set of parameters, its ε and what it detects.

    Attributes:
        params: k, h, m, f, p and q.
        kind: the kind of collection.
        epsilon_one: ε of one report.
        epsilon_n: ε of n reports on one unchanged value, by n; empty if each client reports once.
        epsilon_infinity: ε of any number of reports.
        detectable: the smallest frequency that is detected with 50, 80 and 95 % chance (and with
            the requested one), family-wise error α over all candidates.
        expected: how many strings of the population are detected.
        bytes_per_report: the size of a packed report.
        cohort_size: reports in a cohort.
        cautions: what to know before collecting.
        detector: the formula behind `detectable`, for the population of the request.
    """

    params: Params
    kind: Kind
    epsilon_one: float
    epsilon_n: Mapping[int, float]
    epsilon_infinity: float
    detectable: tuple[Detectable, ...]
    expected: ExpectedDetections
    bytes_per_report: int
    cohort_size: float
    cautions: tuple[Caution, ...]
    detector: Detector = field(repr=False)

    def at(self, power: float) -> Detectable:
        """The smallest frequency that is detected with some chance."""
        return self.detector.detectable(power)


@dataclass(frozen=True, slots=True)
class Plans:
    """Plans, best first: a sequence of `Plan`.

    Attributes:
        plans: the plans.
        request: what was asked for.
        settled: the goal, reports and frequency planned for, and which of them was solved for.
        checked: promised and measured power of the best plan; None if it was not checked.
    """

    plans: tuple[Plan, ...]
    request: PlanRequest
    settled: Settled
    checked: PlanCheck | None = None

    def __repr__(self) -> str:
        return f"<Plans {len(self.plans)}, the best: {self.best.params}>"

    def __str__(self) -> str:
        """The table that `rappor plan` prints."""
        from rappor.planning.plan_text import describe

        return "\n".join(showable(line, sys.stdout) for line in describe(self))

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[Plan]:
        return iter(self.plans)

    def __getitem__(self, index: int) -> Plan:
        return self.plans[index]

    @property
    def best(self) -> Plan:
        """The first one."""
        return self.plans[0]

    def plot(self) -> Chart:
        """A chart of what the plans detect, by number of reports; `.save(path)` writes it."""
        reports, power = self.settled.reports, self.request.power
        around = [reports * 10 ** (step / 8) for step in range(-8 * _DECADES, 8 * _DECADES + 1)]
        crowd = ExpectedCrowd.of(self.request.shape)

        def line(plan: Plan) -> PowerLine:
            amid = (crowd.around(replace(plan.detector, reports=at)) for at in around)
            return PowerLine(
                _label(plan), around, [each.detectable(power).frequency for each in amid]
            )

        same_length = [plan for plan in self.plans if plan.params.k == self.best.params.k]
        lines = [line(plan) for plan in same_length[:_LINES]]
        goal = self.settled.goal
        words = [
            f"The rarest string that is detected with {100 * power:g} % chance among "
            f"{self.request.candidates:,} candidates, family-wise error "
            f"{100 * self.request.alpha:g} %, at ε1 up to {up(goal.epsilon_one)} and ε∞ up to "
            f"{up(goal.epsilon_infinity)}.",
            "The dot is the request with the best plan.",
        ]
        title = f"What {reports:,} reports reveal, and what more or fewer would"
        return Chart(draw(lines, reports, self.best.at(power).frequency, title, words))


def _label(plan: Plan) -> str:
    params = plan.params
    size = plan.bytes_per_report
    return f"h = {params.h}, k = {params.k}, m = {params.m}: {size} byte{'s' * (size > 1)} a report"
