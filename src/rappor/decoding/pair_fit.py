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

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import chdtrc

from rappor.aggregate.pair_counts import PairCounts
from rappor.checks import plural
from rappor.decoding.conjugate_gradients import conjugate_gradients
from rappor.decoding.field_design import FieldDesign, cohorts_enough, more_equations
from rappor.decoding.joint_fit import ChiSquare, JointFit
from rappor.errors import DecodeError
from rappor.mechanism.channel import channel
from rappor.typing import FloatArray

MAX_CELLS = 40_000
_ROUNDS = 3  # of weights from shares, and shares from weights
_PRECISE = 1e-10  # of shares
_MAX_DENSE = 1_600  # cells of a table whose variances are computed one by one
_MAX_CONDITION = 1e10
_PROBES = 8  # random tables, at most, that the variances of larger ones are learnt from
_PROBED = 800  # of their cells that are pooled in each row and column
_ROUGH = 1e-4  # of their solutions
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


class _Fitted(NamedTuple):
    """Both variables, what was seen of them, and the joint shares that fit."""

    one: _Side
    two: _Side
    moments: FloatArray
    own: FloatArray  # w_j
    joint: FloatArray
    reports: float
    repeats: int  # other reports of the same client on the same values


def fit_pairs(counts: PairCounts, fields: tuple[FieldDesign, FieldDesign]) -> JointFit:
    """The joint table of two variables from their pair counts.

    Raises:
        DecodeError: the counts do not tell the cells of the table apart.
    """
    try:
        return _described(_fitted(counts, fields))
    except np.linalg.LinAlgError:
        cohorts = cohorts_enough(*(field.told for field in fields))
        is_more = cohorts > np.count_nonzero(counts.totals)
        more = more_equations(cohorts) if is_more else "more cohorts or more bits"
        raise DecodeError(
            "the cells of this table cannot be told apart: list fewer candidates, or collect with "
            f"{more}"
        ) from None


def pair_independence(counts: PairCounts, fields: tuple[FieldDesign, FieldDesign]) -> ChiSquare:
    """The test of independence alone: faster than `fit_pairs`, whose errors it does not need."""
    fit = _fitted(counts, fields)
    rows, columns = fit.joint.sum(axis=1), fit.joint.sum(axis=0)
    return _independence(
        fit, (_centred(fit.one), _centred(fit.two)), fit.joint - np.outer(rows, columns)
    )


def _fitted(counts: PairCounts, fields: tuple[FieldDesign, FieldDesign]) -> _Fitted:
    check_equations(counts, fields)
    live = counts.totals > 0
    sent = counts.totals[live].astype(np.float64)
    own = sent / sent.sum()
    moments = _moments(counts, live)
    one = _side(fields[0], moments[:, :, 0], own, live)
    two = _side(fields[1], moments[:, 0, :], own, live)
    weighted = one.weights @ moments @ two.weights.transpose(0, 2, 1)
    joint = _solve(one, two, own, np.tensordot(own, weighted, 1)[..., None], _PRECISE)[..., 0]
    repeats = (counts.reports_per_client or 1) - 1
    return _Fitted(one, two, moments, own, joint, float(sent.sum()), repeats)


def check_equations(counts: PairCounts, fields: tuple[FieldDesign, FieldDesign]) -> None:
    """DecodeError if the table has more unknown cells than the counts have equations.

    The sums over rows and columns follow from each variable by itself. What is left of a table are
    (R-1)(C-1) numbers. A cohort tells the product of what its bits tell of each variable: its
    other moments are those of one variable, or their sums are known beforehand.
    """
    one, two = fields
    cells = len(one.labels) * len(two.labels)
    if cells > MAX_CELLS:
        raise DecodeError(
            f"a table of {cells:,} cells is more than {MAX_CELLS:,}: give fewer candidates"
        )
    cohorts = int((counts.totals > 0).sum())
    if not cohorts:
        raise DecodeError("there are no reports: collect some, or choose another period")
    needed = (len(one.labels) - 1) * (len(two.labels) - 1)
    each_cohort = one.told.most * two.told.most
    if needed > cohorts * each_cohort:
        raise DecodeError(
            f"a table of {cells:,} cells needs {needed:,} equations that tell both variables, but "
            f"{plural(cohorts, 'cohort gives', 'cohorts give')} {cohorts * each_cohort:,}: "
            f"list fewer candidates, or collect with "
            f"{more_equations(cohorts_enough(one.told, two.told))}"
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


def _solve(
    one: _Side, two: _Side, own: FloatArray, right: FloatArray, precise: float
) -> FloatArray:
    """N^-1 times some tables, shape (R, C, tables), N = Σ w_j G_j ⊗ H_j, by conjugate gradients.

    The start, Ḡ^-1 (right side) H̄^-1, is exact where the cohorts' G_j or H_j are alike, as those of
    a closed list of values are; elsewhere a dozen steps are enough.

    Raises:
        numpy.linalg.LinAlgError: N is singular, and the right side shows it.
    """
    shape = right.shape

    def each_table(
        change: Callable[[FloatArray], FloatArray],
    ) -> Callable[[FloatArray], FloatArray]:
        def changed(flat: FloatArray) -> FloatArray:
            tables = flat.reshape(shape)
            made = [change(tables[..., place]) for place in range(shape[2])]
            return np.stack(made, axis=-1).reshape(flat.shape)

        return changed

    found = conjugate_gradients(
        each_table(lambda table: np.tensordot(own, one.gram @ table @ two.gram, 1)),
        each_table(lambda table: one.mean_inverse @ table @ two.mean_inverse),
        right.reshape(-1, shape[2]),
        precise,
    )
    return found.reshape(shape)


def _described(fit: _Fitted) -> JointFit:
    """Variances, the departures from independence and their test."""
    one, two, joint = fit.one, fit.two, fit.joint
    left, right = _with_sums(one), _with_sums(two)
    centred = _centred(one), _centred(two)
    spread = _Spread(one, two, fit.own / fit.reports, fit.repeats, _simplex(joint))
    residual = fit.moments - one.table @ joint @ two.table.transpose(0, 2, 1)
    lifts = _Lifts.of(spread, residual, left, right)
    here = _Lifts.of(spread, residual, *centred).added
    # What no single cohort tells is less sure than the operators of the two variables make it.
    factor = _interactions(one, two, fit.own) / _null_variance(one, two, centred, fit.own, 0)
    variance = spread.covariance((left, left), (right, right)) + lifts.added
    rows, columns = (slice(size) for size in joint.shape)
    mixed = spread.covariance((centred[0],) * 2, (centred[1],) * 2) + here
    margins = joint.sum(axis=1), joint.sum(axis=0)
    departure = joint - np.outer(*margins)
    null = _null_variance(one, two, centred, spread.weight, fit.repeats) + here
    with_row = spread.covariance((left, left), (right, right.last())) + lifts.with_row
    with_column = spread.covariance((left, left.last()), (right, right)) + lifts.with_column
    return JointFit(
        share=joint,
        variance=variance[rows, columns] + (factor - 1.0) * mixed,
        margins=margins,
        margin_variances=(variance[rows, -1], variance[-1, columns]),
        with_row=with_row[rows, columns],
        with_column=with_column[rows, columns],
        departure=departure,
        departure_variance=null * factor,
        independence=_independence(fit, centred, departure),
        listed=(float(joint[: one.listed, : two.listed].sum()), float(variance[-2, -2])),
        excess=lifts.factors,
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


class _Lifts(NamedTuple):
    """Variance that frequent unlisted values add, and the factors by which they widen margins.

    An unlisted value of share s lifts its own bits by s. In every cohort these are others, as if
    drawn by lot, so it adds to the variance of a bit's residual and to that of each estimate. The
    residuals show how much: bit by bit of one variable, for each estimate of the other. What it
    adds to the covariance of an estimate and the last of its row or column follows likewise.
    """

    added: FloatArray
    with_row: FloatArray
    with_column: FloatArray
    factors: tuple[float, float]

    @classmethod
    def of(
        cls, spread: _Spread, residual: FloatArray, left: _Operators, right: _Operators
    ) -> _Lifts:
        """Of the estimates that these operators make."""
        turned = _Spread(spread.two, spread.one, spread.weight, spread.repeats, spread.likely.T)
        by_column = _excess(spread, residual, right)
        by_row = _excess(turned, residual.transpose(0, 2, 1), left)
        own = spread.weight / spread.weight.sum()
        rows, columns = _squares(left, own), _squares(right, own)
        return cls(
            added=np.outer(rows, by_column.own) + np.outer(by_row.own, columns),
            with_row=np.outer(rows, by_column.with_last),
            with_column=np.outer(by_row.with_last, columns),
            factors=(by_column.factor, by_row.factor),
        )


def _squares(operators: _Operators, own: FloatArray) -> FloatArray:
    """Σ_j w_j² Σ_i L_j[a, i]² over the bits i; shape (n,)."""
    found: FloatArray = np.tensordot(own**2, (operators.weights[:, :, 1:] ** 2).sum(axis=2), 1)
    return found


class _Excess(NamedTuple):
    """Excess variance of one variable's bits, for each of the other's estimates."""

    own: FloatArray
    with_last: FloatArray  # covariance with the last estimate
    factor: float  # by which the variance of the last is larger than noise makes it


def _excess(spread: _Spread, residual: FloatArray, right: _Operators) -> _Excess:
    """Excess variance of the first variable's bits for each of the second's estimates."""
    one = spread.one
    cohorts, rows, values = one.table.shape
    nothing = np.zeros(len(right.aims))
    if not one.is_open or cohorts * (rows - 1) - values < _MIN_FREE:
        return _Excess(nothing, nothing, 1.0)
    own, _ = _excess_with(spread, residual, right, right)
    own = np.maximum(own, 0.0)
    shared, usual = _excess_with(spread, residual, right, right.last())
    limit = np.sqrt(own * own[-1])
    factor = 1.0 + float(own[-1] / max(usual[-1], 1e-300))
    return _Excess(own, np.clip(shared, -limit, limit), factor)


def _excess_with(
    spread: _Spread, residual: FloatArray, right: _Operators, other: _Operators
) -> tuple[FloatArray, FloatArray]:
    """Excess covariance of two estimates for bits of the first variable; and the usual one."""
    one, two, joint = spread.one, spread.two, spread.likely
    cohorts, rows, values = one.table.shape
    seen = (residual @ right.weights.transpose(0, 2, 1))[:, 1:]
    seen = seen * (residual @ other.weights.transpose(0, 2, 1))[:, 1:]
    terms = _Terms.of(two, right, other)
    filters = one.table[:, 1:]
    means = (_through(filters, joint, terms.means[which]) for which in (0, 1))
    mean = np.multiply(*means)
    expected = _through(one.noise[:, 1:] + filters**2, joint, terms.noise + terms.square) - mean
    if spread.repeats:
        shared = one.shared[1:, None] + filters**2
        both = _through(shared, joint, terms.shared[:, :, None] + terms.square) - mean
        expected = expected + spread.repeats * both
    own = spread.weight / spread.weight.sum()
    expected = expected * (spread.weight.sum() / own)[:, None, None]  # 1 / N_j
    fitted = 1.0 - values / (cohorts * (rows - 1))
    weighted = own[:, None, None] * (seen - expected * fitted)
    usual = (own[:, None, None] * expected).sum(axis=(0, 1)) / (rows - 1)
    return weighted.sum(axis=(0, 1)) / (fitted * (rows - 1)), usual


def _interactions(one: _Side, two: _Side, own: FloatArray) -> FloatArray:
    """The part of diag(N^-1) that neither variable tells by itself; shape (R, C).

    N^-1 and P = Ḡ^-1 ⊗ H̄^-1 agree on sums over rows and columns, because G_j π = 1 for the shares
    π that weights were made from. Without these sums the diagonal of P is a product of two
    variances; that of N^-1 is larger, by about 1 / (1 - unknowns / equations).
    """
    parts = []
    for side in (one, two):
        share = side.mean_inverse.sum(axis=1)  # π
        parts.append(np.diag(side.mean_inverse) - share**2)
    product: FloatArray = np.outer(*parts)
    if product.size <= _MAX_DENSE:
        found: FloatArray = product + _exact_rest(one, two, own)
    else:
        found = product * (1.0 + _probed_rest(one, two, own, product))
    return found


def _exact_rest(one: _Side, two: _Side, own: FloatArray) -> FloatArray:
    """diag(N^-1 - P), from N with both variables scaled so that P becomes 1."""
    roots, grams = [], []
    for side in (one, two):
        root = np.linalg.cholesky(side.mean_inverse)
        roots.append(root)
        grams.append(root.T @ side.gram @ root)
    (rows, columns), cohorts = (len(root) for root in roots), len(own)
    flat = [gram.reshape(cohorts, -1) for gram in grams]
    blocks = ((flat[0] * own[:, None]).T @ flat[1]).reshape(rows, rows, columns, columns)
    normal = blocks.transpose(0, 2, 1, 3).reshape(rows * columns, rows * columns)
    inverse = cho_solve(cho_factor(normal), np.eye(len(normal)))
    if not _condition(normal, inverse) < _MAX_CONDITION:
        raise np.linalg.LinAlgError("the equations have many solutions")
    rest = (inverse - np.eye(len(inverse))).reshape(rows, columns, rows, columns)
    half = np.tensordot(roots[0], rest, 1)
    half = np.einsum("adcf,ac->adf", half, roots[0])
    found: FloatArray = np.einsum("adf,bd,bf->ab", half, *[roots[1]] * 2, optimize=True)
    return found


def _probed_rest(one: _Side, two: _Side, own: FloatArray, product: FloatArray) -> FloatArray:
    """diag(N^-1 - P) over the product, from random signs, pooled over rows and over columns.

    For independent signs z, z · (N^-1 - P) z has this diagonal as its mean. Bits are hashed at
    random, so cells of a row and of a column differ little.
    """
    generator = np.random.default_rng(0)
    probes = min(-(-_PROBED // min(product.shape)), _PROBES)
    signs = generator.choice([-1.0, 1.0], size=(*product.shape, probes))
    solved = _solve(one, two, own, signs, _ROUGH)
    start = np.einsum("ac,cds,db->abs", one.mean_inverse, signs, two.mean_inverse, optimize=True)
    ratio = (signs * (solved - start)).mean(axis=2) / product
    pooled = ratio.mean(axis=1)[:, None] + ratio.mean(axis=0) - ratio.mean()
    return np.asarray(np.maximum(pooled, 0.0))


def _null_variance(
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
    fit: _Fitted, centred: tuple[_Operators, _Operators], departure: FloatArray
) -> ChiSquare:
    """The score test: N Σ w_j <Δ, G_j Δ H_j>, a χ² with (R-1)(C-1) degrees of freedom.

    Where a client's reports repeat, the law is that of a weighted sum of χ²; its mean and variance
    are matched by a scaled χ² (Satterthwaite).
    """
    one, two, own, repeats = fit.one, fit.two, fit.own, fit.repeats
    image = np.tensordot(own, one.gram @ departure @ two.gram, 1)
    statistic = fit.reports * float(np.vdot(departure, image))
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
