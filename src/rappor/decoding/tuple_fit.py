"""The joint table of two fields of a tuple, by generalised least squares on the shares of bits.

y_ij = t_ij / N_j has the mean Σ_c θ_c B_ijc + λ + lift: θ are the shares of listed pairs, B their
filters in cohort j. λ is the base level of bits, which values that are not listed put on all of
them alike, one number for each sort of view; what frequent ones put on single bits beyond that is
a lift, whose law is learnt. The noise of y is known. docs/associate.md has the argument. Where no
field is open there is no λ and no lift. Nothing is projected.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack
from scipy.special import chdtrc

from rappor.aggregate.counts import Counts
from rappor.decoding.joint_fit import ChiSquare, JointFit
from rappor.decoding.least_squares import Dense, FittedShares, Iterative, solve
from rappor.decoding.lift_law import LiftLaw
from rappor.decoding.observe import Observed, observe
from rappor.decoding.quality import LEVEL
from rappor.decoding.repeats import shared_noise, total_repeats
from rappor.decoding.tuple_design import SIGHTS, TupleDesign
from rappor.errors import DecodeError
from rappor.params import Params
from rappor.typing import BoolArray, FloatArray, IntArray

_MAX_ROUNDS = 30  # of weights from shares, and shares from weights
_MIN_ROUNDS = 3
_FAR = 4.0  # standard deviations above the fit from which on a bit is called lifted
_LEAST_FREE = 1e-3  # of a bit's noise that is left in its residual
_LEARNING = 20  # rounds in which the law of lifts is learnt, each time
_STILL = 1e-3  # standard errors of a bit: shares that move less have settled
_CLEAR = 4.0  # standard errors above noise that a table needs to be tested
_NULL_ROUNDS = 3
_NOTHING = 1e-9  # of a variance: a departure that cannot be other than 0
_TOO_LARGE = 1 << 32  # multiplications that exact errors are not worth


class _Rows(NamedTuple):
    """Every bit of every cohort that is used; arrays have a number for each."""

    matrix: csr_array  # shares, then levels of unlisted values
    seen: FloatArray
    sent: FloatArray  # N_j
    sight: NDArray[np.intp]  # index in SIGHTS
    open: BoolArray  # may hold unlisted values
    size: int  # shares; the columns after them are levels
    observed: Observed
    cohorts: NDArray[np.intp]  # those that are used
    params: Params
    repeats: int  # reports of one client on one tuple

    def variance(self, level: FloatArray) -> FloatArray:
        """Variance of y: the mechanism, who is in a cohort, and what a client's reports share."""
        k = self.params.k
        true = np.clip(level, 0.0, 1.0)
        table = np.zeros((self.params.m, k))
        table[self.cohorts] = true.reshape(-1, k)
        once = self.observed.variance(table)[self.cohorts].ravel()
        others = shared_noise(self.params) + true * (1.0 - true)
        total: FloatArray = once + (self.repeats - 1) * others / self.sent
        return total


@dataclass(frozen=True, slots=True, eq=False)
class TupleFit(JointFit):
    """A `JointFit`, and what its bits say about values that are not listed.

    Attributes:
        lifted: bits far above the fit, which hardly count.
        odd_cohorts: cohorts that do not fit while the others do.
        testable: whether the listed pairs hold enough to be tested.
    """

    lifted: int = 0
    odd_cohorts: tuple[int, ...] = ()
    testable: bool = True


def fit_tuples(
    parts: Sequence[Counts], design: TupleDesign, *, null_reports: bool = False
) -> TupleFit:
    """The joint table of two fields from the counts of a tuple.

    Args:
        parts: Counts of kind tuple that differ in p and q only.
        design: the two fields, and what cohorts see of them.
        null_reports: whether clients without a tuple report too; else the shares of all values of
            two closed fields add up to 1.

    Raises:
        DecodeError: there is nothing to compare, or pairs cannot be told apart.
    """
    freedom = _freedom(design)
    rows = _rows(parts, design)
    fit = _fitted(rows)
    adds_up = not null_reports and not any(each.is_open for each in design.fields)
    return _described(design, rows, fit, freedom, adds_up)


def _freedom(design: TupleDesign) -> int:
    """Degrees of freedom of the test of independence: those of the cells that are estimated."""
    mask = _estimated(design)
    height, width = int(mask.any(axis=1).sum()), int(mask.any(axis=0).sum())
    freedom = int(mask.sum()) - height - width + 1
    if freedom < 1:
        first, second = design.fields
        if height == width == 2:  # one listed value of each, and "other"
            raise DecodeError(
                f"{first.name} and {second.name} have one listed value each, which is too little "
                f"to compare: list two values of {first.name} or of {second.name}"
            )
        lone, other = (first, second) if height == 1 else (second, first)
        raise DecodeError(
            f"{lone.name} has one listed value, and no cohort sees {other.name} alone: there is "
            f"nothing to compare it with; list two values, or collect with a view of {other.name}"
        )
    return freedom


def _estimated(design: TupleDesign) -> BoolArray:
    """Which cells have a share of their own; shape (R, C) with "other"."""
    (rows, columns), (first, second) = design.shape, design.fields
    mask = np.zeros((rows + first.is_open, columns + second.is_open), bool)
    mask[:rows, :columns] = True
    if second.is_open and design.first_alone:
        mask[:rows, -1] = True
    if first.is_open and design.second_alone:
        mask[-1, :columns] = True
    return mask


def _rows(parts: Sequence[Counts], design: TupleDesign) -> _Rows:
    params, observed = parts[0].params, observe(parts)
    k = params.k
    sight = np.repeat(design.sights, k)
    is_open = np.array([design.may_hold_others(each) for each in SIGHTS])
    levels = [
        (sight == place).astype(np.float64)
        for place in range(len(SIGHTS))
        if is_open[place] and (design.sights == place).any()
    ]
    matrix = design.matrix
    if levels:
        matrix = hstack([matrix, csr_array(np.column_stack(levels))], format="csr")
    return _Rows(
        matrix=matrix,
        seen=observed.shares[design.cohorts].ravel(),
        sent=np.repeat(observed.totals[design.cohorts], k),
        sight=sight,
        open=is_open[sight],
        size=design.matrix.shape[1],
        observed=observed,
        cohorts=design.cohorts,
        params=params,
        repeats=total_repeats(parts),
    )


class _Fitted(NamedTuple):
    solution: FittedShares
    level: FloatArray  # the true share of each bit, without lifts
    total: FloatArray  # effective variance of each bit: 1 over its information
    score: FloatArray  # residual over variance; less where a bit is lifted
    lifted: BoolArray  # bits far above the fit
    factor: FloatArray  # variance of lifts and noise over that of noise, for each sight


def _fitted(rows: _Rows) -> _Fitted:
    """Shares from weights, and weights from shares; bits that unlisted values lift count less.

    A frequent unlisted pair lifts a few bits of each cohort far above the fit, and would distort
    the listed pairs that share these bits. So lifts have a law, learnt for each sight from the
    residuals that bits have around a fit without them, and shares maximise the likelihood of all
    bits (Fisher scoring). The level λ, which is free, is what is put on every bit alike.
    """
    params = rows.params
    level: FloatArray = np.full(len(rows.seen), params.h / params.k)
    laws: dict[int, LiftLaw] = {}
    noise = rows.variance(level)
    total, target = noise, rows.seen
    share: FloatArray | None = None
    for number in range(_MAX_ROUNDS):
        solution = solve(rows.matrix, target, 1.0 / total, share)
        before, share = share, solution.share
        level = rows.matrix @ share
        if number >= _MIN_ROUNDS - 1 and before is not None:
            moved = np.abs(share - before).max()
            if moved < _STILL * np.sqrt(float(np.median(noise))):
                break
        noise = rows.variance(level)
        free = np.maximum(1.0 - solution.leverage, _LEAST_FREE)
        residual, total = rows.seen - level, noise.copy()
        score = residual / noise
        for place in range(len(SIGHTS)):
            here = (rows.sight == place) & rows.open
            if not here.any():
                continue
            law = laws.get(place) or LiftLaw.start(noise[here])
            # What a bit's residual would be around a fit without it.
            law = law.learnt(residual[here] / free[here], noise[here] / free[here], _LEARNING)
            laws[place] = law
            total[here] = 1.0 / law.information(noise[here])
            score[here] = law.score(residual[here], noise[here])
        target = level + score * total
    residual = rows.seen - level
    free = np.maximum(1.0 - solution.leverage, _LEAST_FREE)
    lifted = rows.open & (residual > _FAR * np.sqrt(noise * free))
    factor = np.ones(len(SIGHTS))
    for place, law in laws.items():
        here = rows.sight == place
        factor[place] += law.variance() * float((1.0 / noise[here]).mean())
        # Scores are not quite linear in shares, which information does not know: errors from it at
        # a bit's noise are too small. An empirical factor makes up for that, without a derivation:
        # information is taken at noise / √free, between the noise of a bit and its noise around a
        # fit without it, noise / free. tests/statistical/test_tuple_association.py measures it.
        total[here] = 1.0 / law.information(noise[here] / np.sqrt(free[here]))
    if laws:
        solution = solve(rows.matrix, level + score * total, 1.0 / total, share)
    return _Fitted(solution, level, total, score, lifted, factor)


def _odd_cohorts(rows: _Rows, fit: _Fitted) -> tuple[int, ...]:
    """Cohorts whose residuals are far larger than noise and lifts of all of them explain."""
    k = rows.params.k
    free = np.maximum(1.0 - fit.solution.leverage, _LEAST_FREE)
    square = (fit.score**2 * fit.total).reshape(-1, k).sum(axis=1)
    freedom = np.maximum(free.reshape(-1, k).sum(axis=1), 1.0)
    level = LEVEL / len(rows.cohorts)
    odd = chdtrc(freedom, square) < level
    return tuple(rows.cohorts[odd].tolist()) if odd.mean() < 0.5 else ()


class _Errors(NamedTuple):
    """Two solutions that differ in what they call an error."""

    realised: FittedShares  # around the shares that the reports really hold
    drawn: FittedShares  # around the shares of the population that clients were drawn from


def _errors(design: TupleDesign, rows: _Rows, fit: _Fitted) -> _Errors:
    """The covariance of all shares, exactly where that is affordable.

    Elsewhere, in tables that are not `Dense` or take more than `_TOO_LARGE` multiplications, both
    are the inverse of the information: who is in which cohort is then noise that is independent
    from bit to bit, and around realised shares errors are a little too large.

    Shares are L y. Given who is in which cohort, y varies by the mechanism's noise and by what a
    client's reports share. Cohort j holds n_cj of the pair c instead of n_c N_j / N; with D_jc =
    L_j B_jc - w_j e_c that adds Σ_j (D_j diag(θ) D_j' - D_j θ θ' D_j') / N_j for each report of a
    client. Around the population's shares there is (diag(θ) - θθ') / N more.
    """
    solution, size = fit.solution, rows.size
    cohorts, k = len(design.cohorts), rows.params.k
    if isinstance(solution, Iterative):
        solution = solution.with_draws()
    if not isinstance(solution, Dense) or cohorts * size**2 * (size + k) > _TOO_LARGE:
        return _Errors(solution, solution)
    repeats, chance = rows.repeats, rows.params.h / k
    share = np.maximum(solution.share[:size], 0.0)
    share = share / max(float(share.sum()), 1.0)
    rest = 1.0 - float(share.sum())
    true = np.clip(fit.level, 0.0, 1.0)
    total = fit.total - repeats * true * (1.0 - true) / rows.sent
    total = total + np.where(rows.open, repeats * rest * chance * (1.0 - chance) / rows.sent, 0.0)
    operator = solution.operator
    spread = (operator * total) @ operator.T
    filters = _true_filters(design, rows, chance)
    totals = rows.observed.totals
    weights = totals / totals.sum()
    own = np.eye(len(operator), size + 1)
    own[:, size:] = 0.0
    masses = np.append(share, rest)
    for place in range(cohorts):
        part = slice(place * k, place * k + k)
        away = operator[:, part] @ filters[part] - weights[design.cohorts[place]] * own
        spread += repeats / rows.sent[part.start] * _multinomial(away, masses)
    unused = np.setdiff1d(np.flatnonzero(totals > 0), design.cohorts)
    drawn = _multinomial(own, masses) * (repeats / totals.sum())
    spread += float(weights[unused].sum()) * drawn
    return _Errors(replace(solution, inverse=spread), replace(solution, inverse=spread + drawn))


def _multinomial(effects: FloatArray, masses: FloatArray) -> FloatArray:
    """Covariance of effects, one column for each outcome of a draw with these chances."""
    mean = effects @ masses
    found: FloatArray = (effects * masses) @ effects.T - np.outer(mean, mean)
    return found


def _true_filters(design: TupleDesign, rows: _Rows, chance: float) -> FloatArray:
    """What a report of each share, and one of all the rest, puts on the bits of each cohort."""
    filters = np.column_stack([design.matrix.toarray(), np.zeros(len(rows.seen))])
    for place in range(len(SIGHTS)):
        here = rows.sight == place
        if here.any() and rows.open[here][0]:
            hidden = ~filters[here].any(axis=0)
            filters[np.ix_(here, hidden)] = chance
    return filters


class _Block(NamedTuple):
    """Sums of shares of one sort, and where they are in the table: constant + matrix @ shares."""

    row: IntArray
    column: IntArray
    matrix: csr_array
    constant: float = 0.0

    def value(self, solution: FittedShares) -> FloatArray:
        """The estimates."""
        found: FloatArray = self.constant + self.matrix @ solution.share
        return found


class _Sums(NamedTuple):
    """What is reported of the shares; cells and margins that nothing tells are missing."""

    shape: tuple[int, int]
    cells: list[_Block]  # listed pairs, (listed, other), (other, listed), both other
    tested: int  # how many of these blocks have shares of their own
    margins: tuple[list[_Block], list[_Block]]
    listed: csr_array  # all listed pairs together, one row

    def of_margin(self, axis: int) -> csr_array | None:
        """The margins of one field in order; None if nothing tells them."""
        blocks = self.margins[axis]
        return vstack([block.matrix for block in blocks], format="csr") if blocks else None


def _sums(design: TupleDesign, size: int) -> _Sums:
    (rows, columns), (first, second), further = design.shape, design.fields, design.further
    pairs = np.arange(rows * columns)
    ones = np.ones(design.pairs)
    starts = np.arange(0, design.pairs + 1, further)
    listed = csr_array((ones, np.arange(design.pairs), starts), shape=(len(pairs), size))
    cells = [_Block(pairs // columns, pairs % columns, listed)]
    start = design.pairs
    for is_known, axis in (
        (second.is_open and design.first_alone, 0),
        (first.is_open and design.second_alone, 1),
    ):
        if is_known:
            own = np.arange(design.shape[axis])
            unit = csr_array((np.ones(len(own)), (own, start + own)), shape=(len(own), size))
            start += len(own)
            last = np.full(len(own), design.shape[1 - axis])
            place = (own, last) if axis == 0 else (last, own)
            cells.append(_Block(place[0], place[1], unit))
    tested = len(cells)
    if first.is_open and second.is_open and design.first_alone and design.second_alone:
        everything = sum(block.matrix.sum(axis=0) for block in cells)
        corner = csr_array(-np.atleast_2d(everything))
        cells.append(_Block(np.array([rows]), np.array([columns]), corner, 1.0))
    margins = []
    for axis, is_known in enumerate((design.first_alone, design.second_alone)):
        margins.append(_margin(design, cells[:tested], axis, size) if is_known else [])
    shape = rows + first.is_open, columns + second.is_open
    total = csr_array(np.atleast_2d(listed.sum(axis=0)))
    return _Sums(shape, cells, tested, (margins[0], margins[1]), total)


def _margin(design: TupleDesign, cells: list[_Block], axis: int, size: int) -> list[_Block]:
    """The sums over rows or columns, and "other": what they leave of 1."""
    own = np.arange(design.shape[axis])
    nowhere = np.zeros_like(own)
    total = csr_array((len(own), size))
    for block in cells:
        place = block.row if axis == 0 else block.column
        here = np.flatnonzero(place < len(own))
        sums = (np.ones(len(here)), (place[here], here))
        total = total + csr_array(sums, shape=(len(own), len(place))) @ block.matrix
    blocks = [_Block(own, nowhere, csr_array(total))]
    if design.fields[axis].is_open:
        rest = csr_array(-np.atleast_2d(total.sum(axis=0)))
        blocks.append(_Block(np.array([len(own)]), np.array([0]), rest, 1.0))
    return blocks


def _described(
    design: TupleDesign, rows: _Rows, fit: _Fitted, freedom: int, adds_up: bool
) -> TupleFit:
    """Cells, margins, their variances, and the test of independence."""
    errors = _errors(design, rows, fit)
    sums = _sums(design, rows.matrix.shape[1])
    solution = errors.realised
    if adds_up:
        solution = solution.with_sum(sums.listed, 1.0)
    share, variance, *covariances = (np.full(sums.shape, np.nan) for _ in range(4))
    for block in sums.cells:
        at = block.row, block.column
        share[at] = block.value(solution)
        variance[at] = solution.covariance(block.matrix, block.matrix)
        for axis in (0, 1):
            margin = sums.of_margin(axis)
            if margin is not None:
                covariances[axis][at] = solution.covariance(block.matrix, margin[at[axis]])
    margins, margin_variances = [], []
    for axis, blocks in enumerate(sums.margins):
        value, spread = (np.full(sums.shape[axis], np.nan) for _ in range(2))
        for block in blocks:
            value[block.row] = block.value(solution)
            spread[block.row] = solution.covariance(block.matrix, block.matrix)
        margins.append(value)
        margin_variances.append(spread)
    listed = float((sums.listed @ solution.share)[0])
    uncertain = max(float(solution.covariance(sums.listed, sums.listed)[0]), 0.0)
    departed = _depart(sums, errors.drawn)
    statistic = departed.statistic if departed else 0.0
    unknown = np.full(sums.shape, np.nan)
    return TupleFit(
        share=share,
        variance=variance,
        margins=(margins[0], margins[1]),
        margin_variances=(margin_variances[0], margin_variances[1]),
        with_row=covariances[0],
        with_column=covariances[1],
        departure=departed.departure if departed else unknown,
        departure_variance=departed.variance if departed else unknown,
        independence=ChiSquare(statistic, float(freedom), float(chdtrc(freedom, statistic))),
        listed=(listed, uncertain),
        excess=(float(fit.factor[0]), float(fit.factor[1:].max())),
        lifted=int(fit.lifted.sum()),
        odd_cohorts=_odd_cohorts(rows, fit),
        testable=departed is not None,
    )


class _Departed(NamedTuple):
    departure: FloatArray  # (R, C)
    variance: FloatArray  # (R, C)
    statistic: float


def _depart(sums: _Sums, solution: FittedShares) -> _Departed | None:
    """The score test: χ² of the cells around the best table with independent fields.

    Near a table r c' the independent ones are r v' + u c', to first order. Of these the nearest is
    fitted, r and c follow from it, and so on; what the cells leave is the departure. Its variance
    is that of the cells minus that of the fitted table.

    Args:
        sums: the cells.
        solution: with the errors around the population's shares.

    Returns:
        None if the fitted table is no larger than noise makes it: nothing can be tested.
    """
    blocks = sums.cells[: sums.tested]
    row, column = (np.concatenate([block[place] for block in blocks]) for place in (0, 1))
    matrix = vstack([block.matrix for block in blocks], format="csr")
    value = matrix @ solution.share
    places, (height, width) = np.arange(len(value)), sums.shape
    rows = np.bincount(row, value, height)
    columns = np.bincount(column, value, width)
    seen = solution.whiten(matrix, csr_array(value[:, None]))[:, 0]
    at = np.tile(places, 2), np.concatenate([row, height + column])
    for _ in range(_NULL_ROUNDS):
        entries = np.concatenate([columns[column], rows[row]])
        tangent = csr_array((entries, at), shape=(len(value), height + width))
        white = solution.whiten(matrix, tangent)
        inverse = np.linalg.pinv(white.T @ white, hermitian=True)
        nearest = inverse @ (white.T @ seen)
        table = np.outer(nearest[:height], columns) + np.outer(rows, nearest[height:])
        rows, columns = table.sum(axis=1), table.sum(axis=0)
    fitted = white @ nearest
    # The largest singular value of a table of noise is about √R + √C.
    if np.sqrt(fitted @ fitted) < np.sqrt(height) + np.sqrt(width) + _CLEAR:
        return None
    gap = value - tangent @ nearest
    spread = np.concatenate([solution.covariance(block.matrix, block.matrix) for block in blocks])
    explained = np.asarray(tangent.multiply(tangent @ inverse).sum(axis=1)).ravel()
    left = spread - explained
    departure, variance = (np.full(sums.shape, np.nan) for _ in range(2))
    departure[row, column] = gap
    variance[row, column] = np.where(left > _NOTHING * spread, left, np.nan)
    away = solution.whiten(matrix, csr_array(gap[:, None]))[:, 0]
    return _Departed(departure, variance, float(away @ away))
