"""A decoding looked over, one verdict for each thing that may be wrong: OK, or Check and why.

The tests among them keep a level each, so that data without a fault give no alarm but once in 200
times (FALSE_ALARMS): each sentence is worth a look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtri

from rappor.aggregate.counts import Counts
from rappor.checks import plural
from rappor.decoding.bit_table import residuals
from rappor.decoding.diagnose import alien_cohorts, diagnose
from rappor.decoding.diagnosis import LISTED, Diagnosis, percent, rounded
from rappor.decoding.histogram import Histogram
from rappor.decoding.result import Decoded
from rappor.decoding.strings import Detail
from rappor.decoding.verdicts import overdispersed
from rappor.mechanism.channel import expected_ones, ones_variance

LEVEL = 0.001  # of each test
FALSE_ALARMS = 5 * LEVEL  # five tests: balance, missing, fit, cohorts, ones
_FEWEST = 5.0  # reports a cohort must have on average for a χ² test of cohort sizes


class Check(NamedTuple):
    """One verdict.

    Attributes:
        name: balance, missing, fit, cohorts, ones, groups or reports.
        ok: whether nothing is wrong.
        text: why, in plain English.
    """

    name: str
    ok: bool
    text: str


def checkup(
    decoded: Decoded | Histogram, parts: Sequence[Counts], *, null_reports: bool = False
) -> tuple[tuple[Check, ...], Diagnosis]:
    """All verdicts on a decoding, those that ask for a look first, and its diagnosis.

    Args:
        decoded: what `decode` made of the counts.
        parts: the counts.
        null_reports: whether clients without a value report too, with no bit set.
    """
    table = decoded if isinstance(decoded, Decoded) else decoded.decoded
    totals = np.sum([part.totals for part in parts], axis=0)
    found = diagnose(decoded, totals)
    if not table.reports:
        return (Check("reports", False, "There are no reports: nothing can be said."),), found
    repeats = _repeats(parts)
    checks = [
        check_balance(totals, repeats),
        check_ones(parts, null_reports=null_reports),
        _check_reports(table, found),
    ]
    detail = table.detail
    if isinstance(detail, Detail):
        odd = alien_cohorts(detail)
        checks += [
            _check_missing(table, detail, found, bool(odd)),
            _check_cohorts(table, odd),
            _check_fit(table, detail, repeats),
            _check_groups(table),
        ]
    return tuple(sorted(checks, key=lambda check: check.ok)), found


def balance_p_value(totals: ArrayLike, repeats: int = 1) -> float:
    """The p-value of equal cohorts: χ² = Σ (N_j - N/m)² / (N/m) on m - 1 degrees of freedom.

    Clients draw their cohort at random. Where one sends up to `repeats` reports, the variance of a
    cohort's size is at most that many times as large, and χ² is divided by it. 1 where there are
    fewer than five reports a cohort.

    >>> round(balance_p_value([100, 120, 80]), 4)
    0.0183
    """
    sizes = np.asarray(totals, np.float64)
    mean = float(sizes.mean())
    if len(sizes) < 2 or mean < _FEWEST:
        return 1.0
    statistic = float(((sizes - mean) ** 2).sum()) / mean / repeats
    return float(chdtrc(len(sizes) - 1, statistic))


def check_balance(totals: ArrayLike, repeats: int = 1) -> Check:
    """Whether cohorts have as many reports as chance gives them.

    >>> check_balance([61_902, 63_080, 62_400]).text
    'Cohorts are balanced: 61,902 to 63,080 reports.'
    >>> check_balance([60_000, 63_080, 62_400]).ok
    False
    """
    sizes = np.asarray(totals)
    low, high = int(sizes.min()), int(sizes.max())
    if len(sizes) == 1:
        return Check("balance", True, f"There is one cohort, of {low:,} reports.")
    if balance_p_value(sizes, repeats) >= LEVEL:
        sizes_shown = f"{low:,} to {high:,} reports" if low < high else f"{low:,} reports each"
        return Check("balance", True, f"Cohorts are balanced: {sizes_shown}.")
    empty = int((sizes == 0).sum())
    first = f"{empty} of {len(sizes)} cohorts have no reports. " if empty else ""
    text = (
        f"{first}Cohorts are uneven: {low:,} to {high:,} reports, though clients draw theirs at "
        "random. Reports were lost or added."
    )
    return Check("balance", False, text)


def ones_z(parts: Sequence[Counts], *, null_reports: bool = False) -> float:
    """How many standard deviations the ones of all reports are from what honest clients send.

    A report has h q* + (k-h) p* ones on average, whatever its value; where hashes may collide, or
    a client without a value reports, fewer of its h bits are set, and only what lies outside of
    all that is possible counts. 0 inside. With repeated reports the variance is at most that many
    times as large. Kinds with a bit for each value have at most one set, `bits` any number.

    >>> from rappor import Params
    >>> params = Params(128, 2, 1, 0.5, 0.5, 0.75)
    >>> round(ones_z([Counts(params, [1000], [[563] * 128], dialect="rappor-v1")]), 2)
    -1.05
    """
    least = most = spread = 0.0
    seen = 0
    for part in parts:
        fewest, largest = _true_bits(part, null_reports)
        sent = part.reports
        seen += int(part.ones.sum())
        least += sent * float(expected_ones(part.params, fewest))
        most += sent * float(expected_ones(part.params, largest))
        each = max(float(ones_variance(part.params, bits)) for bits in (fewest, largest))
        spread += sent * each * (part.reports_per_client or 1)
    if not spread:
        return 0.0
    beyond = seen - most if seen > most else min(seen - least, 0.0)
    return beyond / math.sqrt(spread)


def check_ones(parts: Sequence[Counts], *, null_reports: bool = False) -> Check:
    """Whether reports have as many ones as honest clients send: crude forgery does not."""
    z = ones_z(parts, null_reports=null_reports)
    if abs(z) <= -ndtri(LEVEL / 2):
        text = "The share of set bits is what honest clients send."
        return Check("ones", True, text)
    which = "More" if z > 0 else "Fewer"
    text = (
        f"{which} bits are set than honest clients send ({abs(z):.1f} standard deviations): "
        "reports may be forged, or made with other parameters."
    )
    return Check("ones", False, text)


def _true_bits(part: Counts, null_reports: bool) -> tuple[int, int]:
    """The fewest and the most bits that a value sets."""
    params = part.params
    if part.kind == "string":
        fewest = params.h if part.dialect == "rappor-v1" else 1
        return (0 if null_reports else fewest), params.h
    return 0, params.k if part.kind == "bits" else 1


def _repeats(parts: Sequence[Counts]) -> int:
    return sum(part.reports_per_client or 1 for part in parts)


def _check_reports(table: Decoded, found: Diagnosis) -> Check:
    if found.reports_for_one_percent > table.reports:
        text = (
            f"Too few reports: a share of 1 % needs about "
            f"{rounded(found.reports_for_one_percent)}; there are {table.reports:,}."
        )
        return Check("reports", False, text)
    share = percent(found.detectable[1].share)
    text = f"{table.reports:,} reports show 8 in 10 strings of {share}."
    if table.kind != "string":
        text = text.replace("strings", "values")
    return Check("reports", True, text)


def _check_missing(table: Decoded, detail: Detail, found: Diagnosis, odd: bool) -> Check:
    """Whether cells lie so far above the fit that a frequent string must have lifted them.

    Noise takes any of them above with chance LEVEL, τ², what many rare strings add, counted in.
    """
    fit, seen = detail.fit, detail.search.seen
    limit = float(-ndtri(LEVEL / max(seen.rows, 1)))
    z = residuals(detail)
    spread = np.sqrt(1.0 + fit.extra / fit.variance.reshape(z.shape))
    high = int((z > limit).sum())
    certain = table.robust or bool((z / spread > limit).any())
    if odd or not (certain and high):
        return Check("missing", True, "No sign of a frequent string that is missing from the list.")
    cells = plural(high, "cell is", "cells are")
    if not table.detected:
        text = (
            f"{cells} far above the fit, but no candidate is there: is the dialect "
            f"({table.dialect}) that of the clients, and is this their list?"
        )
        return Check("missing", False, text)
    what = "A frequent string"
    if found.missing and found.missing.share is not None:
        what = f"A string of about {percent(found.missing.share)}"
    text = f"{cells} far above the fit. {what} is probably missing from the list."
    return Check("missing", False, text)


def _check_cohorts(table: Decoded, odd: Sequence[int]) -> Check:
    if not odd:
        return Check("cohorts", True, "Every cohort fits as well as the others.")
    listed = ", ".join(map(str, odd[:LISTED]))
    text = (
        f"{len(odd)} of {table.cohorts} cohorts do not fit while the others do: {listed}. Their "
        "reports may be forged, damaged or made by other clients."
    )
    return Check("cohorts", False, text)


def _check_fit(table: Decoded, detail: Detail, repeats: int) -> Check:
    figure = f"χ² per degree of freedom {table.chi2_dof:.2f}"
    if table.robust or overdispersed(table.chi2_dof, table.design_effect, detail.search.seen.rows):
        text = (
            f"Counts vary more than noise explains ({figure}): strings are missing from the list, "
            "or many are too rare to see. Intervals allow for it."
        )
        return Check("fit", False, text)
    text = f"Noise explains what the detected strings leave ({figure})."
    if repeats > 1:
        text += f" One client may have sent {repeats} reports; intervals are widened for it."
    return Check("fit", True, text)


def _check_groups(table: Decoded) -> Check:
    found = []
    if table.groups:
        members = sum(map(len, table.groups))
        found.append(f"{members:,} candidates cannot be told apart.")
    if table.untestable:
        text = plural(len(table.untestable), "candidate cannot", "candidates cannot")
        found.append(f"{text} be tested: detected strings set nearly all of their bits.")
    if found:
        return Check("groups", False, " ".join(found))
    return Check("groups", True, f"All {table.candidates:,} candidates can be told apart.")
