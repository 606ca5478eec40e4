"""Why a decoding came out poor: what the counts hold that the table does not explain.

Residuals by cohort and bit, the balance of cohorts, what each string explains, strings that are
missing from the list, and what these reports could have shown at best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, ndtri

from rappor.decoding.bit_table import residuals
from rappor.decoding.closed_form import Bits
from rappor.decoding.diagnosis import (
    LISTED,
    Balance,
    Diagnosis,
    Effect,
    Missing,
    Reach,
    Residual,
    percent,
    rounded,
)
from rappor.decoding.missing import base_level, missing_strings
from rappor.decoding.result import Decoded
from rappor.decoding.strings import Detail
from rappor.typing import FloatArray

if TYPE_CHECKING:
    from rappor.decoding.histogram import Histogram

__all__ = ["Diagnosis", "alien_cohorts", "diagnose"]


POWERS = (0.5, 0.8, 0.95)
_SURE = 1e-4  # p-values below this are worth a sentence
_NOTABLE = 0.1  # cohorts that differ from each other by less than this do no harm


def diagnose(decoded: Decoded | Histogram, totals: ArrayLike | None = None) -> Diagnosis:
    """Look for the reasons of a poor decoding.

    Args:
        decoded: what `decode` returned. Kinds with a bit for each value leave no residuals: for
            them there are balance and reports only.
        totals: reports by cohort, for those kinds, whose result does not keep them.

    >>> from rappor import Params
    >>> from rappor.aggregate.counts import Counts
    >>> from rappor.decoding.categories import decode_basic
    >>> counts = Counts(Params(2, 1, 1, 0.0, 0.25, 0.75), [100], [[60, 40]], kind="category")
    >>> diagnose(decode_basic(counts, ["x", "y"])).lines()[0]
    'Too few reports: a share of 1 % needs about 20,300; there are 100.'
    """
    table = decoded if isinstance(decoded, Decoded) else decoded.decoded
    detail = table.detail if isinstance(table.detail, Detail) else None
    reach = _reach(table)
    needed = table.reports * (reach[0].share / 0.01) ** 2 if table.reports else math.inf
    balance = _balance(table, detail, totals)
    left = residuals(detail) if detail else None
    missing = missing_strings(table, detail) if detail else None
    return Diagnosis(
        verdicts=tuple(_verdicts(table, balance, missing, detail, needed)),
        residuals=left,
        largest=_largest(left),
        effects=_effects(table, detail) if detail else (),
        balance=balance,
        missing=missing,
        detectable=reach,
        reports=table.reports,
        reports_for_one_percent=needed,
    )


def _reach(table: Decoded) -> tuple[Reach, ...]:
    """Threshold + Φ⁻¹(power) standard errors of a candidate that is not fitted."""
    if isinstance(table.detail, Detail):
        error = math.sqrt(table.detail.fit.scale / table.detail.scores.typical)
    elif isinstance(table.detail, Bits) and table.reports:
        error = math.sqrt(float(table.detail.if_none.max(initial=0.0))) / table.reports
    else:
        return tuple(Reach(power, math.inf) for power in POWERS)
    passing = table.threshold / table.reports
    return tuple(Reach(power, passing + float(ndtri(power)) * error) for power in POWERS)


def _balance(table: Decoded, detail: Detail | None, given: ArrayLike | None) -> Balance | None:
    if given is not None:
        totals = np.asarray(given, np.float64)
    elif detail:
        totals = detail.search.seen.totals
    elif table.cohorts == 1 or not table.reports:
        totals = np.full(table.cohorts, table.reports, np.float64)
    else:
        return None
    p_value = 1.0
    if len(totals) > 1 and totals.sum():
        mean = totals.mean()
        p_value = float(chdtrc(len(totals) - 1, ((totals - mean) ** 2).sum() / mean))
    empty = int((totals == 0).sum())
    return Balance(len(totals), empty, int(totals.min()), int(totals.max()), p_value)


def _largest(left: FloatArray | None) -> tuple[Residual, ...]:
    if left is None:
        return ()
    size = np.abs(np.nan_to_num(left)).ravel()
    order = np.argsort(-size, kind="stable")[:LISTED]
    bits = left.shape[1]
    return tuple(
        Residual(int(row) // bits, int(row) % bits, float(left.flat[row]))
        for row in order
        if size[row] > 0
    )


def _effects(table: Decoded, detail: Detail) -> tuple[Effect, ...]:
    """z² before the scale: what least squares gains by a column, given the others."""
    place = {text: column for column, text in enumerate(detail.search.design.strings.strings)}
    gain = detail.scores.share**2 * detail.scores.information
    found = [Effect(row.string, float(gain[place[row.string]])) for row in table.detected]
    return tuple(sorted(found, key=lambda effect: (-effect.chi2, effect.string)))


def _verdicts(
    table: Decoded,
    balance: Balance | None,
    missing: Missing | None,
    detail: Detail | None,
    needed: float,
) -> list[str]:
    if not table.reports:
        return ["There are no reports: nothing can be said."]
    found: list[str] = []
    alien = alien_cohorts(detail)
    alone = detail is not None and not detail.search.use_design
    if alone:
        found.append(
            "Too few cohorts for this many candidates: a string cannot be told from strings that "
            "are not in the list. Collect with more cohorts."
        )
    if missing and table.robust and not alien and not alone:
        found += _about_missing(table, missing)
    if alien:
        listed = ", ".join(map(str, alien[:LISTED]))
        found.append(
            f"{len(alien)} of {table.cohorts} cohorts do not fit while the others do: {listed}. "
            "Their reports may be forged, damaged or made by other clients."
        )
    if needed > table.reports:
        found.append(
            f"Too few reports: a share of 1 % needs about {rounded(needed)}; "
            f"there are {table.reports:,}."
        )
    found += _about_balance(balance)
    if detail and not table.robust and not alien and _overdispersed(table, detail):
        found.append(
            f"Counts vary more than noise explains (χ² per degree of freedom {table.chi2_dof:.2f})"
            ": repeated reports, or many strings that are not in the list."
        )
    if not table.detected:
        found.append("Nothing was detected.")
    return found or ["Nothing looks wrong: noise explains what the detected rows leave."]


def alien_cohorts(detail: Detail | None) -> list[int]:
    """Cohorts whose bits vary far more than those of the rest, beyond the noise of each.

    A string that is missing from the list lifts bits of every cohort by the same share.
    """
    if detail is None:
        return []
    seen, fit = detail.search.seen, detail.fit
    live = np.flatnonzero(seen.live)
    if len(live) < 3:
        return []
    square = (fit.residual - base_level(detail)).reshape(seen.shares.shape)[live] ** 2
    noise = fit.variance.reshape(seen.shares.shape)[live].mean(axis=1)
    excess = square.mean(axis=1) - noise
    usual = max(float(np.median(excess)), 0.0)
    far = float(-ndtri(_SURE / len(live))) * math.sqrt(2 / square.shape[1])
    odd = live[excess > 4 * usual + (1 + far) * noise]
    return [int(cohort) for cohort in odd] if len(odd) < len(live) / 2 else []


def _overdispersed(table: Decoded, detail: Detail) -> bool:
    return table.chi2_dof > 1 + 4 * math.sqrt(2 / detail.search.seen.rows)


def _about_missing(table: Decoded, missing: Missing) -> list[str]:
    found = []
    if not table.detected:
        found.append(
            "The counts hold strong signals, but none of the candidates: is the dialect "
            f"({table.dialect}) that of the clients, and is this their list?"
        )
    if missing.share is not None:
        found.append(
            f"At least one string of about {percent(missing.share)} is missing from the list."
        )
    else:
        found.append("Strings are missing from the list, none of which stands out by itself.")
    found.append(
        f"{missing.lifted:,} of {missing.rows:,} bits hold more than noise and the detected "
        f"strings explain; χ² per degree of freedom is {table.chi2_dof:.2f}."
    )
    return found


def _about_balance(balance: Balance | None) -> Sequence[str]:
    if balance is None:
        return ()
    found = []
    if balance.empty:
        found.append(f"{balance.empty} of {balance.cohorts} cohorts have no reports.")
    spread = balance.largest > (1 + _NOTABLE) * balance.smallest
    if spread and not balance.empty and balance.p_value < _SURE:
        found.append(
            f"Cohorts are uneven ({balance.smallest:,} to {balance.largest:,} reports), though "
            "clients draw theirs at random: reports were lost or added."
        )
    return found
