"""The joint table of two variables that were reported separately, by moment equations.

A report gives φ = (1, x) for one variable and ψ = (1, y) for the other; given the two values the
noise of φ and ψ is independent, so the mean of φ ψ' over the reports of cohort j is
T_j = A_j Π B_j', with the filters of the values as the columns of A_j and B_j. T_j is known from
pair counts. Π solves the normal equations Σ w_j G_j Π H_j = Σ w_j A_j' V_j^-1 T_j W_j^-1 B_j with
G_j = A_j' V_j^-1 A_j and H_j = B_j' W_j^-1 B_j, w_j = N_j / N. V_j = E[φφ'] and W_j = E[ψψ'] make
these the best weights where the variables are independent (docs/associate.md has the argument).
Nothing is iterated to a likelihood, so nothing depends on a start; nothing is projected.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from rappor.aggregate.pair_counts import PairCounts
from rappor.decoding.field_design import FieldDesign
from rappor.decoding.joint_fit import ChiSquare, JointFit
from rappor.errors import DecodeError
from rappor.mechanism.channel import channel
from rappor.typing import FloatArray

MAX_CELLS = 40_000
_ROUNDS = 3  # of weights from shares, and shares from weights
_MAX_STEPS = 200  # of conjugate gradients; a dozen are usual
_PRECISE = 1e-10
_MIN_FREE = 20  # residuals beyond the fitted values that an excess variance is learnt from


class _Side(NamedTuple):
    """One variable, in the cohorts that have reports."""

    table: FloatArray  # (J, 1 + k, M): A_j
    noise: FloatArray  # (J, 1 + k, M): variance of x_i for each value
    shared: FloatArray  # (1 + k,)
    share: FloatArray  # (M,): its values' shares
    weights: FloatArray  # (J, M, 1 + k): A_j' V_j^-1
    gram: FloatArray  # (J, M, M): G_j
    mean_inverse: FloatArray  # (M, M): (Σ w_j G_j)^-1
    is_open: bool

    @property
    def listed(self) -> int:
        """How many values are listed: all but "other"."""
        return len(self.share) - self.is_open

    @property
    def operators(self) -> FloatArray:
        """L_j = Ḡ^-1 A_j' V_j^-1, shape (J, M, 1 + k): Σ w_j L_j A_j = 1."""
        return self.mean_inverse @ self.weights


def fit_pairs(counts: PairCounts, fields: tuple[FieldDesign, FieldDesign]) -> JointFit:
    """The joint table of two variables from their pair counts.

    Raises:
        DecodeError: the counts have fewer equations than the table has cells.
    """
    check_equations(counts, fields)
    live = counts.totals > 0
    sent = counts.totals[live].astype(np.float64)
    own = sent / sent.sum()
    moments = _moments(counts, live)
    one = _side(fields[0], moments[:, :, 0], own, live)
    two = _side(fields[1], moments[:, 0, :], own, live)
    joint = _solve(one, two, moments, own)
    repeats = (counts.reports_per_client or 1) - 1
    return _described(one, two, joint, moments, own, float(sent.sum()), repeats)


def check_equations(counts: PairCounts, fields: tuple[FieldDesign, FieldDesign]) -> None:
    """DecodeError if the table has more cells than the counts have equations."""
    cells = len(fields[0].labels) * len(fields[1].labels)
    if cells > MAX_CELLS:
        raise DecodeError(
            f"a table of {cells:,} cells is more than {MAX_CELLS:,}: give fewer candidates"
        )
    cohorts = int((counts.totals > 0).sum())
    if not cohorts:
        raise DecodeError("there are no reports: collect some, or choose another period")
    each_cohort = (fields[0].params.k + 1) * (fields[1].params.k + 1)
    if cells > cohorts * each_cohort:
        raise DecodeError(
            f"a table of {cells:,} cells needs {cells:,} equations, but {cohorts} cohorts give "
            f"{cohorts * each_cohort:,}: list fewer candidates, or collect with "
            f"{-(-cells // each_cohort):,} cohorts"
        )


def _moments(counts: PairCounts, live: np.ndarray) -> FloatArray:
    """T_j, the mean of φψ' over the reports of each cohort: shape (J, 1 + k1, 1 + k2)."""
    sent = counts.totals[live, None].astype(np.float64)
    sides = []
    for side in (counts.first, counts.second):
        p_star, q_star = map(float, channel(side.params))
        sides.append((p_star, q_star - p_star, side.ones[live] / sent))
    (p_one, gain_one, ones), (p_two, gain_two, others) = sides
    made = np.ones((len(sent), ones.shape[1] + 1, others.shape[1] + 1))
    made[:, 1:, 0] = (ones - p_one) / gain_one
    made[:, 0, 1:] = (others - p_two) / gain_two
    both = counts.both[live] / sent[:, :, None]
    both = both - p_one * others[:, None, :] - p_two * ones[:, :, None] + p_one * p_two
    made[:, 1:, 1:] = both / (gain_one * gain_two)
    return made


def _side(each: FieldDesign, seen: FloatArray, own: FloatArray, live: np.ndarray) -> _Side:
    """One variable by itself: its shares, from which its weights come, and the other way round.

    Args:
        each: the field.
        seen: the mean of φ in each cohort, shape (J, 1 + k).
        own: w_j, the cohorts' shares of the reports, shape (J,).
        live: which cohorts have reports.
    """
    table, noise = each.table[live], each.noise()[live]
    share = np.full(table.shape[2], 1.0 / table.shape[2])
    for _ in range(_ROUNDS):
        second = (table * share) @ table.transpose(0, 2, 1)
        rows = np.arange(table.shape[1])
        second[:, rows, rows] += noise @ share
        weights = np.linalg.solve(second, table).transpose(0, 2, 1)
        gram = weights @ table
        mean = np.tensordot(own, gram, 1)
        try:
            inverse: FloatArray = np.asarray(np.linalg.inv(mean), np.float64)
        except np.linalg.LinAlgError:
            inverse = np.full_like(mean, np.nan)
        if not np.isfinite(inverse).all() or _condition(mean, inverse) > 1e12:
            raise DecodeError(
                f"{each.name}: some of its {each.listed:,} candidates cannot be told apart by the "
                "bits of the cohorts that have reports: list fewer candidates, or collect with "
                "more cohorts"
            )
        estimate = inverse @ np.einsum("j,jmi,ji->m", own, weights, seen)
        share = _simplex(estimate)
    return _Side(table, noise, each.shared(), share, weights, gram, inverse, each.is_open)


def _condition(matrix: FloatArray, inverse: FloatArray) -> float:
    return float(np.abs(matrix).sum(axis=0).max() * np.abs(inverse).sum(axis=0).max())


def _simplex(estimate: FloatArray) -> FloatArray:
    """Shares to compute noise with: nowhere negative, summing to 1."""
    above = np.maximum(estimate, 0.0)
    total = float(above.sum())
    return above / total if total > 0 else np.full_like(estimate, 1.0 / estimate.size)


def _solve(one: _Side, two: _Side, moments: FloatArray, own: FloatArray) -> FloatArray:
    """Π of the normal equations, by conjugate gradients.

    The start, Ḡ^-1 (right side) H̄^-1, is exact where the cohorts' G_j or H_j are alike, as those of
    a closed list of values are; elsewhere a dozen steps are enough.
    """
    weighted = one.weights @ moments @ two.weights.transpose(0, 2, 1)
    right = np.tensordot(own, weighted, 1)

    def apply(table: FloatArray) -> FloatArray:
        made: FloatArray = np.tensordot(own, one.gram @ table @ two.gram, 1)
        return made

    def precondition(table: FloatArray) -> FloatArray:
        made: FloatArray = one.mean_inverse @ table @ two.mean_inverse
        return made

    joint = precondition(right)
    left = right - apply(joint)
    goal = _PRECISE * float(np.sqrt(np.vdot(right, precondition(right))))
    near = precondition(left)
    direction, size = near, float(np.vdot(left, near))
    for _ in range(_MAX_STEPS):
        if size <= goal**2:
            return joint
        image = apply(direction)
        curve = float(np.vdot(direction, image))
        if curve <= 0:
            break
        joint = joint + size / curve * direction
        left = left - size / curve * image
        near = precondition(left)
        size, before = float(np.vdot(left, near)), size
        direction = near + size / before * direction
    raise DecodeError(
        "the cells of this table cannot be told apart: list fewer candidates, or collect with more "
        "cohorts or more bits"
    )


def _described(
    one: _Side,
    two: _Side,
    joint: FloatArray,
    moments: FloatArray,
    own: FloatArray,
    reports: float,
    repeats: int,
) -> JointFit:
    """Variances, the departures from independence and their test."""
    likely = _simplex(joint)
    left, right = _with_sums(one), _with_sums(two)
    spread = _Spread(one, two, own / reports, repeats, likely)
    residual = moments - one.table @ joint @ two.table.transpose(0, 2, 1)
    factors, added = _unlisted(spread, residual, left, right)
    variance = spread.covariance((left, left), (right, right)) + added
    size = joint.shape
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    departure = joint - np.outer(rows, columns)
    centred = _centred(one), _centred(two)
    _, added_here = _unlisted(spread, residual, *centred)
    null = _departure_variance(one, two, centred, own / reports, repeats) + added_here
    series = _series(one, two, own)
    return JointFit(
        share=joint,
        variance=variance[: size[0], : size[1]] * series,
        margins=(rows, columns),
        margin_variances=(variance[: size[0], -1], variance[-1, : size[1]]),
        with_row=spread.covariance((left, left), (right, right.last()))[: size[0], : size[1]],
        with_column=spread.covariance((left, left.last()), (right, right))[: size[0], : size[1]],
        departure=departure,
        departure_variance=null * series,
        independence=_independence(one, two, centred, departure, own, reports, repeats),
        listed=(float(joint[: one.listed, : two.listed].sum()), float(variance[-2, -2])),
        excess=factors,
    )


class _Operators(NamedTuple):
    """Linear functions of one variable's moments, and what they estimate."""

    weights: FloatArray  # (J, n, 1 + k)
    aims: FloatArray  # (n, M): the sums of shares that they estimate

    def last(self) -> _Operators:
        """The last one alone."""
        return _Operators(self.weights[:, -1:], self.aims[-1:])


def _with_sums(side: _Side) -> _Operators:
    """Each value's share; then, in the last two rows, that of all listed values, and of all."""
    size = len(side.share)
    listed = (np.arange(size) < side.listed).astype(np.float64)
    aims = np.concatenate([np.eye(size), listed[None], np.ones((1, size))])
    return _Operators(aims @ side.operators, aims)


def _centred(side: _Side) -> _Operators:
    """Shares minus share times sum: what a departure from independence is made of."""
    aims = np.eye(len(side.share)) - side.share[:, None]
    return _Operators(aims @ side.operators, aims)


class _Spread(NamedTuple):
    """How estimates vary around the realised shares: the mechanism, and who is in which cohort."""

    one: _Side
    two: _Side
    weight: FloatArray  # w_j / N
    repeats: int  # other reports of the same client on the same values
    likely: FloatArray  # (R, C): the joint shares to compute noise with

    def covariance(
        self, left: tuple[_Operators, _Operators], right: tuple[_Operators, _Operators]
    ) -> FloatArray:
        """Covariance of Σ w_j L_j T_j R_j' and Σ w_j L'_j T_j R'_j, entry by entry: shape (n1, n2).

        Given the values, E[φφ'] is the square of the mean plus noise, for each variable. What both
        squares multiply to is fixed by who is in which cohort; it deviates from the realised share
        by as much as a cohort's operators times its filters differ from 1.
        """
        rows, columns = _Terms.of(self.one, *left), _Terms.of(self.two, *right)
        joint = self.likely
        noise = _through(rows.noise, joint, columns.noise + columns.square)
        noise += _through(rows.square, joint, columns.noise)
        squares = _through(rows.square, joint, columns.square)
        if self.repeats:
            first = rows.shared[:, :, None] + rows.square
            second = columns.shared[:, :, None] + columns.square
            noise += self.repeats * (_through(first, joint, second) - squares)
        uneven = squares - _through(rows.hits[0], joint, columns.hits[0])
        uneven += rows.truth @ joint @ columns.truth.T
        uneven -= _through(rows.hits[1], joint, columns.hits[1])
        uneven -= self._bias(rows, columns, 0) * self._bias(rows, columns, 1)
        total = noise + (1 + self.repeats) * uneven
        found: FloatArray = np.tensordot(self.weight, total, 1)
        return found

    def _bias(self, rows: _Terms, columns: _Terms, which: int) -> FloatArray:
        seen = _through(rows.means[which], self.likely, columns.means[which])
        meant = rows.aims[which] @ self.likely @ columns.aims[which].T
        difference: FloatArray = seen - meant
        return difference


class _Terms(NamedTuple):
    """What one variable's pair of operators makes of noise and filters; (J, n, M) if not said."""

    noise: FloatArray
    square: FloatArray  # product of the two operators' means
    shared: FloatArray  # (J, n)
    means: tuple[FloatArray, FloatArray]  # what each operator makes of each value's filter
    aims: tuple[FloatArray, FloatArray]  # (n, M): what each operator estimates
    hits: tuple[FloatArray, FloatArray]  # one's mean times the other's aim
    truth: FloatArray  # (n, M): product of the aims

    @classmethod
    def of(cls, side: _Side, one: _Operators, other: _Operators) -> _Terms:
        """The terms of two operators of a variable, row by row."""
        product = one.weights * other.weights
        means = one.weights @ side.table, other.weights @ side.table
        return cls(
            noise=product @ side.noise,
            square=means[0] * means[1],
            shared=product @ side.shared,
            means=means,
            aims=(one.aims, other.aims),
            hits=(means[0] * other.aims, means[1] * one.aims),
            truth=one.aims * other.aims,
        )


def _through(rows: FloatArray, joint: FloatArray, columns: FloatArray) -> FloatArray:
    made: FloatArray = rows @ joint @ columns.transpose(0, 2, 1)
    return made


def _unlisted(
    spread: _Spread, residual: FloatArray, left: _Operators, right: _Operators
) -> tuple[tuple[float, float], FloatArray]:
    """Variance that frequent unlisted values add, and the factors by which they widen margins.

    An unlisted value of share s lifts its own bits by s. In every cohort these are others, as if
    drawn by lot, so it adds to the variance of a bit's residual and to that of each estimate. The
    residuals show how much: bit by bit of one variable, for each estimate of the other.
    """
    one, two = spread.one, spread.two
    turned = _Spread(two, one, spread.weight, spread.repeats, spread.likely.T)
    by_column, first = _excess(spread, residual, right)
    by_row, second = _excess(turned, residual.transpose(0, 2, 1), left)
    own = spread.weight / spread.weight.sum()
    added = np.outer(_squares(left, own), by_column) + np.outer(by_row, _squares(right, own))
    return (first, second), added


def _squares(operators: _Operators, own: FloatArray) -> FloatArray:
    """Σ_j w_j² Σ_i L_j[a, i]² over the bits i; shape (n,)."""
    found: FloatArray = np.tensordot(own**2, (operators.weights[:, :, 1:] ** 2).sum(axis=2), 1)
    return found


def _excess(spread: _Spread, residual: FloatArray, right: _Operators) -> tuple[FloatArray, float]:
    """Excess variance of the first variable's bits for each of the second's estimates; a factor."""
    one, two, joint = spread.one, spread.two, spread.likely
    cohorts, rows, values = one.table.shape
    free = cohorts * (rows - 1) - values
    if not one.is_open or free < _MIN_FREE:
        return np.zeros(len(right.aims)), 1.0
    seen = (residual @ right.weights.transpose(0, 2, 1))[:, 1:]
    terms = _Terms.of(two, right, right)
    filters = one.table[:, 1:]
    mean = _through(filters, joint, terms.means[0]) ** 2
    expected = _through(one.noise[:, 1:] + filters**2, joint, terms.noise + terms.square) - mean
    if spread.repeats:
        shared = one.shared[1:, None] + filters**2
        both = _through(shared, joint, terms.shared[:, :, None] + terms.square) - mean
        expected = expected + spread.repeats * both
    own = spread.weight / spread.weight.sum()
    expected = expected * (spread.weight.sum() / own)[:, None, None]  # 1 / N_j
    fitted = 1.0 - values / (cohorts * (rows - 1))
    weighted = own[:, None, None] * (seen**2 - expected * fitted)
    found = np.maximum(weighted.sum(axis=(0, 1)) / (fitted * (rows - 1)), 0.0)
    usual = (own[:, None, None] * expected).sum(axis=(0, 1)) / (rows - 1)
    return found, 1.0 + float(found[-1] / max(usual[-1], 1e-300))


def _series(one: _Side, two: _Side, own: FloatArray) -> FloatArray:
    """diag(N^-1) over diag(Ḡ^-1 ⊗ H̄^-1), N = Σ w_j G_j ⊗ H_j: at least 1; shape (R, C).

    N = Ḡ ⊗ H̄ + Σ w_j (G_j - Ḡ) ⊗ (H_j - H̄) exactly, and the second term is small: two terms of the
    series of its inverse are enough.
    """
    singles, doubles, bases = [], [], []
    for side in (one, two):
        inverse = side.mean_inverse
        away = inverse @ (side.gram - np.tensordot(own, side.gram, 1))
        closed = away @ inverse
        singles.append(np.diagonal(closed, axis1=1, axis2=2))
        doubles.append(np.einsum("jac,lca->ajl", away, closed, optimize=True))
        bases.append(np.diag(inverse))
    pairs = np.outer(own, own).ravel()
    size = len(pairs)
    second = (doubles[0].reshape(-1, size) * pairs) @ doubles[1].reshape(-1, size).T
    first = (singles[0] * own[:, None]).T @ singles[1]
    ratio: FloatArray = np.maximum(1.0 + (second - first) / np.outer(*bases), 1.0)
    return ratio


def _departure_variance(
    one: _Side,
    two: _Side,
    centred: tuple[_Operators, _Operators],
    weight: FloatArray,
    repeats: int,
) -> FloatArray:
    """Variance of departures where the variables are independent; who reports is random too."""
    parts, mutual = [], []
    for side, operators in zip((one, two), centred, strict=True):
        terms = _Terms.of(side, operators, operators)
        parts.append((terms.noise + terms.square) @ side.share)
        mutual.append(terms.shared + terms.square @ side.share)
    total = parts[0][:, :, None] * parts[1][:, None, :]
    total += repeats * mutual[0][:, :, None] * mutual[1][:, None, :]
    found: FloatArray = np.tensordot(weight, total, 1)
    return found


def _independence(
    one: _Side,
    two: _Side,
    centred: tuple[_Operators, _Operators],
    departure: FloatArray,
    own: FloatArray,
    reports: float,
    repeats: int,
) -> ChiSquare:
    """The score test: N Σ w_j <Δ, G_j Δ H_j>, a χ² with (R-1)(C-1) degrees of freedom.

    Where a client's reports repeat, the law is that of a weighted sum of χ²; its mean and variance
    are matched by a scaled χ² (Satterthwaite).
    """
    image = np.tensordot(own, one.gram @ departure @ two.gram, 1)
    statistic = reports * float(np.vdot(departure, image))
    freedom = float((len(one.share) - 1) * (len(two.share) - 1))
    if repeats:
        linear, squared = _repeated_law(one, two, centred, own)
        mean = freedom + repeats * linear
        half = freedom + 2 * repeats * linear + repeats**2 * squared
        statistic, freedom = statistic * mean / half, mean**2 / half
    return ChiSquare(statistic, freedom, float(chdtrc(freedom, max(statistic, 0.0))))


def _repeated_law(
    one: _Side, two: _Side, centred: tuple[_Operators, _Operators], own: FloatArray
) -> tuple[float, float]:
    """Traces of what one more report of each client adds to the departures' covariance E.

    tr(P E) and tr(P E P E) with P = Ḡ ⊗ H̄, E = Σ w_j K_j ⊗ M_j: both follow from small matrices.
    """
    singles, doubles = [], []
    for side, operators in zip((one, two), centred, strict=True):
        rows = operators.weights
        means = rows @ side.table
        shared = (rows * side.shared) @ rows.transpose(0, 2, 1)
        shared = shared + (means * side.share) @ means.transpose(0, 2, 1)
        mean = np.tensordot(own, side.gram, 1) @ shared
        singles.append(np.trace(mean, axis1=1, axis2=2))
        doubles.append(np.einsum("jac,lca->jl", mean, mean, optimize=True))
    linear = float(own @ (singles[0] * singles[1]))
    squared = float(own @ (doubles[0] * doubles[1]) @ own)
    return linear, squared
