"""Counts of kind ordinal -> a Histogram whose shares add up to 1 (§2.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.checks import between_0_and_1, is_real, show
from rappor.decoding.categories import as_decoded, make_rows
from rappor.decoding.closed_form import Overlap, as_groups, estimate_bits
from rappor.decoding.histogram import Histogram, Quantile, Share, SummaryEstimate, range_values
from rappor.decoding.options import Correction
from rappor.decoding.quality import Check, check_sum
from rappor.decoding.result import mass
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism.predicates import Ranges, category_index
from rappor.typing import FloatArray

__all__ = ["Histogram", "Quantile", "Share", "SummaryEstimate", "decode_ordinal"]


def decode_ordinal(
    counts: Counts | Sequence[Counts],
    ranges: Ranges | Sequence[str] | Sequence[float] | None = None,
    *,
    values: Sequence[float] | None = None,
    complete: bool = True,
    correction: Correction = "fdr",
    alpha: float = 0.05,
    overlap: Overlap = "bound",
    weights: Literal["best", "reports"] = "best",
    null_reports: bool = False,
) -> Histogram:
    """The histogram of a number that was reported by the range it lies in.

    Each range is first estimated by itself (`decode_basic`); then Σ share = 1 is imposed by least
    squares: share_i - v_i (Σ share - 1)/Σv, with covariance diag(v) - v v'/Σv. Noisy ranges give
    way more; every interval gets narrower.

    Args:
        counts: counts of kind ordinal (or category, for one bit per number), or a list of them that
            were made under several p and q.
        ranges: the collection's Ranges; or a name for each bit; or, where a bit stands for a single
            number, those numbers in increasing order; default "range 0", "range 1", ...
        values: a number that stands for each range, for the mean; default the midpoints.
        complete: whether every report lies in a range. False where null reports are collected:
            then shares need not sum to 1, and mean and quantiles are of the reports in a range.
        correction: how p-values are corrected for all ranges: fdr, bh, holm, bonferroni or none.
        alpha: the level of the test.
        overlap: how many clients reported in two of the tables: "bound" for the most there can be,
            None for none, or a table of report pairs; see `estimate_bits`.
        weights: "best" (one share in all groups) or "reports" (sum of the groups' counts).
        null_reports: whether clients without a value report too; for the checks of the result.

    >>> from rappor import Params
    >>> params = Params(3, 1, 1, 0.0, 0.25, 0.75)
    >>> found = decode_ordinal(Counts(params, [1000], [[300, 500, 420]], kind="ordinal"), [1, 2, 3])
    >>> found.share.round(3).tolist()
    [0.12, 0.52, 0.36]
    """
    alpha = between_0_and_1("alpha", alpha)
    groups = as_groups(counts, ("ordinal", "category"))
    axis = _axis(ranges, groups[0].params.k, values)
    bits = estimate_bits(groups, len(axis.labels), overlap=overlap, weights=weights)
    n = bits.reports or 1
    share, variance = bits.count / n, bits.variance / n**2
    checks: list[Check] = []
    left = mass(n - float(bits.count.sum()), math.sqrt(float(bits.variance.sum())), n)
    if complete and bits.reports:
        checks.append(check_sum(left.count, left.std_error, n))
        share = share - variance * (share.sum() - 1) / variance.sum()
    if complete or not bits.reports:
        left = mass(0.0, 0.0, bits.reports)
    law = replace(bits.law, rest=variance.sum() - variance) if complete else bits.law
    error = n * np.sqrt(_imposed(variance) if complete else variance)
    rows, threshold = make_rows(axis.labels, bits.reports, share, error, law, correction, alpha)
    decoded = as_decoded(
        groups,
        bits,
        rows=rows,
        undetected_mass=left,
        correction=correction,
        alpha=alpha,
        threshold=threshold,
        null_reports=null_reports or not complete,
        checks=checks,
    )
    return Histogram(decoded, axis.labels, share, variance, complete, *axis[1:])


def _imposed(variance: FloatArray) -> FloatArray:
    """Variance of each share after all are made to sum to 1."""
    total = variance.sum()
    taken = np.divide(variance**2, total, out=np.zeros_like(variance), where=total > 0)
    left: FloatArray = np.maximum(variance - taken, 0.0)
    return left


class _Axis(NamedTuple):
    labels: tuple[str, ...]
    edges: FloatArray | None
    values: FloatArray | None
    discrete: bool


def _axis(
    ranges: Ranges | Sequence[str] | Sequence[float] | None,
    k: int,
    values: Sequence[float] | None,
) -> _Axis:
    if isinstance(ranges, Ranges):
        axis = _of_ranges(ranges)
    elif ranges is None:
        axis = _Axis(tuple(f"range {bit}" for bit in range(k)), None, None, False)
    elif isinstance(ranges, Iterable):
        axis = _of_list(list(ranges))
    else:
        raise DecodeError(f"ranges must be Ranges or a list, got {show(ranges)}")
    if len(axis.labels) > k:
        raise DecodeError(
            f"{len(axis.labels)} ranges do not fit the k = {k} bits of these counts: give one for "
            "each, lowest first"
        )
    if len(axis.labels) < min(2, k):
        raise DecodeError("an ordinal has at least two ranges; give them all, lowest first")
    if values is None:
        return axis
    return axis._replace(values=range_values(values, len(axis.labels)), discrete=False)


def _of_ranges(ranges: Ranges) -> _Axis:
    edges = np.array([-math.inf, *map(float, ranges.edges), math.inf])
    middle = np.array([math.nan, *(edges[1:-2] + edges[2:-1]) / 2, math.nan])
    return _Axis(ranges.labels, edges, middle, False)


def _of_list(listed: list[Any]) -> _Axis:
    if listed and all(map(is_real, listed)):
        numbers = range_values(listed, len(listed))
        if not (np.diff(numbers) > 0).all():
            raise DecodeError("numbers that stand for ranges must be in increasing order")
        return _Axis(tuple(f"{x:.15g}" for x in numbers.tolist()), None, numbers, True)
    try:
        return _Axis(tuple(category_index(listed)), None, None, False)
    except ParamsError as error:
        raise DecodeError(f"ranges: {error}") from None
