"""What a reader should know before believing a table, in plain English."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rappor.aggregate.counts import Counts
from rappor.decoding.diagnosis import rounded
from rappor.mechanism.channel import channel
from rappor.privacy.limits import detectable

if TYPE_CHECKING:
    from rappor.decoding.result import Decoded

_SHOWN = 3  # examples in one sentence


def overdispersed(chi2_dof: float, design_effect: float, rows: int) -> bool:
    """Whether residuals hold more than noise, and more than repeated reports can add to it."""
    return chi2_dof > design_effect * (1 + 6 * math.sqrt(2 / max(rows, 1)))


def string_warnings(decoded: Decoded, parts: Sequence[Counts], by_design: bool) -> list[str]:
    """The warnings of a decoded string collection."""
    if not decoded.reports:
        return ["There are no reports: nothing can be said."]
    found = [*_data_warnings(parts)]
    needed = reports_for(0.01, decoded, parts[0])
    if needed > decoded.reports:
        found.append(
            f"Few reports: a string that 1 % hold needs about {rounded(needed)} reports to be "
            f"detected in half of all cases; there are {decoded.reports:,}."
        )
    rows = int((parts[0].totals > 0).sum()) * parts[0].params.k
    unexplained = overdispersed(decoded.chi2_dof, decoded.design_effect, rows)
    if decoded.robust or unexplained:
        what, how = "many strings too rare to detect add up", "whose standard errors allow for them"
        if decoded.robust:
            what, how = "strings are missing from the candidates", "in the robust path"
        found.append(
            "The counts hold more than noise and detected strings explain (χ² per degree of "
            f"freedom {decoded.chi2_dof:.2f}): {what}. Estimates come from a fit {how}; look for "
            "candidates to add."
        )
    if not by_design:
        found.append(
            "Too few bits speak of each string to tell it from strings that are not in the list: "
            "the table is right only if the list is complete. More cohorts would help."
        )
    if decoded.groups:
        names = " = ".join(repr(name) for name in decoded.groups[0][:_SHOWN])
        found.append(
            f"{len(decoded.groups)} group(s) of candidates set the same bits everywhere and "
            f"cannot be told apart, for example {names}."
        )
    if decoded.untestable:
        names = ", ".join(repr(name) for name in decoded.untestable[:_SHOWN])
        found.append(
            f"{len(decoded.untestable)} candidate(s) cannot be tested, because detected strings "
            f"already set nearly all of their bits: {names}."
        )
    return found


def _data_warnings(parts: Sequence[Counts]) -> list[str]:
    """What the counts themselves give reason to say."""
    found = []
    if any(part.reports_per_client is None for part in parts):
        found.append(
            "The counts do not say how many reports one client may have made on one value; "
            "one is assumed. If clients reported several times, give reports_per_client."
        )
    most = max(part.reports_per_client or 1 for part in parts)
    if most > 1:
        found.append(
            f"One client may have made up to {most} reports on one value, so counts vary more "
            "than independent reports would; standard errors allow for it. Decoding one period "
            "at a time is safer."
        )
    for part in parts:
        totals = part.totals
        empty = int((totals == 0).sum())
        if empty:
            found.append(f"{empty} of {len(totals)} cohorts have no reports and were left out.")
        filled = totals[totals > 0]
        if len(filled) and int(filled.max()) > 10 * int(filled.min()) + 1000:
            found.append(
                f"Cohorts are very uneven: {filled.min():,} to {filled.max():,} reports. Clients "
                "draw their cohort at random, so something has been lost or added."
            )
        found += _wrong_params(part)
    return found


def _wrong_params(counts: Counts) -> list[str]:
    """Whether the share of ones is one that these parameters can give."""
    params, (low, high) = counts.params, channel(counts.params)
    sent = counts.reports * params.k
    if not sent:
        return []
    bits = params.h if counts.kind == "string" else 1 if counts.kind != "bits" else params.k
    share = int(counts.ones.sum()) / sent
    most = float(low + (high - low) * bits / params.k)
    # Six standard deviations, of all reports of a client together where it repeats a value.
    repeats = counts.reports_per_client or 1
    slack = 6 * (0.25 * repeats / sent) ** 0.5
    if share < float(low) - slack:
        which, limit = "at least", float(low)
    elif share > most + slack:
        which, limit = "at most", most
    else:
        return []
    return [
        f"{share:.2%} of all bits are set, but these parameters give {which} {limit:.2%}: the "
        "counts do not belong to these parameters."
    ]


def reports_for(share: float, decoded: Decoded, counts: Counts) -> float:
    """About how many reports it takes to detect a share in half of all cases.

    The smallest detectable share falls with the root of the number of reports.
    """
    n = max(decoded.reports, 1)
    needed = decoded.threshold
    if not 0 < needed < math.inf:
        needed = detectable(counts.params, n, max(decoded.candidates, 1)).count
    return n * (needed / n / share) ** 2
