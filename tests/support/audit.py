"""A statistical audit of a RAPPOR client: what its reports give away, measured from outside.

The auditor makes fresh clients (one secret each), lets them report, and tests the reports against
what the parameters promise. It knows the hash placement and nothing else of the client. Every check
is a z-test or an exact equality; the family-wise error of one audit is `alpha`, shared out evenly
over its z-tests (Bonferroni). Audits with a seed use FAMILY_ALPHA: they give the same in every run.
Those that draw from the system's generator use UNSEEDED_ALPHA, so that no run fails by chance.

Power, for k = 128, where a check fails beyond 5.0 standard errors and an error of 8.1 of them is
found with probability .999:

- 20,000 clients (2.5 million bits a rate): .0025 in a rate of ones, which is f off by .02, p by
  .0034 or q by .01; in B' itself (`trace`) f off by .0044.
- 400 clients (50,000 bits a rate): .018 in a rate of ones or of pairs of ones, .2 in a single bit:
  what is not randomised, randomised once, not remembered, or repeated.

With UNSEEDED_ALPHA a check fails beyond 6.2 standard errors, and these errors are larger by 15 %.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import Protocol

import numpy as np
from scipy import stats

from rappor.mechanism import Report, Trace, bloom_positions, channel
from rappor.params import Params
from rappor.testing import SeededEntropy

FAMILY_ALPHA = 1e-4
UNSEEDED_ALPHA = 1e-7


class Auditable(Protocol):
    """What the auditor asks of a client."""

    @property
    def cohort(self) -> int: ...

    def encode(self, value: object) -> Report: ...

    def trace(self, value: object) -> Trace: ...


MakeEncoder = Callable[..., Auditable]


@dataclass
class Findings:
    """z-scores of all checks, and hard failures by name."""

    alpha: float = FAMILY_ALPHA
    scores: dict[str, float] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)

    def rate(self, name: str, ones: np.ndarray, expected: float) -> None:
        """Score a share of ones among independent trials."""
        trials = ones.size
        spread = sqrt(expected * (1 - expected) / trials)
        self.scores[name] = (float(ones.mean()) - expected) / spread

    def exact(self, name: str, holds: bool) -> None:
        """Note what must hold without exception."""
        if not holds and name not in self.broken:
            self.broken.append(name)

    @property
    def limit(self) -> float:
        """The |z| above which a check fails."""
        return float(stats.norm.isf(self.alpha / 2 / max(1, len(self.scores))))

    @property
    def failed(self) -> list[str]:
        """Everything that failed, hard failures first."""
        return self.broken + [name for name, z in self.scores.items() if not abs(z) <= self.limit]


def bits_of(reports: list[int], k: int) -> np.ndarray:
    """Reports as an array of bits, shape (reports, k)."""
    size = (k + 7) // 8
    packed = np.frombuffer(b"".join(r.to_bytes(size, "little") for r in reports), np.uint8)
    return np.unpackbits(packed.reshape(-1, size), axis=1, bitorder="little")[:, :k]


def audit(
    make: MakeEncoder,
    params: Params,
    seed: int,
    clients: int = 20_000,
    alpha: float = FAMILY_ALPHA,
) -> Findings:
    """Audit `make(params, secret=..., collection=..., cohort=..., entropy=...)`."""
    findings = Findings(alpha)
    entropy = SeededEntropy(f"audit {seed}")
    k, cohort = params.k, 1 % params.m
    x, y = _disjoint_values(params, cohort, seed)
    other_f = replace(params, f=params.f / 2 + 0.2)
    other_pq = replace(params, p=params.p / 2, q=(1 + params.q) / 2)
    found: dict[str, list[int]] = {name: [] for name in ("x1", "x2", "x3", "y", "c", "f")}
    memos: list[int] = []
    for number in range(clients):
        shape = {"secret": entropy(32), "collection": "audit", "cohort": cohort, "entropy": entropy}
        client = make(params, **shape)
        restarted = make(params, **shape)
        elsewhere = make(params, **{**shape, "collection": "audit-2"})
        first = client.encode(x)
        found["x1"].append(first.bits)
        found["x2"].append(client.encode(x).bits)
        found["x3"].append(restarted.encode(x).bits)
        found["y"].append(client.encode(y).bits)
        found["c"].append(elsewhere.encode(x).bits)
        found["f"].append(make(other_f, **shape).encode(x).bits)
        memos.append(client.trace(x).permanent)
        if number < 200:
            findings.exact("B' survives a restart", memos[-1] == restarted.trace(x).permanent)
            same = make(other_pq, **shape).trace(x).permanent
            findings.exact("B' survives a change of p and q", memos[-1] == same)
            derived = [make(params, **{**shape, "cohort": None}).cohort for _ in range(2)]
            findings.exact("the cohort is permanent", len({*derived}) == 1)
            cohorts = {client.encode(x).cohort, first.cohort}
            findings.exact("reports carry the client's cohort", cohorts == {cohort})
    arrays = {name: bits_of(reports, k) for name, reports in found.items()}
    _check_rates(
        findings, params, other_f, arrays, _signal(x, params, cohort), _signal(y, params, cohort)
    )
    _check_memos(findings, params, bits_of(memos, k), _signal(x, params, cohort))
    _check_epsilon(findings, params, arrays, _signal(x, params, cohort), _signal(y, params, cohort))
    return findings


def _disjoint_values(params: Params, cohort: int, seed: int) -> tuple[str, str]:
    for attempt in range(1000):
        x, y = f"x{seed}-{attempt}", f"y{seed}-{attempt}"
        if not set(bloom_positions(x, cohort, params)) & set(bloom_positions(y, cohort, params)):
            return x, y
    raise AssertionError("no two values with disjoint bits")


def _signal(value: str, params: Params, cohort: int) -> np.ndarray:
    signal = np.zeros(params.k, bool)
    signal[list(bloom_positions(value, cohort, params))] = True
    return signal


def _check_rates(
    findings: Findings,
    params: Params,
    other_f: Params,
    arrays: dict[str, np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
) -> None:
    a, p, q = params.f / 2, params.p, params.q
    p_star, q_star = map(float, channel(params))
    p_other, _ = map(float, channel(other_f))
    for name in ("x1", "x2", "x3", "c"):
        findings.rate(f"{name}: zeros report p*", arrays[name][:, ~x], p_star)
        findings.rate(f"{name}: ones report q*", arrays[name][:, x], q_star)
    findings.rate("y: zeros report p*", arrays["y"][:, ~y], p_star)
    findings.rate("y: ones report q*", arrays["y"][:, y], q_star)
    for bit in range(params.k):
        findings.rate(f"bit {bit}", arrays["x1"][:, bit], q_star if x[bit] else p_star)
    # Two reports of one value share B' and nothing else.
    zeros_both, ones_both = (1 - a) * p * p + a * q * q, (1 - a) * q * q + a * p * p
    for second in ("x2", "x3"):
        both = arrays["x1"] & arrays[second]
        findings.rate(f"x1 and {second}: zeros, both 1", both[:, ~x], zeros_both)
        findings.rate(f"x1 and {second}: ones, both 1", both[:, x], ones_both)
    # Other values, collections and f have a B' of their own.
    neither = ~x & ~y
    findings.rate("x and y: independent", (arrays["x1"] & arrays["y"])[:, neither], p_star**2)
    findings.rate("collections: independent", (arrays["x1"] & arrays["c"])[:, ~x], p_star**2)
    findings.rate("f and f': independent", (arrays["x1"] & arrays["f"])[:, ~x], p_star * p_other)
    # Clients, and bits within a report, are independent.
    clients = arrays["x1"][0::2] & arrays["x1"][1::2]
    findings.rate("clients: independent", clients[:, ~x], p_star**2)
    for apart in (1, 2, 3, 8, params.k // 2):
        pairs = ~x[:-apart] & ~x[apart:]
        both = arrays["x1"][:, :-apart] & arrays["x1"][:, apart:]
        # Each bit is in two pairs, so take pairs that share none.
        chosen = np.flatnonzero(pairs)
        chosen = chosen[(chosen // apart) % 2 == 0]
        findings.rate(f"bits {apart} apart: independent", both[:, chosen], p_star**2)


def _check_memos(findings: Findings, params: Params, memos: np.ndarray, x: np.ndarray) -> None:
    a = params.f / 2
    findings.rate("B': zeros flipped with f/2", memos[:, ~x], a)
    findings.rate("B': ones kept with 1 - f/2", memos[:, x], 1 - a)


def _check_epsilon(
    findings: Findings, params: Params, arrays: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray
) -> None:
    """A lower confidence bound on ε of one bit, from one and from two reports, is within ε."""
    for reports, names in ((1, ("x1",)), (2, ("x1", "x2"))):
        ones = np.logical_and.reduce([arrays[name] for name in names])
        held, absent = ones[:, x], ones[:, y]  # bits that are 1 for x and 0 for y, and the reverse
        confidence = findings.alpha / 100
        lower = log_ratio_lower(held.sum(), held.size, absent.sum(), absent.size, confidence)
        promised = bit_gain(params, reports)
        findings.exact(f"ε of {reports} report(s) is within its bound", lower <= promised)


def bit_gain(params: Params, reports: int) -> float:
    """ε of one bit going 0 -> 1, all reports 1, computed independently of rappor.privacy."""
    a = params.f / 2
    ones, zeros = params.q**reports, params.p**reports
    return float(np.log(((1 - a) * ones + a * zeros) / (a * ones + (1 - a) * zeros)))


def log_ratio_lower(
    hits: int, trials: int, other_hits: int, other_trials: int, alpha: float
) -> float:
    """A lower bound on ln(P/P') with confidence 1 - alpha: Clopper-Pearson on either side."""
    low = stats.beta.ppf(alpha / 2, hits, trials - hits + 1) if hits else 0.0
    high = stats.beta.isf(alpha / 2, other_hits + 1, other_trials - other_hits)
    with np.errstate(divide="ignore"):
        return float(np.log(low) - np.log(high))
