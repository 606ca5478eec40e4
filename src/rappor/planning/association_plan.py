"""Plan an association: a tuple, its views and parameters, and how many reports the question needs.

The question: are two fields associated, if for a share `strength` of the clients the first value
decides the second? The others hold independent values, with Zipf frequencies in both fields. The
test of independence is a χ²; without noise its statistic is the noncentrality λ, which grows with
the number of reports. So power follows from one fit to counts without noise, and is then checked
with simulated collections.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, chndtr

from rappor.aggregate.counts import Counts
from rappor.aggregate.pair_counts import PairCounts
from rappor.checks import between_0_and_1, show, whole
from rappor.decoding.field_design import string_field
from rappor.decoding.pair_fit import fit_pairs
from rappor.decoding.tuple_design import MAX_CELLS, cohorts_for, fields_of, tuple_design
from rappor.decoding.tuple_fit import fit_tuples
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism.channel import channel
from rappor.mechanism.views import Field, View, Views
from rappor.params import MAX_M, Params
from rappor.planning.layouts import FEW_COHORTS, LENGTHS
from rappor.planning.noise import Goal, min_noise
from rappor.planning.request import (
    CHECKED_COLLECTIONS,
    MAX_EPSILON,
    MAX_REPORTS,
    RATIO,
    PlanRequest,
    Progress,
)
from rappor.privacy import epsilon_infinity as infinity
from rappor.privacy import epsilon_one as one
from rappor.simulate import counts as simulated_counts
from rappor.simulate import tuples
from rappor.terminal import showable
from rappor.typing import FloatArray

OpenFields = Literal["first", "both", "none"]
SHARES: dict[OpenFields, tuple[float, ...]] = {
    "first": (0.8, 0.2),
    "both": (0.7, 0.15, 0.15),
    "none": (1.0,),
}
DEFAULT_STRENGTH = 0.1
_SPARE = 2  # times as many equations as pairs
_ALIKE = 1.02  # a longer report must tell more than this
_NOISELESS = 10**9  # reports of each cohort in counts without noise
_MAX_CHECKED = 10**9  # reports that are simulated
_SEED = 20_261_118
_SEPARATE_BITS = 64


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
    def bytes_per_report(self) -> int:
        """The size of a packed report."""
        return (self.params.k + 7) // 8


@dataclass(frozen=True, slots=True)
class AssociationRequest:
    """What a plan of two fields is asked for: the arguments of `rappor.plan` with `associate`.

    Attributes:
        epsilon_one: the largest ε of one report. If left out, the smallest that answers the
            question with these reports.
        epsilon_infinity: the largest ε of all reports on one tuple; 4 epsilon_one by default.
        reports: N. If left out, the number that the question needs.
        associate: how many values of each field are listed: (50, 10), or "50x10".
        strength: the share of clients whose first value decides the second.
        power: the chance with which the association must be found.
        alpha: the level of the test of independence.
        open_fields: which fields may hold unlisted values: "first", "both" or "none".
        max_bytes: the longest report that is acceptable.
        check: simulated collections to check the plan with; 0 for none.
        progress: called with a line of text now and then.
    """

    epsilon_one: float | None = None
    epsilon_infinity: float | None = None
    reports: int | None = None
    _: KW_ONLY
    associate: tuple[int, int] | str
    strength: float = DEFAULT_STRENGTH
    power: float = 0.8
    alpha: float = 0.05
    open_fields: OpenFields = "first"
    max_bytes: int = 128
    check: int = CHECKED_COLLECTIONS
    progress: Progress | None = field(default=None, repr=False, compare=False)


def table_of(text: str) -> tuple[int, int]:
    """The size of a table from text; ParamsError if it is not two numbers.

    >>> table_of("50x10")
    (50, 10)
    """
    rows, _, columns = text.lower().replace("×", "x").partition("x")
    if not (rows.strip().isdecimal() and columns.strip().isdecimal()):
        raise ParamsError(f"the size of a table must be two numbers such as 50x10, not {text!r}")
    return int(rows), int(columns)


def plan_association(request: AssociationRequest) -> AssociationPlan:
    """A tuple for a table of two fields: parameters, views, and how many reports it needs.

    Raises:
        ParamsError: what is impossible, with the nearest that is possible.
    """
    epsilon_one, epsilon_infinity = request.epsilon_one, request.epsilon_infinity
    reports, check = request.reports, request.check
    question = _Question.of(request)
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
    needed = question.needed()
    wanted = reports or _rounded_up(needed / layout.per_report)
    checked = _checked(question, layout.params, wanted, check, 0, say)
    if checked is not None and checked.falls_short(question.chance(layout.per_report * wanted)):
        # Noisy margins take some of the signal that the formula counts on: believe the simulations.
        layout = layout._replace(per_report=max(checked.noncentrality, 1.0) / wanted)
        wanted = reports or _rounded_up(needed / layout.per_report)
        checked = _checked(question, layout.params, wanted, check, check, say)
    separate = question.separate(goal)
    return AssociationPlan(
        table=question.table,
        params=layout.params,
        views=question.views,
        epsilon_one=one(layout.params, "tuple"),
        epsilon_infinity=infinity(layout.params, "tuple"),
        reports=wanted,
        strength=question.strength,
        power=question.chance(layout.per_report * wanted),
        detectable=question.strength * math.sqrt(needed / (layout.per_report * wanted)),
        alpha=question.alpha,
        solved=solved,
        separate_reports=needed / separate if separate else math.inf,
        checked=checked,
    )


def _rounded_up(reports: float) -> int:
    """Two significant digits, rounded up, or ParamsError."""
    if not reports <= MAX_REPORTS:
        raise ParamsError("no number of reports answers this question: raise ε or the strength")
    unit: int = 10 ** max(math.floor(math.log10(reports)) - 1, 0)
    return math.ceil(reports / unit) * unit


class _Layout(NamedTuple):
    params: Params
    per_report: float  # λ / N


class _Question(NamedTuple):
    table: tuple[int, int]
    strength: float
    power: float
    alpha: float
    views: Views
    max_bytes: int

    @classmethod
    def of(cls, request: AssociationRequest) -> _Question:
        """The question with its numbers checked, or ParamsError."""
        asked, open_fields = request.associate, request.open_fields
        table = table_of(asked) if isinstance(asked, str) else asked
        if not isinstance(table, (tuple, list)) or len(table) != 2:
            raise ParamsError(f"associate must be two numbers such as (50, 10), got {show(table)}")
        if open_fields not in get_args(OpenFields):
            raise ParamsError(
                f"open_fields must be one of {', '.join(SHARES)}; got {show(open_fields)}"
            )
        rows, columns = (whole("associate", size, 1, 2_000) for size in table)
        if min(rows, columns) == 1:
            raise ParamsError(
                f"a table of {rows} × {columns} has no association: each field needs 2 values or "
                "more"
            )
        if rows * columns > MAX_CELLS:
            raise ParamsError(
                f"a table of {rows * columns:,} pairs is more than {MAX_CELLS:,}: plan fewer values"
            )
        return cls(
            (rows, columns),
            between_0_and_1("strength", request.strength),
            between_0_and_1("power", request.power),
            between_0_and_1("alpha", request.alpha),
            _views((rows, columns), open_fields),
            whole("max_bytes", request.max_bytes, 1, 512),
        )

    def joint(self) -> dict[tuple[str, str], float]:
        """How frequent each pair is."""
        rows, columns = self.table
        first, second = _zipf(rows), _zipf(columns)
        return {
            (f"x{row}", f"y{column}"): float(
                first[row]
                * ((1 - self.strength) * second[column] + self.strength * (column == row % columns))
            )
            for row in range(rows)
            for column in range(columns)
        }

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the test of listed pairs."""
        return (self.table[0] - 1) * (self.table[1] - 1)

    def chance(self, noncentrality: float) -> float:
        """The power of the test."""
        critical = float(chdtri(self.freedom, self.alpha))
        return float(1.0 - chndtr(critical, self.freedom, noncentrality))

    def needed(self) -> float:
        """The λ that has the requested power."""
        high = 10.0
        while self.chance(high) < self.power:
            high *= 2
        return float(brentq(lambda value: self.chance(value) - self.power, 0.0, high))

    def best(self, goal: Goal) -> _Layout:
        """The layout with the shortest report among those that tell about as much as any."""
        made = [
            layout
            for k in LENGTHS
            if 16 <= k <= 8 * self.max_bytes and (layout := self.layout(goal, k)) is not None
        ]
        if not made:
            pairs = self.table[0] * self.table[1]
            raise ParamsError(
                f"a table of {pairs:,} pairs does not fit reports of {self.max_bytes} bytes: allow "
                "longer reports (max_bytes), or plan fewer values"
            )
        limit = max(layout.per_report for layout in made) / _ALIKE
        return next(layout for layout in made if layout.per_report >= limit)

    def layout(self, goal: Goal, k: int) -> _Layout | None:
        """The parameters of this length; None if no number of cohorts has enough equations."""
        pairs = self.table[0] * self.table[1]
        m = FEW_COHORTS
        while m < cohorts_for(_SPARE * pairs, k, self.views, 0):
            m *= 2
        if m > MAX_M:
            return None
        params = min_noise(goal, Params(k, 1, m, 0.5, 0.5, 0.75), "tuple", _spread)
        try:
            return _Layout(params, self._per_report(params))
        except DecodeError:  # cohorts that see one field have too few bits for its values
            return None

    def _per_report(self, params: Params) -> float:
        """λ / N: the statistic of counts without noise."""
        joint = self.joint()
        totals = np.full(params.m, _NOISELESS)
        lists = [[f"{'xy'[axis]}{n}" for n in range(self.table[axis])] for axis in (0, 1)]
        values = [
            labels if declared.kind == "string" else None
            for declared, labels in zip(self.views.fields, lists, strict=True)
        ]
        fields = fields_of(self.views, None, values)
        design = tuple_design(params, totals, self.views, fields, None)
        places = [{label: n for n, label in enumerate(each.labels)} for each in fields]
        share = np.zeros(design.matrix.shape[1])
        for (first, second), mass in joint.items():
            share[places[0][first] * self.table[1] + places[1][second]] = mass
        true = (design.matrix @ share).reshape(params.m, params.k)
        p_star, q_star = map(float, channel(params))
        ones = np.rint(_NOISELESS * (p_star + (q_star - p_star) * true)).astype(np.int64)
        counts = Counts(params, totals, ones, kind="tuple", dialect="rappor-v1")
        return fit_tuples([counts], design).independence.statistic / (_NOISELESS * params.m)

    def min_epsilon(self, reports: int) -> Goal:
        """The smallest ε1, with ε∞ = 4 ε1, that has the requested power; ParamsError if none."""
        needed = self.needed()

        def enough(once: float) -> bool:
            layout = self.layout(Goal(once, RATIO * once), 8 * self.max_bytes)
            return layout is not None and layout.per_report * reports >= needed

        low, high = 0.01, MAX_EPSILON / RATIO
        if not enough(high):
            raise ParamsError(
                f"{reports:,} reports do not answer this question at any ε1 up to {high:g}: "
                "collect more, or ask for a stronger association"
            )
        while high / low > 1.01:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return Goal(high, RATIO * high)

    def separate(self, goal: Goal) -> float:
        """λ / N of two separate reports, each with half of the ε."""
        half = Goal(goal.epsilon_one / 2, goal.epsilon_infinity / 2)
        params = min_noise(half, Params(_SEPARATE_BITS, 1, 64, 0.5, 0.5, 0.75), "string", _spread)
        joint = np.array(list(self.joint().values())).reshape(self.table)
        empty = Counts.zero(params, dialect="rappor-v1")
        totals = np.full(params.m, _NOISELESS)
        sides, chances = [], []
        p_star, q_star = map(float, channel(params))
        fields = []
        for axis, name in enumerate("xy"):
            labels = [f"{name}{n}" for n in range(self.table[axis])]
            if len(labels) > params.m * params.k:
                return 0.0
            made = string_field(name, empty, labels, None)
            order = [made.labels.index(label) for label in labels]
            chance = p_star + (q_star - p_star) * made.table[:, 1:, order]
            ones = np.rint(_NOISELESS * (chance @ joint.sum(axis=1 - axis))).astype(np.int64)
            sides.append(Counts(params, totals, ones, dialect="rappor-v1"))
            chances.append(chance)
            fields.append(made)
        both = np.rint(_NOISELESS * (chances[0] @ joint @ chances[1].transpose(0, 2, 1)))
        pairs = PairCounts(sides[0], sides[1], both.astype(np.int64))
        statistic = fit_pairs(pairs, (fields[0], fields[1])).independence.statistic
        return statistic / (_NOISELESS * params.m)


def _spread(p_star: float, q_star: float) -> float:
    """The variance of a report's bit in estimated counts, for a bit that few set."""
    return p_star * (1 - p_star) / (q_star - p_star) ** 2


def _zipf(size: int) -> FloatArray:
    shares = 1.0 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())


def _views(table: tuple[int, int], open_fields: OpenFields) -> Views:
    names = ("first", "second")
    fields = []
    for place, (name, size) in enumerate(zip(names, table, strict=True)):
        if open_fields == "both" or (open_fields == "first" and place == 0):
            fields.append(Field(name, "string"))
        else:
            letter = "xy"[place]
            labels = tuple(f"{letter}{n}" for n in range(size))
            fields.append(Field(name, "category", categories=labels))
    seen = (names, names[:1], names[1:])
    views = tuple(
        View(chosen, share) for chosen, share in zip(seen, SHARES[open_fields], strict=False)
    )
    return Views((fields[0], fields[1]), views)


def _checked(
    question: _Question,
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
    found, statistics = 0, []
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
        statistics.append(made.independence.statistic)
    return MeasuredPower(found, times, float(np.mean(statistics)) - question.freedom)
