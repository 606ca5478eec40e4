"""Figure 1: the life of a report, v -> B -> B' -> S (§2)."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterator
from statistics import fmean
from typing import NamedTuple

from rappor.experiments.experiment import Comparison, Experiment, Outcome, Table
from rappor.experiments.life_of_a_report.figure import draw
from rappor.experiments.seeds import Progress, mean_sd, replicate
from rappor.mechanism import Encoder, Trace
from rappor.mechanism.channel import expected_ones, ones_variance
from rappor.params import Params
from rappor.testing import SeededEntropy

VALUE = "68"
PARAMS = Params.preset("life-of-a-report")
CLIENTS = 250  # for each seed: clients that each report VALUE once
PUBLISHED_ONES, PUBLISHED_KEPT, PUBLISHED_SENT = 145, 2, 2
_UNUSUAL = 0.05


class ReportLife(NamedTuple):
    """Means over the clients of one seed."""

    ones: float  # in S
    kept: float  # signal bits that are 1 in B'
    sent: float  # share of those that are 1 in S


def trace(client: str) -> Trace:
    """B, B' and S of one client, whose secret and coins follow from its name."""
    return Encoder(
        PARAMS,
        secret=hashlib.sha256(f"life of a report {client}".encode()).digest(),
        collection="life-of-a-report",
        cohort=0,
        entropy=SeededEntropy(client),
    ).trace(VALUE)


def one_seed(seed: int) -> ReportLife:
    """Many clients with the same value."""
    ones = kept = sent = 0
    for client in range(CLIENTS):
        shown = trace(f"{seed}/{client}")
        stayed, both = _fate(shown)
        ones, kept, sent = ones + shown.report.bits.bit_count(), kept + stayed, sent + both
    return ReportLife(ones / CLIENTS, kept / CLIENTS, sent / kept)


def run(seeds: int, progress: Progress) -> Outcome:
    """One report drawn, and what is usual over many."""
    shown = like_the_paper()
    seen = replicate(one_seed, seeds, progress, "reports")
    figure = draw(VALUE, PARAMS, shown)
    return Outcome(tuple(_compare(seen)), (figure,), (_table(shown),), _text())


def like_the_paper() -> Trace:
    """The first of many clients whose report went as the paper's: two bits kept, both sent."""
    clients = (trace(f"figure/{client}") for client in itertools.count())
    return next(shown for shown in clients if _fate(shown) == (PUBLISHED_KEPT, PUBLISHED_SENT))


def _fate(shown: Trace) -> tuple[int, int]:
    """How many bits of the value are 1 in B', and how many of those in S."""
    kept = shown.signal & shown.permanent
    return kept.bit_count(), (kept & shown.report.bits).bit_count()


def _compare(seen: list[ReportLife]) -> Iterator[Comparison]:
    """Compare the published run with the law of one report, and our means with theirs."""
    f, q, h = PARAMS.f, PARAMS.q, PARAMS.h
    clients = CLIENTS * len(seen)
    expected = float(expected_ones(PARAMS, h))
    sd = math.sqrt(ones_variance(PARAMS, h))
    ones = [life.ones for life in seen]
    off = _off(ones, expected, sd / math.sqrt(clients))
    yield Comparison(
        "Ones in the 256 bits of a report",
        f"{PUBLISHED_ONES} (one random run)",
        f"{expected:g} ± {sd:.1f} expected of one report; means of {CLIENTS}: "
        f"{mean_sd(ones, '.2f')}",
        abs(PUBLISHED_ONES - expected) < 2 * sd and not off,
        f"4 q* + 252 p* = {expected:g}, and one report varies around it by {sd:.1f}: the published "
        f"run is {abs(PUBLISHED_ONES - expected) / sd:.2f} standard deviations away.{off}",
    )
    stays = 1 - f / 2
    kept = [life.kept for life in seen]
    off = _off(kept, h * stays, math.sqrt(h * stays * (1 - stays) / clients))
    at_most = sum(_binomial(h, count, stays) for count in range(PUBLISHED_KEPT + 1))
    usual = "nothing unusual" if at_most > _UNUSUAL else "unusual"
    yield Comparison(
        "Bits of B that are still 1 in B', of 4",
        f"{PUBLISHED_KEPT} (one random run)",
        f"{h * stays:g} expected; means of {CLIENTS}: {mean_sd(kept, '.2f')}",
        at_most > _UNUSUAL and not off,
        f"Each stays with probability 1-f/2 = {stays:g}, so {PUBLISHED_KEPT} or fewer stay in "
        f"{at_most:.0%} of clients: {usual}.{off}",
    )
    sent = [life.sent for life in seen]
    off = _off(sent, q, math.sqrt(q * (1 - q) / (clients * h * stays)))
    yield Comparison(
        "Share of those bits that are 1 in S",
        f"{PUBLISHED_SENT} of {PUBLISHED_KEPT} (one random run)",
        f"q = {q:g} expected; means of {CLIENTS}: {mean_sd(sent, '.3f')}",
        q**PUBLISHED_SENT > _UNUSUAL and not off,
        f"Both of two are 1 in q² = {q**2:.0%} of reports.{off}",
    )


def _off(values: list[float], expected: float, error: float) -> str:
    """A warning if the mean over seeds is more than 4 standard errors off."""
    sigmas = abs(fmean(values) - expected) / error
    return "" if sigmas <= 4 else f" But our own mean is off by {sigmas:.1f} standard errors."


def _binomial(n: int, count: int, share: float) -> float:
    return math.comb(n, count) * share**count * (1 - share) ** (n - count)


def _table(shown: Trace) -> Table:
    return Table(
        "life-of-a-report-bits",
        "The bits of the value",
        ("bit", "B", "B'", "S"),
        tuple(
            (bit, shown.signal >> bit & 1, shown.permanent >> bit & 1, shown.report.bits >> bit & 1)
            for bit in sorted(range(PARAMS.k), key=lambda bit: not shown.signal >> bit & 1)
        ),
        f"The {PARAMS.h} bits that “{VALUE}” sets come first; the file has all {PARAMS.k}.",
        show=PARAMS.h,
    )


def _text() -> tuple[str, ...]:
    return (
        "The paper says that the two bits lost in B' “are never reported on by this client”. What "
        "is never reported is that they were 1: as bits of S they are 1 in p = 50 % of the "
        "reports, like every other bit that is 0 in B'.",
        "The report in the figure is the first of many simulated ones that went as the paper’s "
        "did: "
        "two bits kept, both sent. Its secret and coins are fixed so that it can be drawn again; "
        "a real client draws both from the operating system, and never sends or stores B and B'.",
    )


EXPERIMENT = Experiment(
    name="life-of-a-report",
    title="Life of a report",
    source="Figure 1, §2",
    about="The paper follows one report: the value “68” is hashed by 4 hash functions onto a Bloom "
    "filter B of 256 bits, randomized once into B' (f = 0.5), and randomized again into the "
    "report S (p = 0.5, q = 0.75). Here a real client’s encoder does the same, and then the same "
    f"is done for {CLIENTS} other clients for each seed.",
    run=run,
)
