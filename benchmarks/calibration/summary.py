"""Many seeds of one scenario and method in figures with their standard errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from calibration.measure import NULL_LEVELS, Record


class Mean(NamedTuple):
    """A mean over seeds, its standard error, and how many seeds."""

    value: float
    error: float
    seeds: int


class Share(NamedTuple):
    """How many of how many."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        return self.hits / self.of if self.of else float("nan")

    @property
    def error(self) -> float:
        """The binomial standard error."""
        return sqrt(self.value * (1 - self.value) / self.of) if self.of else float("nan")


@dataclass(frozen=True, slots=True)
class Detection:
    """What one correction detects; shares of false ones are those of each seed, averaged."""

    true: Mean
    any_false: Share
    false_share: Mean
    negligible_share: Mean


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How good the estimates and intervals of detected strings are, for one correction.

    Widths are relative to the naive interval, estimate ± 1.96 standard errors.
    """

    covered: Share
    naive_covered: Share
    width: float
    widths: tuple[float, ...] = field(repr=False)
    rmse: float


@dataclass(frozen=True, slots=True)
class Summary:
    """One scenario, one method.

    Attributes:
        contradictions: rows whose verdict and interval contradict each other.
        mass_covered: for each correction, seeds whose interval of undetected mass holds the truth.
        alarms: for each code, the seeds in which a check of the result failed.
        nulls: for each level, how many p-values of absent strings are at or below it, of how many.
        same_again: seeds whose decoding again gave the same bytes.
    """

    scenario: str
    method: str
    seeds: int
    detection: dict[str, Detection]
    accuracy: dict[str, Accuracy]
    nulls: dict[float, Share]
    seconds: float | None
    robust: Share | None
    undetected_mass_covered: Share | None
    chi2_dof: float | None
    same_again: Share | None
    contradictions: int
    mass_covered: dict[str, Share]
    alarms: dict[str, Share]

    def to_json(self) -> dict[str, Any]:
        """Plain data, without the single widths."""
        found = asdict(self)
        for accuracy in found["accuracy"].values():
            del accuracy["widths"]
        return found


def summarise(records: Sequence[Record]) -> Summary:
    """The summary of records of one scenario and method."""
    first = records[0]
    full = "absent" in first  # the oracle has neither p-values to check nor intervals
    labels = ("family", "fdr") if full else ()
    again = [record["same_again"] for record in records if "same_again" in record]
    return Summary(
        scenario=first["scenario"],
        method=first["method"],
        seeds=len(records),
        detection={label: _detection(records, label) for label in ("family", "fdr")},
        accuracy={label: _accuracy(records, label) for label in ("family", "fdr") if full},
        nulls={
            level: Share(_sum(records, f"null_{level:g}"), _sum(records, "absent"))
            for level in NULL_LEVELS
            if full
        },
        seconds=_median(
            record[f"{label}_seconds"] for record in records for label in ("family", "fdr")
        )
        if full
        else None,
        robust=Share(_sum(records, "robust"), len(records)) if full else None,
        undetected_mass_covered=Share(_sum(records, "undetected_mass_covered"), len(records))
        if full
        else None,
        chi2_dof=_median(record["chi2_dof"] for record in records) if full else None,
        same_again=Share(sum(again), len(again)) if again else None,
        contradictions=sum(_sum(records, f"{label}_contradictions") for label in labels),
        mass_covered={
            label: Share(_sum(records, f"{label}_mass_covered"), len(records)) for label in labels
        },
        alarms=_alarms(records) if full else {},
    )


def pooled(shares: Iterable[Share]) -> Share:
    """All counted together."""
    every = list(shares)
    return Share(sum(share.hits for share in every), sum(share.of for share in every))


def mean(values: Sequence[float]) -> Mean:
    """A mean with its standard error; 0 where there is one value only."""
    size = len(values)
    spread = float(np.std(values, ddof=1)) if size > 1 else 0.0
    return Mean(float(np.mean(values)), spread / sqrt(size), size)


def _detection(records: Sequence[Record], label: str) -> Detection:
    true = np.array([record[f"{label}_true"] for record in records], float)
    false = np.array([record[f"{label}_false"] for record in records], float)
    nearly = np.array([record[f"{label}_nearly"] for record in records], float)
    detected = np.maximum(true + false, 1)
    return Detection(
        true=mean(true),
        any_false=Share(int((false > 0).sum()), len(records)),
        false_share=mean(false / detected),
        negligible_share=mean(nearly / detected),
    )


def _accuracy(records: Sequence[Record], label: str) -> Accuracy:
    detected = _sum(records, f"{label}_true") + _sum(records, f"{label}_false")
    square = sum(record[f"{label}_square"] for record in records)
    widths = tuple(width for record in records for width in record[f"{label}_widths"])
    return Accuracy(
        covered=Share(_sum(records, f"{label}_covered"), detected),
        naive_covered=Share(_sum(records, f"{label}_naive"), detected),
        width=_median(widths),
        widths=widths,
        rmse=sqrt(square / detected) if detected else float("nan"),
    )


def _alarms(records: Sequence[Record]) -> dict[str, Share]:
    codes = sorted({code for record in records for code in record["alarms"]})
    return {
        code: Share(sum(code in record["alarms"] for record in records), len(records))
        for code in codes
    }


def _sum(records: Sequence[Record], key: str) -> int:
    return int(sum(record[key] for record in records))


def _median(values: Iterable[float]) -> float:
    every = list(values)
    return float(np.median(every)) if every else float("nan")
