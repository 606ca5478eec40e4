"""How much a report tells about an association: λ / N, from one fit to counts without noise.

The test of independence is a χ²; without noise its statistic is the noncentrality λ, which grows
with the number of reports, and gives the power.
"""

from __future__ import annotations

import math
from typing import NamedTuple, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtri, chndtr

from rappor.aggregate.counts import Counts
from rappor.aggregate.pair_counts import PairCounts
from rappor.checks import between_0_and_1, show, whole
from rappor.decoding.field_design import string_field
from rappor.decoding.joint_fit import ChiSquare
from rappor.decoding.pair_fit import pair_independence
from rappor.decoding.tuple_design import MAX_CELLS, cohorts_for, fields_of, tuple_design
from rappor.decoding.tuple_fit import fit_tuples
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism.channel import channel
from rappor.mechanism.views import Field, View, Views
from rappor.params import MAX_M, Params
from rappor.planning.association_request import AssociationRequest, OpenFields, table_of
from rappor.planning.layouts import FEW_COHORTS, LENGTHS
from rappor.planning.noise import Goal, min_noise
from rappor.planning.request import MAX_EPSILON, RATIO
from rappor.typing import FloatArray

SHARES: dict[OpenFields, tuple[float, ...]] = {
    "first": (0.8, 0.2),
    "both": (0.7, 0.15, 0.15),
    "none": (1.0,),
}
_SPARE = 2  # times as many equations as pairs
_ALIKE = 1.02  # a longer report must tell more than this
_NOISELESS = 10**9  # reports of each cohort in counts without noise
_SEPARATE_BITS = 64


class TupleLayout(NamedTuple):
    """Parameters, λ / N with them, and the degrees of freedom of the test."""

    params: Params
    per_report: float
    freedom: float


class AssociationQuestion(NamedTuple):
    """The table, the strength to be found and with which power, and how both fields are seen."""

    table: tuple[int, int]
    strength: float
    power: float
    alpha: float
    views: Views
    max_bytes: int

    @classmethod
    def of(cls, request: AssociationRequest) -> AssociationQuestion:
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

    def chance(self, noncentrality: float, freedom: float) -> float:
        """The power of the test."""
        critical = float(chdtri(freedom, self.alpha))
        return float(1.0 - chndtr(critical, freedom, noncentrality))

    def needed(self, freedom: float) -> float:
        """The λ that has the requested power."""
        high = 10.0
        while self.chance(high, freedom) < self.power:
            high *= 2
        return float(brentq(lambda value: self.chance(value, freedom) - self.power, 0.0, high))

    def best(self, goal: Goal) -> TupleLayout:
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

    def layout(self, goal: Goal, k: int) -> TupleLayout | None:
        """The parameters of this length; None if no number of cohorts has enough equations."""
        pairs = self.table[0] * self.table[1]
        m = FEW_COHORTS
        while m < cohorts_for(_SPARE * pairs, k - 1, self.views, 0):
            m *= 2
        if m > MAX_M:
            return None
        params = min_noise(goal, Params(k, 1, m, 0.5, 0.5, 0.75), "tuple", _spread)
        try:
            test = self.noiseless(params)
        except DecodeError:  # cohorts that see one field have too few bits for its values
            return None
        return TupleLayout(params, test.statistic / (_NOISELESS * params.m), test.freedom)

    def noiseless(self, params: Params) -> ChiSquare:
        """The test of counts without noise: its statistic is λ."""
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
        return fit_tuples([counts], design).independence

    def min_epsilon(self, reports: int) -> Goal:
        """The smallest ε1, with ε∞ = 4 ε1, that has the requested power; ParamsError if none."""

        def enough(once: float) -> bool:
            layout = self.layout(Goal(once, RATIO * once), 8 * self.max_bytes)
            return layout is not None and layout.per_report * reports >= self.needed(layout.freedom)

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
        """How many of two separate reports, each with half of the ε, are needed; inf if none."""
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
            made = string_field(name, empty, labels, None)
            order = [made.labels.index(label) for label in labels]
            chance = p_star + (q_star - p_star) * made.table[:, 1:, order]
            ones = np.rint(_NOISELESS * (chance @ joint.sum(axis=1 - axis))).astype(np.int64)
            sides.append(Counts(params, totals, ones, dialect="rappor-v1"))
            chances.append(chance)
            fields.append(made)
        both = np.rint(_NOISELESS * (chances[0] @ joint @ chances[1].transpose(0, 2, 1)))
        pairs = PairCounts(sides[0], sides[1], both.astype(np.int64))
        test = pair_independence(pairs, (fields[0], fields[1]))
        per_report = test.statistic / (_NOISELESS * params.m)
        return self.needed(test.freedom) / per_report if per_report > 0 else math.inf


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
