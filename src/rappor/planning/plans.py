"""What planning returns: plans, best first, with the request they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from rappor.charts import Chart
from rappor.charts.plans import Line
from rappor.charts.plans import plans as draw
from rappor.params import Params
from rappor.planning.cautions import Caution
from rappor.planning.check import Check
from rappor.planning.found import Crowd, Found
from rappor.planning.impossible import Settled
from rappor.planning.power import Detector
from rappor.planning.request import Request
from rappor.privacy import Detectable

_LINES = 4
_DECADES = 2  # each way of the request


@dataclass(frozen=True, slots=True)
class Plan:
    """One set of parameters and all that follows from it.

    Attributes:
        params: k, h, m, f, p and q.
        kind: the kind of collection.
        epsilon_one: ε of one report.
        epsilon_n: ε of n reports on one unchanged value, by n.
        epsilon_infinity: ε of ever so many.
        detectable: the smallest frequency that is detected with 50, 80 and 95 % chance (and with
            the requested one), family-wise error α over all candidates.
        expected: how many strings of the population are found.
        bytes_per_report: what a report takes, packed.
        cohort_size: reports in a cohort.
        cautions: what to know before collecting.
        detector: the formula behind it, amid the request's population.
    """

    params: Params
    kind: str
    epsilon_one: float
    epsilon_n: Mapping[int, float]
    epsilon_infinity: float
    detectable: tuple[Detectable, ...]
    expected: Found
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
        checked: promised and measured power of the best plan; None where it was not checked.
    """

    plans: tuple[Plan, ...]
    request: Request
    settled: Settled
    checked: Check | None = None

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
        """What the plans detect, from how many reports; `.save(path)`."""
        reports, power = self.settled.reports, self.request.power
        around = [reports * 10 ** (step / 8) for step in range(-8 * _DECADES, 8 * _DECADES + 1)]
        crowd = Crowd.of(self.request.shape)

        def line(plan: Plan) -> Line:
            amid = (crowd.around(replace(plan.detector, reports=at)) for at in around)
            return Line(_label(plan), around, [each.detectable(power).frequency for each in amid])

        same_length = [plan for plan in self.plans if plan.params.k == self.best.params.k]
        lines = [line(plan) for plan in same_length[:_LINES]]
        goal = self.settled.goal
        words = [
            f"The rarest string that is detected with {100 * power:g} % chance among "
            f"{self.request.candidates:,} candidates, family-wise error "
            f"{100 * self.request.alpha:g} %, at ε1 up to {goal.epsilon_one:g} and ε∞ up to "
            f"{goal.epsilon_infinity:g}.",
            "The dot is the request with the best plan.",
        ]
        title = f"What {reports:,} reports reveal, and what more or fewer would"
        return Chart(draw(lines, reports, self.best.at(power).frequency, title, words))


def _label(plan: Plan) -> str:
    params = plan.params
    size = plan.bytes_per_report
    return f"h = {params.h}, k = {params.k}, m = {params.m}: {size} byte{'s' * (size > 1)} a report"
