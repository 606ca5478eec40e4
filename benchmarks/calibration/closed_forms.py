"""Kinds with a bit for each value: regimes in which their closed forms once did not hold.

Bits are randomised independently given who holds what, so the counts of all clients are drawn bit
by bit: how many B' have the bit, then how many reports of each phase show it. Clients are the same
in all phases, and their reports share B'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np

from calibration.draw import FRESH
from calibration.measure import ALPHA, CORRECTIONS, Record, contradictions
from calibration.tallies import Tallies
from rappor import Params
from rappor.aggregate import Counts
from rappor.decoding.decode import decode
from rappor.decoding.result import Decoded
from rappor.typing import Kind

RUNS = 10  # collections of one seed, usually: 200 seeds are 2,000 runs
TESTS = ("balance", "ones", "estimates", "agreement", "sum")


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """A collection of one kind: what clients hold, and how they report it.

    Every client reports once in every phase; phases differ in p and q only. `shares` are those of
    the values in the order of their bits, of the value true for a boolean; free bits are held
    independently of each other. A seed is `runs` collections.
    """

    name: str
    about: str
    kind: Kind
    phases: tuple[Params, ...]
    clients: int
    shares: np.ndarray = field(repr=False)
    runs: int = RUNS


@dataclass(frozen=True, slots=True, eq=False)
class Collected:
    """One collection: its counts by phase, and how many clients hold each value, shape (k,)."""

    counts: list[Counts]
    truth: np.ndarray


def draw_runs(scenario: ClosedForm, seed: int, runs: int) -> list[Collected]:
    """All collections of a seed at once."""
    rng = np.random.default_rng([seed, FRESH, crc32(scenario.name.encode())])
    clients, f = scenario.clients, scenario.phases[0].f
    if scenario.kind == "bits":
        truth = rng.binomial(clients, scenario.shares, size=(runs, len(scenario.shares)))
    else:
        nobody = max(1.0 - float(scenario.shares.sum()), 0.0)
        truth = rng.multinomial(clients, [*scenario.shares, nobody], size=runs)[:, :-1]
    memos = rng.binomial(truth, 1 - f / 2) + rng.binomial(clients - truth, f / 2)
    ones = [
        rng.binomial(memos, params.q) + rng.binomial(clients - memos, params.p)
        for params in scenario.phases
    ]
    return [
        Collected(
            [
                Counts(params, [clients], [phase[run]], kind=scenario.kind, reports_per_client=1)
                for params, phase in zip(scenario.phases, ones, strict=True)
            ],
            truth[run],
        )
        for run in range(runs)
    ]


def measure_closed_form(name: str, seed: int) -> Record:
    """The tallies of one seed, ready for JSON."""
    scenario, found = CLOSED_FORMS[name], Tallies()
    for run in draw_runs(scenario, seed, scenario.runs):
        for label, correction in CORRECTIONS.items():
            decoded = decode(run.counts, names_of(scenario), correction=correction, alpha=ALPHA)
            compare_rows(found, label, scenario, decoded, run.truth)
        for code in TESTS:
            failed = any(check.code == code and not check.ok for check in decoded.checks)
            found.add(f"false alarms: {code}", failed)
        if decoded.histogram is not None:
            compare_histogram(found, decoded, run.truth)
    return {"scenario": name, "seed": seed, "method": "auto", "tallies": found.to_json()}


def names_of(scenario: ClosedForm) -> list[str] | list[int] | None:
    bits = len(scenario.shares)
    if scenario.kind == "boolean":
        return None
    return list(range(bits)) if scenario.kind == "ordinal" else [f"v{bit}" for bit in range(bits)]


def compare_rows(
    found: Tallies, label: str, scenario: ClosedForm, decoded: Decoded, truth: np.ndarray
) -> None:
    """Count false values, intervals that cover, and rows that contradict themselves."""
    rows = decoded.rows
    place = {string: number for number, string in enumerate(rows.strings)}
    names = ["true"] if scenario.kind == "boolean" else [str(n) for n in names_of(scenario) or ()]
    order = [place[name] for name in names]
    held = truth * len(scenario.phases)  # one report of each client in every phase
    low, high, chosen = rows.low[order], rows.high[order], rows.detected[order]
    covered = (low <= held) & (held <= high)
    if (scenario.shares == 0).any():
        false = chosen & (scenario.shares == 0)
        if label == "family":
            found.add("family-wise error", bool(false.any()))
    spoken = {"family": "family-wise", "fdr": "FDR"}[label]
    found.add(f"detected rows covered, {spoken}", covered[chosen])
    found.add(f"undetected rows below their limit, {spoken}", covered[~chosen])
    found.add("contradictions", np.arange(len(rows)) < contradictions(decoded))
    if scenario.kind == "category" and label == "fdr":
        mass = decoded.undetected_mass
        left = decoded.reports - held.sum()
        found.add("reports of no category covered", bool(mass.low_95 <= left <= mass.high_95))


def compare_histogram(found: Tallies, decoded: Decoded, truth: np.ndarray) -> None:
    """Count intervals of the mean, the median and the standard deviation that cover."""
    histogram, x = decoded.histogram, np.arange(len(truth))
    mean = float(x @ truth) / truth.sum()
    shown = histogram.mean()
    found.add("mean covered", bool(shown.low_95 <= mean <= shown.high_95))
    median = int(np.argmax(np.cumsum(truth) >= 0.5 * truth.sum()))
    shown = histogram.quantile(0.5)
    found.add("median covered", bool(shown.low_95 <= median <= shown.high_95))
    spread = float(np.sqrt((x - mean) ** 2 @ truth / truth.sum()))
    shown = histogram.spread()
    kind = "limit" if np.isnan(shown.value) else "interval"
    found.add(f"spread covered, {kind}", bool(shown.low_95 <= spread <= shown.high_95))


def schedule(k: int, phases: int) -> tuple[Params, ...]:
    """Phases that say less and less of the same B': q falls and p rises."""
    steps = np.linspace(0.0, 0.1, phases).round(4).tolist()
    return tuple(Params(k, 1, 1, 0.5, 0.25 + step, 0.75 - step) for step in steps)


def _few(present: int, values: int) -> np.ndarray:
    """Shares that fall by a tenth, and absent values."""
    shares = 0.9 ** np.arange(present)
    return np.concatenate([shares / shares.sum(), np.zeros(values - present)])


def _normal(k: int) -> np.ndarray:
    shares = np.exp(-0.5 * ((np.arange(k) - k / 2) / (k / 8)) ** 2)
    return shares / shares.sum()


def _geometric(k: int) -> np.ndarray:
    shares = 0.5 ** np.arange(k)
    return shares / shares.sum()


def _all() -> Sequence[ClosedForm]:
    sharp = {k: (Params(k, 1, 1, 0.0, 0.01, 0.99),) for k in (1, 100, 1000)}
    usual = (Params(20, 1, 1, 0.0, 0.25, 0.75),)
    found = [
        ClosedForm("W1", "100 categories, 11 ones expected", "category", sharp[100], 1_100,
                   _few(20, 100)),
        ClosedForm("W2", "1,000 categories, 11 ones expected", "category", sharp[1000], 1_100,
                   _few(20, 1000)),
        ClosedForm("W3", "boolean, .05 % true", "boolean", sharp[1], 100_000, np.array([0.0005])),
        ClosedForm("W4", "boolean, 99.95 % true", "boolean", sharp[1], 100_000, np.array([0.9995])),
        ClosedForm("W5", "spread of a geometric law, 100 reports", "ordinal", usual, 100,
                   _geometric(20), runs=50),  # one spread in 100 is shown
        ClosedForm("W6", "spread of a geometric law, 1,000,000", "ordinal", usual, 10**6,
                   _geometric(20)),
    ]  # fmt: skip
    # What plan(8, inf, reports=2_000, candidates=1_000, kind="category") chooses.
    planned = (Params(1000, 1, 1, 0.0, 0.0007585, 0.6935043),)
    found.append(
        ClosedForm("W13", "a planned collection at ε = 8", "category", planned, 2_000,
                   _few(20, 1000))
    )  # fmt: skip
    for number, phases in ((7, 2), (10, 7)):
        found += [
            ClosedForm(f"W{number}", f"boolean over {phases} phases", "boolean",
                       schedule(1, phases), 10_000, np.array([0.3])),
            ClosedForm(f"W{number + 1}", f"categories over {phases} phases", "category",
                       schedule(12, phases), 20_000, 0.9 * _few(8, 12)),
            ClosedForm(f"W{number + 2}", f"ordinal over {phases} phases", "ordinal",
                       schedule(20, phases), 50_000, _normal(20)),
        ]  # fmt: skip
    for number, phases in ((14, 2), (15, 7)):
        found.append(
            ClosedForm(f"W{number}", f"free bits over {phases} phases", "bits",
                       schedule(12, phases), 20_000, 0.8 * _few(8, 12) / _few(8, 12).max())
        )  # fmt: skip
    return found


CLOSED_FORMS = {
    scenario.name: scenario for scenario in sorted(_all(), key=lambda each: int(each.name[1:]))
}
