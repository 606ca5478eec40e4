"""Basic RAPPOR: one bit for each category, so that counts decode in closed form (§2.1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from rappor.aggregate.counts import Counts
from rappor.checks import between_0_and_1
from rappor.decoding.bit_law import BitLaw
from rappor.decoding.closed_form import Bits, Overlap, as_groups, estimate_bits
from rappor.decoding.forgery import forgery_of
from rappor.decoding.intervals import TAIL, above_undetected, margins
from rappor.decoding.options import Correction
from rappor.decoding.quality import Check, check_result
from rappor.decoding.repeats import total_repeats
from rappor.decoding.result import Decoded, Mass, Rows, mass
from rappor.decoding.significance import adjust
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism.predicates import category_index
from rappor.typing import FloatArray, Kind

_NEVER = -1e6  # a deviate of what cannot be
KINDS = ("category", "boolean", "bits")


def decode_basic(
    counts: Counts | Sequence[Counts],
    labels: Sequence[str] | None = None,
    *,
    correction: Correction = "fdr",
    alpha: float = 0.05,
    overlap: Overlap = "bound",
    weights: Literal["best", "reports"] = "best",
    null_reports: bool = False,
) -> Decoded:
    """T = Σ_j (c_ij - p* N_j)/(q*-p*) for each category, boolean or free bit.

    The raw estimate is unbiased; it may be negative or above N. Its standard error is that of the
    realised count, (T q*(1-q*) + (N-T) p*(1-p*))/(q*-p*)² with T held within [0, N], widened by
    the bound 1 + (R-1) ρ for repeated reports. The p-value is one-sided, the tail of the binomial
    law at T = 0 (for "false": at T = N). The interval is made of the T that such tails do not
    reject; that of a detected row allows for the fact that it had to pass the test, any other has
    an upper limit only. Estimates are those of `intervals.limits`, within their intervals.

    Args:
        counts: counts of kind category, boolean or bits; or a list of them, with one k, that were
            made under several p and q. `estimate` is then N times the combined share.
        labels: for a category its categories in order, at most k; for bits optional names; for a
            boolean optional names of true and false.
        correction: how p-values are corrected for all rows: fdr, bh, holm, bonferroni or none.
        alpha: the level of the test.
        overlap: how many clients reported in two of the tables: "bound" for the most there can be,
            None for none, or a table of report pairs; see `estimate_bits`.
        weights: "best" (one share in all groups) or "reports" (sum of the groups' counts).
        null_reports: whether clients without a value report too; for the checks of the result.

    Returns:
        Decoded. `undetected_mass` is N minus all rows: reports of no category; exactly 0 for a
        boolean, and nan for free bits, which overlap. `chi2_dof` is nan for one group: there are as
        many estimates as counts, and no degree of freedom is left to check the fit.

    >>> from rappor import Params
    >>> counts = Counts(Params(2, 1, 1, 0.0, 0.25, 0.75), [100], [[60, 40]], kind="category")
    >>> for row in decode_basic(counts, ["x", "y"]).rows:
    ...     print(row.string, row.raw_estimate, round(row.std_error, 2), row.detected)
    x 70.0 8.66 True
    y 30.0 8.66 True
    """
    alpha = between_0_and_1("alpha", alpha)
    groups = as_groups(counts, KINDS)
    kind, k = groups[0].kind, groups[0].params.k
    names = _labels(kind, k, labels)
    bits = estimate_bits(groups, min(k, len(names)), overlap=overlap, weights=weights)
    share, error, law = bits.share, np.sqrt(bits.variance), bits.law
    if kind == "boolean":
        share, error, law = (
            np.append(share, 1 - share),
            np.append(error, error),
            law.with_mirrored(),
        )
    rows, threshold = make_rows(names, bits.reports, share, error, law, correction, alpha)
    return as_decoded(
        groups,
        bits,
        rows=sort_rows(rows),
        undetected_mass=_undetected_mass(kind, bits),
        correction=correction,
        alpha=alpha,
        threshold=threshold,
        null_reports=null_reports,
        mirrored=names[1] if kind == "boolean" else "",
    )


def make_rows(
    names: Sequence[str],
    reports: int,
    share: FloatArray,
    error: FloatArray,
    law: BitLaw,
    correction: Correction,
    alpha: float,
) -> tuple[Rows, float]:
    """Rows with intervals and one-sided tests, in the order given, and the detection threshold.

    The threshold is the estimate that the largest undetected row would have needed (if all rows are
    detected, the smallest of them); ∞ without reports.

    Args:
        names: of the rows.
        reports: N.
        share: raw estimates.
        error: standard errors of their counts.
        law: how the shares vary.
        correction: see `decode_basic`.
        alpha: the level of the test.
    """
    if not reports:
        zero, one = np.zeros(len(names)), np.ones(len(names))
        nothing = np.zeros(len(names), bool)
        rows = Rows(0, list(names), zero, zero, zero, zero, zero, one, one, nothing)
        return rows, math.inf
    n = float(reports)
    z = law.deviate(share, np.zeros_like(share))
    p_value = ndtr(-z)
    adjusted = adjust(p_value, correction)
    detected = adjusted <= alpha
    critical = float(-ndtri(_critical_p(p_value, detected, correction, alpha)))
    at_end = np.isneginf(z)  # as few ones as there can be
    certain = np.isinf(z)  # no noise: absent values cannot show
    z[certain] = 0.0
    margin = margins(z, detected & ~certain, critical)
    up = np.where(at_end, above_undetected(_seen_or_less(law, share)), margin.high)
    # Near all reports the lower limit is what the upper limit of the others leaves.
    others = law.mirrored.deviate(1 - share, np.zeros_like(share))
    others = np.where(np.isneginf(others), _seen_or_less(law.mirrored, 1 - share), others)
    down = np.maximum(margin.low, above_undetected(others))
    low = np.where(detected, n * law.lower(share, down), 0.0)
    high = n * law.upper(share, up)
    raw = n * share
    moved = np.where(detected & ~certain, raw - (z - margin.estimate) * error, raw)
    # So far outside that the search for a limit ends at the edge: the tail is exponential there.
    outside = np.abs(raw - np.clip(raw, 0.0, n)) / np.maximum(error, 1e-300)
    width = np.minimum(-math.log(TAIL) * error / np.maximum(outside, 1.0), n)
    at_edge = low >= high
    high = np.where(at_edge & (raw <= 0), width, high)
    low = np.where(at_edge & (raw > 0), n - width, low)
    exact = error == 0
    low[exact] = high[exact] = np.clip(raw[exact], 0.0, n)
    estimate = np.clip(moved, low, high)
    rows = Rows(reports, list(names), estimate, raw, error, low, high, p_value, adjusted, detected)
    return rows, n * law.needed(critical)


def _seen_or_less(law: BitLaw, share: FloatArray) -> FloatArray:
    """The deviate of P(X <= x) for an absent bit: finite where that of P(X >= x) is not."""
    found = -law.mirrored.deviate(1 - share, np.ones_like(share))
    return np.maximum(found, _NEVER)


def _critical_p(
    p_value: FloatArray, detected: NDArray[np.bool_], correction: Correction, alpha: float
) -> float:
    """The largest p-value with which the best row that is not detected would be; by bisection.

    Step-wise corrections have no fixed level: what a row needs depends on the other rows.
    """
    if not len(p_value):
        return alpha
    left = np.flatnonzero(~detected)
    row = left[np.argmin(p_value[left])] if len(left) else np.argmax(p_value)
    trial = p_value.copy()
    low, high = 0.0, alpha
    for _ in range(40):
        trial[row] = (low + high) / 2
        if adjust(trial, correction)[row] <= alpha:
            low = float(trial[row])
        else:
            high = float(trial[row])
    return high


def sort_rows(rows: Rows) -> Rows:
    """Rows by raw estimate, largest first; equal ones by string."""
    keys = zip(-rows.raw_estimate, rows.strings, range(len(rows)), strict=True)
    order = [place for *_, place in sorted(keys)]
    return Rows(
        rows.reports,
        [rows.strings[i] for i in order],
        rows.estimate[order],
        rows.raw_estimate[order],
        rows.std_error[order],
        rows.low[order],
        rows.high[order],
        rows.p_value[order],
        rows.adjusted_p_value[order],
        rows.detected[order],
    )


def _undetected_mass(kind: str, found: Bits) -> Mass:
    if kind == "bits":
        return Mass(*[float("nan")] * 8)
    if kind == "boolean":
        return mass(0.0, 0.0, found.reports)
    # Bits are randomised independently given the truth, so the variances of the rows add up.
    left = found.reports - float(found.count.sum())
    return mass(left, math.sqrt(float(found.variance.sum())), found.reports)


def as_decoded(
    groups: Sequence[Counts],
    found: Bits,
    *,
    rows: Rows,
    undetected_mass: Mass,
    correction: Correction,
    alpha: float,
    threshold: float,
    null_reports: bool = False,
    checks: Sequence[Check] = (),
    mirrored: str = "",
) -> Decoded:
    """The Decoded of a closed form; `checks` are those of its kind only.

    `mirrored` is the value that a clear bit stands for, if there is one.
    """
    first = groups[0]
    decoded = Decoded(
        rows=rows,
        reports=found.reports,
        candidates=len(rows),
        cohorts=first.params.m,
        undetected_mass=undetected_mass,
        chi2_dof=found.chi2_dof,
        scale=found.design_effect,
        design_effect=found.design_effect,
        robust=False,
        groups=(),
        untestable=(),
        reports_per_client=total_repeats(groups),
        params_digest=" ".join(dict.fromkeys(group.params.digest for group in groups)),
        kind=cast(Kind, first.kind),
        dialect=first.dialect,
        correction=correction,
        alpha=alpha,
        method="closed form",
        threshold=threshold,
        forgery=forgery_of(groups, mirrored),
        detail=found,
    )
    found_checks = check_result(decoded, groups, null_reports=null_reports, more=checks)
    return replace(decoded, checks=found_checks)


def _labels(kind: str, k: int, labels: Sequence[str] | None) -> list[str]:
    if kind == "boolean":
        if k != 1:
            raise DecodeError(
                f"kind 'boolean' has one bit, got counts with k = {k}: give the kind that they have"
            )
        names = ["true", "false"] if labels is None else list(labels)
        if len(names) != 2:
            raise DecodeError(f"a boolean needs the two labels true and false, got {len(names)}")
    elif labels is None:
        if kind == "category":
            raise DecodeError(
                "kind 'category' needs labels: its categories, in order of their bits"
            )
        return [f"bit {bit}" for bit in range(k)]
    else:
        names = list(labels)
    if len(names) > (2 if kind == "boolean" else k):
        raise DecodeError(
            f"{len(names)} labels do not fit the k = {k} bits of these counts: give one for each, "
            "in order"
        )
    try:
        return list(category_index(names))
    except ParamsError as error:
        raise DecodeError(str(error).replace("categories", "labels")) from None
