"""Decode strings: search, test, correct, and put the honest row for every candidate together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import comb, log, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rappor.aggregate.counts import Counts
from rappor.decoding.design import Design
from rappor.decoding.fit import Fit, few_cohorts_factor
from rappor.decoding.forgery import forgery_of
from rappor.decoding.intervals import limits, selection_excess
from rappor.decoding.observe import observe
from rappor.decoding.options import Correction, Method
from rappor.decoding.quality import check_result, overdispersed
from rappor.decoding.randomization import placement
from rappor.decoding.realised_variance import realised_variance
from rappor.decoding.repeats import design_effect, total_repeats
from rappor.decoding.result import Decoded, Mass, Picked, Rows, mass
from rappor.decoding.search import Detail, Scores, Search
from rappor.decoding.shrinkage import score_without_others
from rappor.decoding.significance import adjust, cut_off, null_share
from rappor.mechanism.channel import channel
from rappor.typing import FloatArray


class Finder(Protocol):
    """A way to find the strings that are there; `decode(..., method=...)` takes any.

    What it finds is tested, corrected and given intervals as usual. A `Decoder` does all of that
    itself.

    Attributes:
        name: what `Decoded.method` says.
    """

    @property
    def name(self) -> str:
        """What `Decoded.method` says."""

    def find(self, search: Search, alpha: float, design_effect: float) -> tuple[Fit, Scores]:
        """Fit the strings that are there, and score every candidate against that fit.

        Args:
            search: the observations, the candidates, and how to fit and score some of them.
            alpha: the error rate of the table.
            design_effect: how much repeated reports may widen a variance.
        """


class Stepwise:
    """Search forward and backward; go on with the robust fit if heavy strings are missing."""

    name = "auto"

    def find(self, search: Search, alpha: float, design_effect: float) -> tuple[Fit, Scores]:
        """Fit and score; see `Finder`."""
        fit, scores = search.grow((), alpha, robustly=False)
        if overdispersed(fit.chi2_dof, design_effect, search.seen.rows) and _heavy_tails(fit):
            fit, scores = search.grow(fit.active, alpha, robustly=True, before=scores)
            return fit, search.leave_one_out(fit, scores)
        return score_without_others(search, fit, scores, alpha)


class Lasso:
    """The paper's search: non-negative LASSO, then least squares on the strings it keeps."""

    name = "lasso"

    def find(self, search: Search, alpha: float, design_effect: float) -> tuple[Fit, Scores]:
        """Fit and score; see `Finder`. The penalty is chosen by prediction, not by alpha."""
        del alpha, design_effect
        from rappor.decoding.lasso import lasso_search

        return lasso_search(search)


FINDERS: dict[Method, Finder] = {"auto": Stepwise(), "lasso": Lasso()}


def decode_strings(
    parts: Sequence[Counts],
    design: Design,
    *,
    correction: Correction,
    alpha: float,
    finder: Finder,
    notes: Sequence[str] = (),
    null_reports: bool = False,
    progress: Callable[[str], None] | None = None,
) -> Decoded:
    """The table of all candidates; see `rappor.decode`."""
    counts, seen = parts[0], observe(parts)
    params, reports = counts.params, int(seen.totals.sum())
    place = placement(params.k, params.h, design.dialect, design.collisions > 0)
    cohorts = int(seen.live.sum())
    # The law of random placement has C(k, h)^m points: too few, and nothing could stand out.
    points = cohorts * log(comb(params.k, params.h)) if cohorts else 0.0
    search = Search(
        seen=seen,
        design=design,
        place=place,
        level=np.tile(place.law * params.k, params.m),
        use_design=points > log(10 * len(design) / alpha),
        correction=correction,
        progress=progress or (lambda _: None),
    )
    effect = bound_on_repeats(parts)
    if not reports:
        return empty_table(parts, design, correction, alpha, finder.name, notes)
    fit, scores = finder.find(search, alpha, effect)
    if len(parts) > 1 and fit.active:  # weigh the tables by what each bit was found to hold
        about = (fit.intercept * fit.level + fit.columns @ fit.share).reshape(seen.shares.shape)
        seen = observe(parts, about)
        search = replace(search, seen=seen)
        fit, scores = finder.find(search, alpha, effect)
    fit = fit.allowing_for_few_cohorts(cohorts)
    p_value = scores.p_value
    adjusted = adjust(p_value, correction)
    detected = (adjusted <= alpha) & (scores.share > 0)
    cut = cut_off(p_value, int(detected.sum()), correction, alpha)
    threshold = float(-ndtri(min(cut, 0.5)))
    variance = fit.scale / scores.information
    variance[list(fit.active)] = realised_variance(seen, fit)
    error = np.sqrt(variance)
    raw = scores.share * reports
    deviate = -ndtri(np.clip(p_value, 1e-300, 1 - 1e-16))
    passing = _passing(scores.share / error, deviate, threshold)
    estimate, low, high = limits(raw, error * reports, detected, passing, float(reports))
    order = np.lexsort((np.arange(len(design)), -raw))
    rows = Rows(
        reports=reports,
        strings=Picked(design.strings.strings, order),
        estimate=estimate[order],
        raw_estimate=raw[order],
        std_error=(error * reports)[order],
        low=low[order],
        high=high[order],
        p_value=p_value[order],
        adjusted_p_value=adjusted[order],
        detected=detected[order],
    )
    live = np.repeat(seen.live, params.k)
    noise = fit.variance[live]
    scale = float(((noise + fit.extra) / noise).mean()) * fit.scale
    groups = tuple(
        tuple(design.strings.strings[column] for column in group) for group in design.groups()
    )
    untestable = tuple(
        design.strings.strings[column] for column in np.flatnonzero(~scores.testable)
    )
    decoded = Decoded(
        rows=rows,
        reports=reports,
        candidates=len(design),
        cohorts=params.m,
        undetected_mass=_undetected_mass(
            fit, scores, error, detected, deviate, threshold, cohorts, reports
        ),
        chi2_dof=fit.chi2_dof,
        scale=scale,
        design_effect=effect,
        robust=fit.law is not None,
        groups=groups,
        untestable=untestable,
        reports_per_client=total_repeats(parts),
        params_digest=params.digest,
        kind="string",
        dialect=design.dialect,
        correction=correction,
        alpha=alpha,
        method=finder.name,
        threshold=float(threshold * reports * np.sqrt(fit.scale / scores.typical)),
        forgery=forgery_of(parts),
        notes=tuple(notes),
        detail=Detail(search, fit, scores),
    )
    return replace(decoded, checks=check_result(decoded, parts, null_reports=null_reports))


def _heavy_tails(fit: Fit) -> bool:
    """Whether few bits hold much of what is unexplained: heavy strings are missing from the list.

    Many rare strings add up to a nearly normal lift of all bits, for which least squares with τ² is
    right; a heavy one lifts its few bits alone, and the residuals' kurtosis shows it.
    """
    live = fit.information > 0
    residual = fit.residual[live] / np.sqrt(fit.variance[live] + fit.extra)
    around = residual - residual.mean()
    kurtosis = float((around**4).mean() / (around**2).mean() ** 2) - 3.0
    return kurtosis > max(1.0, 6 * sqrt(24 / int(live.sum())))


def bound_on_repeats(parts: Sequence[Counts]) -> float:
    """The bound on over-dispersion from clients that report a value several times."""
    repeats = total_repeats(parts)
    return max(
        float(design_effect(part.params, float(channel(part.params).p_star), repeats))
        for part in parts
    )


def _passing(z: FloatArray, deviate: FloatArray, threshold: float) -> FloatArray:
    """How many of its own standard errors each candidate needed to be detected.

    A test is not quite z over the standard error that is shown: it was made against the noise of an
    absent string, and against random placement. Its deviate grows in proportion to the share.
    """
    ratio = np.divide(threshold, deviate, out=np.ones_like(z), where=deviate > 0.5)
    return np.where(deviate > 0.5, z * ratio, threshold)


def _undetected_mass(
    fit: Fit,
    scores: Scores,
    error: FloatArray,
    detected: NDArray[np.bool_],
    deviate: FloatArray,
    threshold: float,
    cohorts: int,
    reports: int,
) -> Mass:
    """Reports whose string is none of those detected: N minus what the detected ones hold.

    Detected strings were chosen by their size, so the sum of their estimates is too large by what
    selection added, which is taken off. That is a matter of the noise itself: errors that allow for
    few cohorts are larger than it.
    """
    members = detected[list(fit.active)] if fit.active else np.zeros(0, bool)
    variance = float(fit.covariance[1:, 1:][np.ix_(members, members)].sum()) * fit.scale
    others = detected.copy()
    others[list(fit.active)] = False
    variance += float((fit.scale / scores.information[others]).sum())
    plain = error / few_cohorts_factor(cohorts)
    absent = np.where(scores.testable, null_share(scores.p_value), 0.0)
    excess, noise = selection_excess(scores.share / plain, deviate, threshold, absent)
    variance += float((noise * error**2).sum())
    added = max(float((excess * plain).sum()), 0.0)
    share = 1.0 - (float(scores.share[detected].sum()) - added)
    error_of_sum = float(np.sqrt(variance))
    return mass(share * reports, error_of_sum * reports, reports)


def empty_table(
    parts: Sequence[Counts],
    design: Design,
    correction: Correction,
    alpha: float,
    method: str,
    notes: Sequence[str],
) -> Decoded:
    """The table of no reports: every estimate 0, nothing detected, and a failed check."""
    params = parts[0].params
    zero, one = np.zeros(len(design)), np.ones(len(design))
    nothing = np.zeros(len(design), bool)
    rows = Rows(0, design.strings.strings, zero, zero, zero, zero, zero, one, one, nothing)
    empty = Decoded(
        rows=rows,
        reports=0,
        candidates=len(design),
        cohorts=params.m,
        undetected_mass=Mass(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0),
        chi2_dof=float("nan"),
        scale=1.0,
        design_effect=1.0,
        robust=False,
        groups=(),
        untestable=(),
        reports_per_client=total_repeats(parts),
        params_digest=params.digest,
        kind="string",
        dialect=design.dialect,
        correction=correction,
        alpha=alpha,
        method=method,
        threshold=float("inf"),
        forgery=forgery_of(parts),
        notes=tuple(notes),
    )
    return replace(empty, checks=check_result(empty, parts))
