"""Two collections from one population: how often a comparison finds a difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from calibration.draw import FRESH, label_of
from calibration.measure import ALPHA, Record
from calibration.scenarios import exponential
from calibration.tallies import Tallies
from rappor import Params, simulate
from rappor.decoding.compare import compare
from rappor.decoding.differences import Differences
from rappor.typing import Kind


@dataclass(frozen=True, slots=True)
class Comparison:
    """What both collections hold, and how many reports each has."""

    name: str
    about: str
    kind: Kind
    params: Params
    reports: tuple[int, int]
    shares: np.ndarray = field(repr=False)


def measure_comparison(name: str, seed: int, same_names: bool = False) -> Record:
    """Whether anything differs in one seed, which nothing does; ready for JSON."""
    scenario, found = COMPARISONS[name], Tallies()
    label = label_of(seed, same_names)
    names = [f"{label}{number}" for number in range(len(scenario.shares))]
    present = {
        string: float(share)
        for string, share in zip(names, scenario.shares, strict=True)
        if share > 0 or scenario.kind == "category"  # all of which have a bit
    }
    one, two = (
        simulate.counts(
            present,
            scenario.params,
            reports,
            seed=[seed, FRESH, side, crc32(name.encode())],
            kind=scenario.kind,
        )
        for side, reports in enumerate(scenario.reports)
    )
    rows = compare(one, two, names, correction="holm", alpha=ALPHA).rows
    found.add("family-wise error", bool(rows.different.any()))
    found.add("contradictions", contradicting(rows))
    return {"scenario": name, "seed": seed, "method": "auto", "tallies": found.to_json()}


def contradicting(rows: Differences) -> np.ndarray:
    """Which rows do not tell one story, in a file as in a table.

    The interval of a row that differs lies on one side of 0, or has no end there; that of another
    one holds 0; a difference lies within its interval.
    """
    table = rows.columns()
    low, high, difference = table["low_95"], table["high_95"], table["difference"]
    holds_0 = (low <= 0) & (high >= 0)  # false where an end is not known
    outside = (difference < low) | (difference > high)
    wrong: np.ndarray = (holds_0 == rows.different) | outside | (rows.low > rows.high)
    return wrong


def _with_absent(values: int) -> np.ndarray:
    return np.concatenate([exponential(), np.zeros(values - 100)])


def _all() -> Sequence[Comparison]:
    low, lower = Params(128, 2, 16, 0.0, 0.01, 0.99), Params(128, 2, 16, 0.0, 0.001, 0.999)
    sharp, two_cohorts = Params(200, 1, 1, 0.0, 0.01, 0.99), Params(128, 2, 2, 0.5, 0.5, 0.75)
    same, apart = (10**5, 10**5), (1_100, 11_000)
    return [
        Comparison("C1", "low noise, p = .01", "string", low, same, _with_absent(200)),
        Comparison("C2", "lower noise, p = .001", "string", lower, same, _with_absent(200)),
        Comparison("C3", "categories, 11 ones expected", "category", sharp, apart,
                   _with_absent(200)),
        Comparison("C4", "two cohorts", "string", two_cohorts, (10**6, 10**6), _with_absent(200)),
    ]  # fmt: skip


COMPARISONS = {scenario.name: scenario for scenario in _all()}
