"""The figures behind a judgement: residuals, effects, balance, missing strings, reach (§4).

`quality` judges a result by these figures; `diagnose` puts them next to its checks. A residual is
observed minus fitted, in standard deviations of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtri

from rappor.decoding.closed_form import Bits
from rappor.decoding.own_decoder import OwnDetail
from rappor.decoding.search import Detail
from rappor.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.decoding.quality import Check
    from rappor.decoding.result import Decoded

MAX_LISTED = 10  # residuals, strings and cohorts that are listed by name
POWERS = (0.5, 0.8, 0.95)
_MIN_MEAN = 5.0  # reports that a cohort must have on average for a χ² test of cohort sizes
_ALIEN_LEVEL = 1e-4
_PRESENT = 0.75  # of h / k bits: strings collide, and a law is learnt with error
_COHORTS = 0.9  # of cohorts that must show a missing string


class Residual(NamedTuple):
    """A bit of a cohort and how far it is from its fit, in standard deviations of the noise."""

    cohort: int
    bit: int
    z: float


class Effect(NamedTuple):
    """By how much χ² falls when a detected string is fitted."""

    string: str
    chi2: float


class Balance(NamedTuple):
    """Sizes of cohorts, with the p-value of a χ² test of equal sizes (1 for a single cohort)."""

    cohorts: int
    empty: int
    smallest: int
    largest: int
    p_value: float


class Missing(NamedTuple):
    """What residuals say about strings that are not in the list.

    Attributes:
        rows: bits that were observed.
        lifted: bits that hold more than noise and the detected strings explain.
        by_chance: how many noise alone would lift.
        share: the approximate share of the heaviest missing string; None if none stands out.
    """

    rows: int
    lifted: int
    by_chance: float
    share: float | None


class Reach(NamedTuple):
    """The share of reports that is detected with some power."""

    power: float
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """How far a result can be trusted: its checks, and the figures behind them.

    Attributes:
        checks: what the result was checked for, failed checks first.
        residuals: observed minus fitted by cohort and bit, in standard deviations of the noise,
            shape (m, k), nan in cohorts without reports; None for kinds without a fit.
        largest: the largest residuals, of either sign.
        effects: what each detected string explains, largest first.
        balance: cohort sizes; None if they are not known.
        missing: signs of strings that are not in the list.
        detectable: the smallest shares that these reports show; ∞ if they show nothing.
        reports: N.
        reports_for_one_percent: about how many reports show a share of 1 % in half of all cases.
    """

    checks: tuple[Check, ...]
    residuals: FloatArray | None = field(repr=False)
    largest: tuple[Residual, ...]
    effects: tuple[Effect, ...]
    balance: Balance | None
    missing: Missing | None
    detectable: tuple[Reach, ...]
    reports: int
    reports_for_one_percent: float

    def lines(self) -> list[str]:
        """The diagnosis for a terminal: checks, then figures."""
        lines = [f"{'OK' if check.ok else 'Check'}: {check.text}" for check in self.checks]
        if self.reports:
            reach = ", ".join(f"{percent(r.share)} ({r.power:.0%})" for r in self.detectable)
            lines.append(f"Smallest share detected, by power: {reach}.")
        if self.balance:
            size = self.balance
            lines.append(
                f"Cohorts: {size.cohorts}, of {size.smallest:,} to {size.largest:,} reports; "
                f"{size.empty} empty; equal sizes: p = {size.p_value:.2g}."
            )
        if self.largest:
            listed = ", ".join(f"cohort {r.cohort} bit {r.bit} {r.z:+.1f}" for r in self.largest)
            lines.append(f"Largest residuals in standard deviations: {listed}.")
        if self.effects:
            listed = ", ".join(f"{e.string!r} {e.chi2:,.0f}" for e in self.effects[:MAX_LISTED])
            lines.append(f"Strings by how much of χ² they explain: {listed}.")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis for JSON: ∞ as "inf", what is not known as None, no arrays."""
        return {
            "checks": [check._asdict() for check in self.checks],
            "reports": self.reports,
            "reports_for_one_percent": _json(self.reports_for_one_percent),
            "detectable": [{"power": r.power, "share": _json(r.share)} for r in self.detectable],
            "balance": self.balance._asdict() if self.balance else None,
            "missing": self.missing._asdict() if self.missing else None,
            "largest": [residual._asdict() for residual in self.largest],
            "effects": [effect._asdict() for effect in self.effects],
        }


def diagnose(decoded: Decoded) -> Diagnosis:
    """The checks of a result and the figures behind them.

    Kinds with a bit for each value leave no residuals: they have balance and reach only.

    >>> from rappor import Params
    >>> from rappor.aggregate.counts import Counts
    >>> from rappor.decoding.categories import decode_basic
    >>> counts = Counts(Params(2, 1, 1, 0.0, 0.25, 0.75), [100], [[60, 40]], kind="category")
    >>> print(diagnose(decode_basic(counts, ["x", "y"])).lines()[0].partition(";")[0])
    Check: Too few reports: a share of 5 % needs about 961
    """
    detail = string_detail(decoded)
    left = residuals(detail) if detail else None
    return Diagnosis(
        checks=decoded.checks,
        residuals=left,
        largest=_largest(left),
        effects=_effects(decoded, detail) if detail else (),
        balance=balance_of(decoded),
        missing=missing_strings(decoded, detail) if detail else None,
        detectable=detectable_shares(decoded),
        reports=decoded.reports,
        reports_for_one_percent=reports_for(0.01, decoded),
    )


def string_detail(decoded: Decoded) -> Detail | None:
    """The fit behind a table of strings; None for other kinds, and without reports."""
    return decoded.detail if isinstance(decoded.detail, Detail) else None


def detectable_shares(decoded: Decoded) -> tuple[Reach, ...]:
    """The share detected with each power: threshold + Φ⁻¹(power) standard errors.

    The standard error is that of a candidate that is not fitted.
    """
    if isinstance(decoded.detail, Detail):
        error = math.sqrt(decoded.detail.fit.scale / decoded.detail.scores.typical)
    elif isinstance(decoded.detail, OwnDetail):
        error = decoded.detail.typical_error
    elif isinstance(decoded.detail, Bits) and decoded.reports:
        error = math.sqrt(float(decoded.detail.if_none.max(initial=0.0))) / decoded.reports
    else:
        return tuple(Reach(power, math.inf) for power in POWERS)
    passing = decoded.threshold / decoded.reports
    return tuple(Reach(power, passing + float(ndtri(power)) * error) for power in POWERS)


def reports_for(share: float, decoded: Decoded) -> float:
    """About how many reports it takes to detect a share in half of all cases.

    N (s/share)², s = threshold / N being the share that these reports detect in half of all cases:
    the smallest detectable share falls with the root of the number of reports. The threshold is
    that of this table, its correction and the number of strings detected included.
    """
    smallest = detectable_shares(decoded)[0].share
    return decoded.reports * (smallest / share) ** 2 if decoded.reports else math.inf


def balance_of(decoded: Decoded) -> Balance | None:
    """Cohort sizes and whether they are equal; None if the result does not know them."""
    if isinstance(decoded.detail, Detail):
        totals: ArrayLike | None = decoded.detail.search.seen.totals
    elif isinstance(decoded.detail, (Bits, OwnDetail)):
        totals = decoded.detail.totals
    else:
        totals = np.full(decoded.cohorts, decoded.reports) if not decoded.reports else None
    if totals is None:
        return None
    sizes = np.asarray(totals, np.float64)
    p_value = balance_p_value([sizes], decoded.reports_per_client)
    empty = int((sizes == 0).sum())
    return Balance(len(sizes), empty, int(sizes.min()), int(sizes.max()), p_value)


def balance_p_value(totals: Sequence[ArrayLike], repeats: int = 1) -> float:
    """The p-value of equal cohorts: χ² = Σ (N_j - N/m)² / (N/m) on m - 1 degrees of freedom.

    Clients draw their cohort at random. If a client sends up to `repeats` reports, the variance of
    a cohort's size is at most that many times as large, and χ² is divided by it. The statistics of
    several tables add up. Tables with fewer than five reports a cohort are left out; 1 if none is
    left.

    >>> round(balance_p_value([[100, 120, 80]]), 4)
    0.0183
    """
    statistic, freedom = 0.0, 0
    for table in totals:
        sizes = np.asarray(table, np.float64)
        mean = float(sizes.mean())
        if len(sizes) > 1 and mean >= _MIN_MEAN:
            statistic += float(((sizes - mean) ** 2).sum()) / mean / repeats
            freedom += len(sizes) - 1
    return float(chdtrc(freedom, statistic)) if freedom else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class BitTable:
    """Three tables of shape (m, k), a row for each cohort.

    Attributes:
        totals: reports by cohort, shape (m,).
        counts: reports with the bit set.
        fitted: the counts that detected strings and the base level explain; None without a fit.
        residuals: observed minus fitted, in standard deviations of the noise; nan in cohorts
            without reports, None without a fit.
    """

    totals: IntArray = field(repr=False)
    counts: IntArray = field(repr=False)
    fitted: FloatArray | None = field(repr=False)
    residuals: FloatArray | None = field(repr=False)


def bit_table(decoded: Decoded, parts: Sequence[Counts]) -> BitTable:
    """The tables of a result and of the counts that it was made from.

    fitted count = Σ over groups of N_j (p* + (q*-p*) share), with the share of the fit.

    >>> from rappor import Params
    >>> from rappor.aggregate.counts import Counts
    >>> from rappor.decoding.categories import decode_basic
    >>> made = Counts(Params(2, 1, 1, 0.0, 0.25, 0.75), [100], [[60, 40]], kind="category")
    >>> bit_table(decode_basic(made, ["x", "y"]), [made]).counts.tolist()
    [[60, 40]]
    """
    totals = np.sum([part.totals for part in parts], axis=0)
    counts = np.sum([part.ones for part in parts], axis=0)
    detail = string_detail(decoded)
    if detail is None:
        return BitTable(totals, counts, None, None)
    seen = detail.search.seen
    shares = seen.shares - _left(detail)
    fitted = np.zeros_like(shares)
    for group in seen.groups:
        fitted += group.totals[:, None] * (group.p_star + group.gain * shares)
    return BitTable(totals, counts, fitted, residuals(detail))


def residuals(detail: Detail) -> FloatArray:
    """Observed minus fitted shares over their noise, shape (m, k); nan in empty cohorts."""
    seen, fit = detail.search.seen, detail.fit
    left = _left(detail) / np.sqrt(fit.variance.reshape(seen.shares.shape))
    left[~seen.live] = np.nan
    return left


def upper_deviates(detail: Detail) -> FloatArray:
    """How unlikely each cell is to be as high as it is: the z of its binomial tail, shape (m, k).

    Where few ones are expected the noise is skewed, and residuals in standard deviations would look
    too large. Cells below the fit, and those of several tables, keep their `residuals`.
    """
    seen, plain = detail.search.seen, np.nan_to_num(residuals(detail))
    if len(seen.groups) > 1:
        return plain
    group = seen.groups[0]
    sent = np.maximum(group.totals, 1.0)[:, None]
    seen_ones = group.p_star + group.gain * seen.shares
    ones = group.p_star + group.gain * (seen.shares - _left(detail))
    edge = 0.5 / (sent + 1.0)
    ones = np.clip(ones, edge, 1.0 - edge)
    share = np.clip(seen_ones - 0.5 / sent, edge, 1.0 - edge)  # P(X >= x) includes x
    with np.errstate(divide="ignore", invalid="ignore"):
        tilt = np.log(share / ones) - np.log((1 - share) / (1 - ones))
        gap = share * tilt + np.log((1 - share) / (1 - ones))
        root = np.sqrt(2 * sent * np.maximum(gap, 0.0))
        found = root + np.log(tilt * np.sqrt(sent * share * (1 - share)) / root) / root
    high = (plain > 1.0) & np.isfinite(found) & (root > 0.1)
    return np.where(high, np.minimum(found, plain), plain)


def _left(detail: Detail) -> FloatArray:
    """What the fit leaves of each share; the base level of unlisted mass counts as fitted."""
    shape = detail.search.seen.shares.shape
    return np.asarray((detail.fit.residual - _base_level(detail)).reshape(shape))


def _base_level(detail: Detail) -> float:
    """What most bits have left: the robust fit leaves unlisted mass in its residuals."""
    seen, fit = detail.search.seen, detail.fit
    if fit.law is None:
        return 0.0
    return float(np.median(fit.residual[np.repeat(seen.live, seen.shares.shape[1])]))


def _largest(left: FloatArray | None) -> tuple[Residual, ...]:
    if left is None:
        return ()
    size = np.abs(np.nan_to_num(left)).ravel()
    order = np.argsort(-size, kind="stable")[:MAX_LISTED]
    bits = left.shape[1]
    return tuple(
        Residual(int(row) // bits, int(row) % bits, float(left.flat[row]))
        for row in order
        if size[row] > 0
    )


def _effects(decoded: Decoded, detail: Detail) -> tuple[Effect, ...]:
    """z² before the scale: what least squares gains by a column, given the others."""
    place = {text: column for column, text in enumerate(detail.search.design.strings.strings)}
    gain = detail.scores.share**2 * detail.scores.information
    effects = [Effect(row.string, float(gain[place[row.string]])) for row in decoded.detected]
    return tuple(sorted(effects, key=lambda effect: (-effect.chi2, effect.string)))


def missing_strings(decoded: Decoded, detail: Detail) -> Missing:
    """Count the bits with unexplained mass, and estimate the heaviest missing string.

    A string of share s lifts h bits of every cohort by s. If the unlisted mass reaches s in h of k
    bits, and in nearly every cohort, a string of about that share is missing.
    """
    seen, fit = detail.search.seen, detail.fit
    live = np.repeat(seen.live, seen.shares.shape[1])
    base = _base_level(detail)
    error = np.sqrt(fit.variance[live])
    lift = fit.residual[live] - base
    level = 1.0 / seen.rows
    lifted = int((lift > -ndtri(level) * error).sum())
    share = _heaviest(detail, lift.reshape(-1, seen.shares.shape[1]), base, error)
    return Missing(seen.rows, lifted, 1.0, share if decoded.robust else None)


def _heaviest(detail: Detail, lift: FloatArray, base: float, error: FloatArray) -> float | None:
    """The largest s that h of k bits reach in the law of unlisted mass, confirmed by cohort."""
    law, place = detail.fit.law, detail.search.place
    if law is None:
        return None
    reaching = np.cumsum(law.weight[::-1])[::-1]
    enough = np.flatnonzero(reaching >= _PRESENT * place.distinct / lift.shape[1])
    share = float(law.grid[enough[-1]]) - base
    if share < 3.0 * float(np.median(error)):
        return None
    bits = round(place.distinct)
    shown = (lift > share / 2).sum(axis=1) >= bits
    return share if float(shown.mean()) >= _COHORTS else None


def alien_cohorts(detail: Detail) -> list[int]:
    """Cohorts whose bits vary far more than those of the rest, beyond the noise of each.

    A string that is missing from the list lifts bits of every cohort by the same share.
    """
    seen, fit = detail.search.seen, detail.fit
    live = np.flatnonzero(seen.live)
    if len(live) < 3:
        return []
    square = (fit.residual - _base_level(detail)).reshape(seen.shares.shape)[live] ** 2
    noise = fit.variance.reshape(seen.shares.shape)[live].mean(axis=1)
    excess = square.mean(axis=1) - noise
    usual = max(float(np.median(excess)), 0.0)
    far = float(-ndtri(_ALIEN_LEVEL / len(live))) * math.sqrt(2 / square.shape[1])
    odd = live[excess > 4 * usual + (1 + far) * noise]
    return [int(cohort) for cohort in odd] if len(odd) < len(live) / 2 else []


def percent(share: float) -> str:
    """A share with two significant digits."""
    return "more than all reports" if share > 1 else f"{100 * share:.2g} %"


def rounded(number: float) -> str:
    """Three significant digits."""
    if not math.isfinite(number):
        return "infinitely many"
    return f"{int(float(f'{number:.3g}')):,}"


def _json(number: float) -> float | str:
    return "inf" if math.isinf(number) else number
