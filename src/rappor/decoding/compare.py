"""Did shares differ between two subsets or two periods: a test for each candidate.

Both are fitted on the strings found in either, so that a share means the same in both; the
difference d = s1 - s2 has the sum of the two variances, and |d| / √(v1 + v2) is tested against the
normal law, two-sided. docs/compare.md says what that assumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from rappor.aggregate.counts import Counts
from rappor.aggregate.stored_counts import single
from rappor.checks import between_0_and_1, show
from rappor.decoding.candidates import Candidates
from rappor.decoding.decode import Progress, _labels, decode
from rappor.decoding.design import Design
from rappor.decoding.differences import Compared, Differences
from rappor.decoding.intervals import Z_95, Limits, limits
from rappor.decoding.options import Correction
from rappor.decoding.quality import Check
from rappor.decoding.realised_variance import realised_variance
from rappor.decoding.result import Decoded, Rows
from rappor.decoding.search import Search
from rappor.decoding.significance import adjust, check_correction, cut_off
from rappor.errors import DecodeError
from rappor.mechanism.predicates import Ranges
from rappor.typing import FloatArray

# Why a difference need not be that of the two shares shown.
FITTED_TOGETHER = (
    "a share is that of its side by itself; a difference comes from fitting both sides together, "
    "and can differ from the two shares subtracted"
)
ALLOWS_FOR_SELECTION = (
    "a share allows for the selection of what is detected, a difference for that of what differs; "
    "it can differ from the two shares subtracted"
)

Named = Iterable[str | bytes] | str | PathLike[str] | Candidates | Design | Ranges | None


class _Shares(NamedTuple):
    """One side: the share of every candidate, its variance, and whether it can be tested."""

    share: FloatArray
    variance: FloatArray
    testable: NDArray[np.bool_]


def compare(
    one: Counts | Sequence[Counts],
    other: Counts | Sequence[Counts],
    candidates: Named = None,
    *,
    dialect: str | None = None,
    correction: Correction = "fdr",
    alpha: float = 0.05,
    null_reports: bool = False,
    names: tuple[str, str] = ("First", "Second"),
    progress: Progress | None = None,
) -> Compared:
    """Which candidates have another share in one collection of reports than in another.

    A difference is the share in `one` minus the share in `other`. That of a row that differs allows
    for having been chosen by its size; `raw_difference` does not. Give the newer counts first, as
    the command and the pages do: then a string that became more frequent has a difference above 0.

    The two must not share reports. Where the same clients reported in both (two periods), their
    noise is the same in part, and the test is on the safe side: the variance of a difference is
    smaller than assumed by a factor of 1 - ρ or less (`rappor.decoding.repeats.rho`; .95 for
    Windows). The estimand is the difference of the shares from which clients are drawn, not of the
    counts that happened to be realised. All M candidates are tested and corrected for.

    Args:
        one: the newer counts: a Counts, or a list of one as `Workspace.counts` gives it.
        other: the older ones, or others to compare with; kind, dialect, k, h and m must agree, f,
            p and q may differ between the two.
        candidates: as for `decode`.
        dialect: how clients place strings; default: the dialect of the counts.
        correction: "fdr", "bh", "holm", "bonferroni" or "none".
        alpha: the error rate that the correction keeps.
        null_reports: whether clients without a value report too, as for `decode`.
        names: what the two are, in words, for tables and checks.
        progress: called with a line of text after each step.

    Raises:
        DecodeError: the counts do not belong together, one side has several p and q,
            or one of them has no reports.

    >>> from rappor import Params
    >>> params = Params(2, 1, 1, 0.0, 0.25, 0.75)
    >>> may = Counts(params, [10_000], [[5_000, 5_000]], kind="category")
    >>> june = Counts(params, [10_000], [[5_300, 4_700]], kind="category")
    >>> for row in compare(june, may, ["x", "y"]).different:
    ...     print(row.string, round(row.raw_difference, 3), round(row.difference, 3))
    x 0.06 0.058
    y -0.06 -0.058
    """
    check_correction(correction)
    between_0_and_1("alpha", alpha)
    one, other = (side if isinstance(side, Counts) else _only(side) for side in (one, other))
    chosen = dialect or _agree(one, other)
    if not isinstance(candidates, (str, PathLike, Candidates, Design, Ranges, type(None))):
        candidates = list(candidates)  # read twice
    asked = partial(
        decode,
        dialect=chosen,
        correction=correction,
        alpha=alpha,
        null_reports=null_reports,
        progress=progress,
    )
    first = asked(one, candidates)
    if one.kind == "string":
        design: Design = first.detail.search.design
        second = asked(other, design)
        robust = first.robust or second.robust
        sides = _fitted(first, second, one, other, robust)
        strings = list(design.strings.strings)
    else:
        second, robust = asked(other, candidates), False
        strings = sorted(first.rows.strings)
        if one.kind == "boolean":  # false is one minus true: no test of its own
            strings = list(_labels(candidates) or ("true",))[:1]
        sides = _closed(first.rows, strings, one), _closed(second.rows, strings, other)
    about_shares = FITTED_TOGETHER if one.kind == "string" else ALLOWS_FOR_SELECTION
    rows = _rows(strings, *sides, correction, alpha)
    untestable = sorted(
        rows.strings[int(index)] for index in np.flatnonzero(rows.std_error == np.inf)
    )
    return Compared(
        rows=rows,
        reports=(one.reports, other.reports),
        candidates=len(rows),
        robust=robust,
        untestable=tuple(untestable),
        checks=_checks(first.checks, second.checks, names),
        names=names,
        notes=tuple(dict.fromkeys((*first.notes, *second.notes, about_shares))),
        kind=one.kind,
        dialect=chosen,
        correction=correction,
        alpha=alpha,
        sides=(replace(first, detail=None), replace(second, detail=None)),
    )


def _only(counts: Any) -> Counts:
    """The Counts of a list of one; other things are refused later, by what they are."""
    is_list = isinstance(counts, Sequence) and not isinstance(counts, (str, bytes))
    if is_list and all(isinstance(each, Counts) for each in counts):
        return single(counts)
    return cast("Counts", counts)


def _agree(one: Counts, other: Counts) -> str | None:
    """The dialect of both, or DecodeError if the two cannot be compared."""
    for name, counts in (("first", one), ("second", other)):
        if not isinstance(counts, Counts):
            raise DecodeError(f"the {name} of the two must be Counts, got {show(counts)}")
    for name in ("kind", "dialect"):
        mine, theirs = getattr(one, name), getattr(other, name)
        if mine != theirs and not (name == "dialect" and None in (mine, theirs)):
            raise DecodeError(
                f"counts of two kinds of {name} cannot be compared, {mine} and {theirs}: choose "
                "two of one kind"
            )
    for name in ("k", "h", "m"):
        mine, theirs = getattr(one.params, name), getattr(other.params, name)
        if mine != theirs:
            raise DecodeError(f"counts to compare need the same {name}: {mine} and {theirs}")
    for name, counts in (("first", one), ("second", other)):
        if not counts.reports:
            raise DecodeError(f"the {name} of the two has no reports: there is nothing to compare")
    return one.dialect or other.dialect


def _fitted(
    first: Decoded, second: Decoded, one: Counts, other: Counts, robust: bool
) -> tuple[_Shares, _Shares]:
    """Both sides on the union of the strings fitted in either."""
    design: Design = first.detail.search.design
    union = set(first.detail.fit.active) | set(second.detail.fit.active)
    for group in design.groups():  # of strings with the same bits, one stands for all
        alike = [int(column) for column in group if int(column) in union]
        union -= set(alike[1:])
    active = tuple(sorted(union))
    return _fit(first, active, one, robust), _fit(second, active, other, robust)


def _fit(decoded: Decoded, active: tuple[int, ...], counts: Counts, robust: bool) -> _Shares:
    search: Search = decoded.detail.search
    before = decoded.detail.fit if decoded.robust else None
    fit = search.robust(active, before) if robust else search.least_squares(active).widened()
    fit = fit.allowing_for_few_cohorts(int(search.seen.live.sum()))
    scores = search.score(fit)
    variance = fit.scale / scores.information + _clients(scores.share, counts, 1)
    # The h bits of a string in a cohort are drawn together, which a fit does not know: exactly for
    # fitted strings, noise and cohorts first, then the draw of clients as a whole.
    members = list(active)
    drawn = _clients(scores.share[members], counts, 0)
    variance[members] = realised_variance(search.seen, fit) + drawn
    return _Shares(scores.share, variance, scores.testable)


def _closed(rows: Rows, names: list[str], counts: Counts) -> _Shares:
    """Shares of bits; their rows' errors are about realised counts, to which sampling is added."""
    place = {string: index for index, string in enumerate(rows.strings)}
    which = [place[name] for name in names]
    share, error = rows.raw_estimate[which] / rows.reports, rows.std_error[which] / rows.reports
    return _Shares(share, error**2 + _clients(share, counts, 0), np.ones(len(names), bool))


def _clients(share: FloatArray, counts: Counts, allowed: int) -> FloatArray:
    """s(1-s)/N times R: what drawing clients adds, each with up to R reports on its value.

    `allowed` of the R are in the variance already.
    """
    held = np.clip(share, 0.0, 1.0)
    times = (counts.reports_per_client or 1) - allowed
    found: FloatArray = times * held * (1 - held) / counts.reports
    return found


def _rows(
    names: list[str], one: _Shares, other: _Shares, correction: str, alpha: float
) -> Differences:
    """Test, correct and sort."""
    difference = one.share - other.share
    error = np.sqrt(one.variance + other.variance)
    error[~(one.testable & other.testable)] = np.inf
    z = np.divide(difference, error, out=np.zeros_like(error), where=error > 0)
    z[(error == 0) & (difference != 0)] = np.inf
    p_value = 2 * ndtr(-np.abs(z))
    adjusted = adjust(p_value, correction)
    different = adjusted <= alpha
    cut = cut_off(p_value, int(different.sum()), correction, alpha)
    found = _limits(difference, error, different, float(-ndtri(cut / 2)))
    order = np.lexsort((np.arange(len(names)), -np.abs(z)))
    return Differences(
        [names[index] for index in order],
        one.share[order],
        other.share[order],
        found.estimate[order],
        error[order],
        p_value[order],
        adjusted[order],
        found.low[order],
        found.high[order],
        different[order],
    )


def _limits(
    difference: FloatArray, error: FloatArray, different: NDArray[np.bool_], threshold: float
) -> Limits:
    """Estimates with 95 % limits around them, all within -1 and 1.

    A row that differs has its side from the test, and the estimate and the interval of a size that
    had to pass the threshold: it ends at 0 where nothing but the side is known. The others are not
    said to differ: their ordinary intervals hold 0, and their estimates are the raw ones moved
    between -1 and 1.
    """
    reach = np.full(len(error), np.inf)
    np.multiply(Z_95, error, out=reach, where=np.isfinite(error))
    low, high = np.minimum(difference - reach, 0.0), np.maximum(difference + reach, 0.0)
    chosen = np.flatnonzero(different)
    size, side = np.abs(difference[chosen]), np.sign(difference[chosen])
    found = limits(size, error[chosen], np.ones(len(chosen), bool), threshold, 1.0)
    estimate = difference.copy()
    estimate[chosen] = side * found.estimate
    low[chosen] = np.where(side > 0, found.low, -found.high)
    high[chosen] = np.where(side > 0, found.high, -found.low)
    for column in (low, high):
        np.clip(column, -1.0, 1.0, out=column)
    return Limits(np.clip(estimate, low, high), low, high)


def _checks(
    first: Sequence[Check], second: Sequence[Check], names: tuple[str, str]
) -> tuple[Check, ...]:
    """The checks of both: equal ones once, the others with the name of their side."""
    both = [check for check in first if check in second]
    one, other = (
        [check._replace(text=f"{name}: {check.text}") for check in checks if check not in both]
        for name, checks in zip(names, (first, second), strict=True)
    )
    return tuple(sorted((*both, *one, *other), key=lambda check: check.ok))
