"""Is this result good? One list of checks, made when a result is decoded (§4).

Warnings, `rappor decode --diagnose`, `rappor.diagnose` and the page Diagnostics all show this list.
Each statistical test has the level LEVEL and allows for repeated reports: sound data fail one or
more of them at most once in 200 decodes (FALSE_ALARMS).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from rappor.aggregate.counts import Counts
from rappor.checks import plural
from rappor.decoding.closed_form import Bits
from rappor.decoding.diagnosis import (
    MAX_LISTED,
    alien_cohorts,
    balance_p_value,
    detectable_shares,
    missing_strings,
    percent,
    reports_for,
    rounded,
    upper_deviates,
)
from rappor.decoding.options import USEFUL
from rappor.decoding.search import Detail
from rappor.mechanism.channel import channel, expected_ones, ones_variance
from rappor.mechanism.kinds import HASHED

if TYPE_CHECKING:
    from rappor.decoding.result import Decoded

LEVEL = 0.001  # of each test
FALSE_ALARMS = 5 * LEVEL  # five tests: balance, ones, missing, fit, cohorts
# The share that reports should be able to show: strings are many and rare, listed values are few.
_WANTED_STRING, _WANTED_VALUE = 0.01, 0.05
_MAX_SHOWN = 3  # examples in one sentence
_OUTSIDE_LEVEL = 1e-4  # of the test for estimates outside 0 and N, all together
_FEW_BITS = 256  # below which intervals of strings were seen to cover less than they say
_FEW_REPORTS = 100  # in a cohort, below which intervals of the robust path cover 70 to 91 %
_MIN_NOISE = 10.0  # expected random bits below which normal approximations are rough


class Check(NamedTuple):
    """One thing that was checked.

    Attributes:
        code: what was checked: reports, balance, ones, repeats; for strings missing, cohorts, fit,
            groups, untestable, placement, bits; for other kinds estimates, agreement, sum; for
            associations also views, tested, epsilon.
        ok: whether nothing is wrong.
        text: the finding, in plain English.
    """

    code: str
    ok: bool
    text: str


def check_result(
    decoded: Decoded,
    parts: Sequence[Counts],
    *,
    null_reports: bool = False,
    more: Sequence[Check] = (),
) -> tuple[Check, ...]:
    """Every check of a result, failed ones first.

    Args:
        decoded: the result, without its checks.
        parts: the counts that it was made from.
        null_reports: whether clients without a value report too, with no bit set.
        more: further checks, of one kind only.
    """
    if not decoded.reports:
        return (Check("reports", False, "There are no reports: nothing can be said."),)
    checks = [
        _check_reports(decoded, parts),
        check_balance(_cohort_sizes(parts), decoded.reports_per_client),
        check_ones(parts, null_reports=null_reports),
        _check_repeats(parts, decoded),
    ]
    detail = decoded.detail
    if isinstance(detail, Detail):
        odd = alien_cohorts(detail)
        checks += [
            _check_missing(decoded, detail, bool(odd)),
            _check_cohorts(decoded, odd),
            _check_fit(decoded, detail),
            _check_groups(decoded),
            _check_untestable(decoded),
            _check_placement(detail),
            _check_bits(detail),
        ]
    elif isinstance(detail, Bits):
        checks += [_check_estimates(detail), *_check_agreement(detail)]
    return tuple(sorted((*checks, *more), key=lambda check: check.ok))


def too_few_reports(decoded: Decoded) -> str | None:
    """The sentence to read before a table or chart of categories or numbers; None if all is well.

    With few reports, noise decides which of a few listed values is shown as the largest. A table of
    strings shows only what was detected; there the check is one of its notes.
    """
    if decoded.kind == "string":
        return None
    failed = (check.text for check in decoded.checks if check.code == "reports" and not check.ok)
    return next(failed, None)


def overdispersed(chi2_dof: float, design_effect: float, rows: int) -> bool:
    """Whether residuals are larger than noise and repeated reports explain."""
    return chi2_dof > design_effect * (1 + 6 * math.sqrt(2 / max(rows, 1)))


def _cohort_sizes(parts: Sequence[Counts]) -> list[ArrayLike]:
    """Reports by cohort: added up, or apart if the numbers of cohorts differ."""
    if len({part.params.m for part in parts}) == 1:
        return [np.sum([part.totals for part in parts], axis=0)]
    return [part.totals for part in parts]


def _check_reports(decoded: Decoded, parts: Sequence[Counts]) -> Check:
    random_bits = sum(part.reports * _min_noise(part) for part in parts)
    rough = "" if random_bits >= _MIN_NOISE else " Intervals and p-values are rough."
    strings = decoded.kind == "string"
    wanted = _WANTED_STRING if strings else _WANTED_VALUE
    needed = reports_for(wanted, decoded)
    smallest = detectable_shares(decoded)[0].share
    # A table that shows strings is of use without the rare ones: that is no fault to mend.
    enough = needed <= decoded.reports or (strings and decoded.detected and smallest <= USEFUL)
    if rough or not enough:
        shown = "no share at all" if smallest > 1 else f"only shares above {percent(smallest)}"
        text = (
            f"Too few reports: a share of {percent(wanted)} needs about {rounded(needed)}; there "
            f"are {decoded.reports:,}{'' if strings else f', which show {shown}'}.{rough}"
        )
        return Check("reports", False, text)
    noun = "strings" if strings else "values"
    share = percent(detectable_shares(decoded)[1].share)
    more = f"; {percent(wanted)} needs about {rounded(needed)}" if needed > decoded.reports else ""
    text = f"{decoded.reports:,} reports show 8 in 10 {noun} of {share}{more}."
    return Check("reports", True, text)


def _min_noise(part: Counts) -> float:
    p_star, q_star = channel(part.params)
    return float(min(p_star * (1 - p_star), q_star * (1 - q_star)))


def check_balance(totals: Sequence[ArrayLike], repeats: int = 1) -> Check:
    """Whether chance explains the cohorts' sizes.

    >>> check_balance([[61_902, 63_080, 62_400]]).text
    'Cohorts are balanced: 61,902 to 63,080 reports.'
    >>> check_balance([[60_000, 63_080, 62_400]]).ok
    False
    """
    sizes = np.concatenate([np.asarray(table) for table in totals])
    low, high = int(sizes.min()), int(sizes.max())
    if len(sizes) == 1:
        return Check("balance", True, f"There is one cohort, of {low:,} reports.")
    if balance_p_value(totals, repeats) >= LEVEL:
        shown = f"{low:,} to {high:,} reports" if low < high else f"{low:,} reports each"
        return Check("balance", True, f"Cohorts are balanced: {shown}.")
    empty = int((sizes == 0).sum())
    first = f"{empty} of {len(sizes)} cohorts have no reports and were left out. " if empty else ""
    text = (
        f"{first}Cohorts are uneven: {low:,} to {high:,} reports, though clients draw theirs at "
        "random. Reports were lost or added."
    )
    return Check("balance", False, text)


def ones_z(parts: Sequence[Counts], *, null_reports: bool = False) -> float:
    """How many standard deviations the ones of all reports are from what honest clients send.

    A report has h q* + (k-h) p* ones on average, whatever its value. If hashes may collide, or
    clients without a value report, fewer of its h bits are set; then any total between the
    two is possible and gives 0. With r reports per client the variance is at most r times as large.
    Kinds with a bit for each value have at most one set, `bits` any number.

    >>> from rappor import Params
    >>> params = Params(128, 2, 1, 0.5, 0.5, 0.75)
    >>> round(ones_z([Counts(params, [1000], [[563] * 128], dialect="rappor-v1")]), 2)
    -1.05
    """
    low = high = spread = 0.0
    seen = 0
    for part in parts:
        fewest, largest = _true_bits(part, null_reports)
        sent = part.reports
        seen += int(part.ones.sum())
        low += sent * float(expected_ones(part.params, fewest))
        high += sent * float(expected_ones(part.params, largest))
        variance = max(float(ones_variance(part.params, bits)) for bits in (fewest, largest))
        spread += sent * variance * (part.reports_per_client or 1)
    if not spread:
        return 0.0
    beyond = seen - high if seen > high else min(seen - low, 0.0)
    return beyond / math.sqrt(spread)


def check_ones(parts: Sequence[Counts], *, null_reports: bool = False) -> Check:
    """Whether honest clients with these parameters send this share of ones.

    Crude forgery changes the share, and so do other parameters.
    """
    z = ones_z(parts, null_reports=null_reports)
    if abs(z) <= -ndtri(LEVEL / 2):
        return Check("ones", True, "The share of set bits is what honest clients send.")
    sent = sum(part.reports * part.params.k for part in parts)
    share = sum(int(part.ones.sum()) for part in parts) / sent
    place = 1 if z > 0 else 0
    limit = sum(
        part.reports * float(expected_ones(part.params, _true_bits(part, null_reports)[place]))
        for part in parts
    )
    which, bound = ("More", "at most") if z > 0 else ("Fewer", "at least")
    text = (
        f"{which} bits are set than honest clients send: {share:.3%}, where these parameters give "
        f"{bound} {limit / sent:.3%} ({abs(z):.1f} standard deviations). Reports may be forged, or "
        "the counts do not belong to these parameters."
    )
    if z < 0 and not null_reports and parts[0].kind in HASHED:
        text += " Null reports, of clients without a value, have fewer too: say if there are any."
    return Check("ones", False, text)


def _true_bits(part: Counts, null_reports: bool) -> tuple[int, int]:
    """The fewest and the most bits that a value sets."""
    params = part.params
    if part.kind in HASHED:
        fewest = params.h if part.dialect == "rappor-v1" else 1
        return (0 if null_reports else fewest), params.h
    return 0, params.k if part.kind == "bits" else 1


def _check_repeats(parts: Sequence[Counts], decoded: Decoded) -> Check:
    """How many reports a client may have sent on one value: a fact, never a failure."""
    repeats = decoded.reports_per_client
    if any(part.reports_per_client is None for part in parts):
        text = (
            "The counts do not say how many reports one client may have sent on one value; "
            "intervals assume one. If clients reported several times, say how often "
            "(reports_per_client)."
        )
    elif repeats > 1:
        text = (
            f"One client may have sent up to {repeats} reports on one value; intervals are widened "
            "for it. Decoding one period at a time is safer."
        )
    else:
        text = "No client sent more than one report on one value."
    if isinstance(decoded.detail, Bits) and decoded.detail.may_overlap:
        text += (
            " Clients may have reported in several of the tables; intervals allow for as many as "
            "were given (overlap), else for the most there can be."
        )
    return Check("repeats", True, text)


def _check_missing(decoded: Decoded, detail: Detail, odd: bool) -> Check:
    """Whether cells lie so far above the fit that a frequent string must have lifted them.

    Noise lifts a cell that far with probability LEVEL, including the variance τ² of rare strings.
    """
    fit, seen = detail.fit, detail.search.seen
    limit = float(-ndtri(LEVEL / max(seen.rows, 1)))
    z = upper_deviates(detail)
    spread = np.sqrt(1.0 + fit.extra / fit.variance.reshape(z.shape))
    high = int((z > limit).sum())
    certain = decoded.robust or bool((z / spread > limit).any())
    cells = plural(high, "cell is", "cells are")
    if not (odd or decoded.detected) and ((certain and high) or _holds_others(decoded, detail)):
        first = f"{cells} far above the fit" if high else "The counts hold more than noise"
        text = (
            f"{first}, but no candidate is there: is the dialect ({decoded.dialect}) that of the "
            "clients, and is this their list?"
        )
        return Check("missing", False, text)
    if odd or not (certain and high):
        return Check("missing", True, "No sign of a frequent string that is missing from the list.")
    heaviest = missing_strings(decoded, detail).share
    what = "A frequent string" if heaviest is None else f"A string of about {percent(heaviest)}"
    text = f"{cells} far above the fit. {what} is probably missing from the list."
    return Check("missing", False, text)


def _holds_others(decoded: Decoded, detail: Detail) -> bool:
    """Whether undetected strings are so frequent that listed ones would have been detected.

    Strings of shares s add τ² = (h/k) Σ s² to the variance of a bit, which is (h/k) times their
    mean share, weighted by reports. Where that mean is above half of the smallest detectable share,
    some of them would have been detected if they were candidates.
    """
    fit, seen = detail.fit, detail.search.seen
    if not overdispersed(decoded.chi2_dof, decoded.design_effect, seen.rows):
        return False
    noise = float(fit.variance[np.repeat(seen.live, seen.shares.shape[1])].mean())
    excess = fit.extra - (decoded.design_effect - 1) * noise
    return excess > seen.expected * detectable_shares(decoded)[0].share / 2


def _check_cohorts(decoded: Decoded, odd: Sequence[int]) -> Check:
    if not odd:
        return Check("cohorts", True, "Every cohort fits as well as the others.")
    listed = ", ".join(map(str, odd[:MAX_LISTED]))
    text = (
        f"{len(odd)} of {decoded.cohorts} cohorts do not fit while the others do: {listed}. Their "
        "reports may be forged, damaged or made by other clients."
    )
    return Check("cohorts", False, text)


def _check_fit(decoded: Decoded, detail: Detail) -> Check:
    """Whether noise, repeated reports and rare strings explain what the detected strings leave."""
    figure = f"χ² per degree of freedom {decoded.chi2_dof:.2f}"
    if not detail.fit.settled:
        text = (
            "The weights of bits and the shares that they depend on did not settle: estimates and "
            f"intervals may be off ({figure}). Collect more reports."
        )
        return Check("fit", False, text)
    if decoded.robust:
        seen = detail.search.seen
        typical = float(np.median(seen.totals[seen.live]))
        limits = "with intervals that may be up to a fifth too narrow"
        if typical < _FEW_REPORTS:
            limits = f"but its intervals do not hold with {typical:,.0f} reports in a cohort"
        text = (
            f"The counts hold more than noise and detected strings explain ({figure}): strings "
            f"are missing from the candidates. The robust fit allows for them, {limits}; look for "
            "candidates to add."
        )
        return Check("fit", False, text)
    if overdispersed(decoded.chi2_dof, decoded.design_effect, detail.search.seen.rows):
        text = f"Many strings too rare to detect add up ({figure}); intervals allow for them."
        return Check("fit", True, text)
    return Check("fit", True, f"Noise explains what the detected strings leave ({figure}).")


def _check_groups(decoded: Decoded) -> Check:
    if not decoded.groups:
        text = f"All {decoded.candidates:,} candidates can be told apart."
        return Check("groups", True, text)
    members = sum(map(len, decoded.groups))
    example = " = ".join(repr(name) for name in decoded.groups[0][:_MAX_SHOWN])
    text = (
        f"{members:,} candidates set the same bits as another in every cohort and cannot be told "
        f"apart, for example {example}."
    )
    return Check("groups", False, text)


def _check_untestable(decoded: Decoded) -> Check:
    if not decoded.untestable:
        return Check("untestable", True, "Every candidate can be tested.")
    names = ", ".join(repr(name) for name in decoded.untestable[:_MAX_SHOWN])
    number = plural(len(decoded.untestable), "candidate cannot", "candidates cannot")
    text = f"{number} be tested, because detected strings set nearly all of their bits: {names}."
    return Check("untestable", False, text)


def _check_placement(detail: Detail) -> Check:
    if detail.search.use_design:
        text = "Strings have enough bits to be told from strings that are not in the list."
        return Check("placement", True, text)
    text = (
        "Too few bits speak of each string to tell it from strings that are not in the list: the "
        "table is right only if the list is complete. Collect with more cohorts."
    )
    return Check("placement", False, text)


def _check_bits(detail: Detail) -> Check:
    """Whether enough bits were observed for intervals to be trusted."""
    rows = detail.search.seen.rows
    if rows > _FEW_BITS:
        return Check("bits", True, f"{rows:,} bits were observed.")
    text = (
        f"Only {rows:,} bits were observed (k for each cohort with reports), so that strings share "
        "many of them: intervals may be too narrow. Collect with more cohorts, or more bits."
    )
    return Check("bits", False, text)


def _check_estimates(bits: Bits) -> Check:
    """Whether estimates lie further outside 0 and N than noise takes them."""
    beyond = float(-ndtri(_OUTSIDE_LEVEL / max(len(bits.count), 1)))
    below = bits.count < -beyond * np.sqrt(bits.if_none)
    above = bits.count - bits.reports > beyond * np.sqrt(bits.if_all)
    wrong = int((below | above).sum())
    if not wrong:
        text = "No estimate is further below 0 or above all reports than noise takes it."
        return Check("estimates", True, text)
    text = (
        f"{plural(wrong, 'row is', 'rows are')} below 0 or above all reports by more than noise; "
        "were the reports made with these parameters?"
    )
    return Check("estimates", False, text)


def _check_agreement(bits: Bits) -> list[Check]:
    """Whether counts of several p and q estimate the same shares; none for a single table."""
    if math.isnan(bits.chi2_dof):
        return []
    if bits.agreement >= LEVEL:
        return [Check("agreement", True, "The tables agree as far as noise lets them.")]
    text = (
        "The tables differ by more than noise; the result is a weighted mean of different shares."
    )
    return [Check("agreement", False, text)]


def check_sum(left: float, error: float, reports: int) -> Check:
    """Whether the ranges of an ordinal hold all reports, before their sum is imposed."""
    if error == 0 or abs(left) / error < -ndtri(_OUTSIDE_LEVEL / 2):
        return Check("sum", True, "The ranges hold all reports.")
    held = 100 * (1 - left / reports)
    text = (
        f"The ranges hold {held:.3g} % of the reports, which noise does not explain; "
        "if reports may hold no value, decode with complete=False."
    )
    return Check("sum", False, text)
