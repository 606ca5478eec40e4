"""A diagnosis of a decoding: verdicts, figures, and both for a terminal and as JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rappor.typing import FloatArray

LISTED = 10  # residuals and strings that are listed


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
    """Sizes of cohorts, with a χ² test of equal ones (1 for a single cohort)."""

    cohorts: int
    empty: int
    smallest: int
    largest: int
    p_value: float


class Missing(NamedTuple):
    """What residuals say about strings that are not in the list.

    Attributes:
        rows: bits that were observed.
        lifted: those that hold more than noise and the detected strings explain.
        by_chance: how many would by noise alone.
        share: of the heaviest missing string, about; None where none stands out.
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
    """What is wrong with a decoding, most important first.

    Attributes:
        verdicts: plain sentences.
        residuals: observed minus fitted by cohort and bit, in standard deviations of the noise,
            shape (m, k), nan in cohorts without reports; None where there is no fit to differ from.
        largest: the largest of them, either sign.
        effects: what each detected string explains, most first.
        balance: of cohorts; None where their sizes are not known.
        missing: signs of strings that are not in the list.
        detectable: the smallest shares that these reports show; ∞ where they show nothing.
        reports: N.
        reports_for_one_percent: about how many reports show a share of 1 % in half of all cases.
    """

    verdicts: tuple[str, ...]
    residuals: FloatArray | None = field(repr=False)
    largest: tuple[Residual, ...]
    effects: tuple[Effect, ...]
    balance: Balance | None
    missing: Missing | None
    detectable: tuple[Reach, ...]
    reports: int
    reports_for_one_percent: float

    def lines(self) -> list[str]:
        """The diagnosis for a terminal: verdicts, then figures."""
        found = list(self.verdicts)
        if self.reports:
            reach = ", ".join(f"{percent(r.share)} ({r.power:.0%})" for r in self.detectable)
            found.append(f"Smallest share detected, by power: {reach}.")
        if self.balance:
            size = self.balance
            found.append(
                f"Cohorts: {size.cohorts}, of {size.smallest:,} to {size.largest:,} reports; "
                f"{size.empty} empty; equal sizes: p = {size.p_value:.2g}."
            )
        if self.largest:
            listed = ", ".join(f"cohort {r.cohort} bit {r.bit} {r.z:+.1f}" for r in self.largest)
            found.append(f"Largest residuals in standard deviations: {listed}.")
        if self.effects:
            listed = ", ".join(f"{e.string!r} {e.chi2:,.0f}" for e in self.effects[:LISTED])
            found.append(f"Strings by how much of χ² they explain: {listed}.")
        return found

    def to_dict(self) -> dict[str, Any]:
        """The diagnosis for JSON: ∞ as "inf", what is not known as None, no arrays."""
        return {
            "verdicts": list(self.verdicts),
            "reports": self.reports,
            "reports_for_one_percent": _json(self.reports_for_one_percent),
            "detectable": [{"power": r.power, "share": _json(r.share)} for r in self.detectable],
            "balance": self.balance._asdict() if self.balance else None,
            "missing": self.missing._asdict() if self.missing else None,
            "largest": [residual._asdict() for residual in self.largest],
            "effects": [effect._asdict() for effect in self.effects],
        }


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
