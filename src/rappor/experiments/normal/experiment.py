"""Figure 4: the shape of a normal distribution from three numbers of reports (§5.1)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from rappor.decoding.histogram import Histogram, SummaryEstimate
from rappor.decoding.ordinal import decode_ordinal
from rappor.decoding.smoothing import smooth
from rappor.experiments.experiment import Comparison, Experiment, Outcome, Table, extra
from rappor.experiments.normal.figures import NormalPanel, draw, draw_smooth
from rappor.experiments.seeds import Progress, mean_sd, replicate, root_mean_square, spread
from rappor.params import Params
from rappor.privacy import epsilon_one, standard_error
from rappor.simulate import Population, normal, simulate
from rappor.typing import FloatArray

PARAMS = Params.preset("normal")
MEAN, SD = 50.0, 10.0
SIZES = (10**4, 10**5, 10**6)
WORDS = ("too noisy", "begins to emerge", "traced very closely")
SHOWN = 1  # the seed that is drawn
COVERAGE_SEEDS = 100
# Share of an estimate's variation that is signal: noise has the larger part; the shape; nearly all.
EMERGES, CLOSE = 0.5, 0.95


class NormalRun(NamedTuple):
    """One simulated collection: what is drawn of it, and its errors."""

    panel: NormalPanel
    rmse: float  # of the shares
    rmse_smooth: float
    distance: float  # total variation, half the sum of absolute errors
    signal: float  # squared correlation of estimated and true shares
    tail: float  # root mean square of the estimates in the empty tails, in reports
    mean: SummaryEstimate


def population() -> Population:
    """Normal(50, 10) rounded to whole numbers, of which 1 to 100 have a bit each."""
    return normal(PARAMS.k, mean=MEAN, sd=SD, prefix="")


def collect(reports: int, seed: int) -> tuple[Histogram, FloatArray]:
    """A decoded collection, and the shares that its clients really held."""
    drawn = simulate(population(), PARAMS, reports, seed=[seed, reports], kind="ordinal")
    truth = np.array([drawn.truth[name] for name in population().strings]) / reports
    return decode_ordinal(drawn.counts, list(range(1, PARAMS.k + 1))), truth


def one_seed(reports: int, seed: int) -> NormalRun:
    """One collection of this many reports."""
    found, truth = collect(reports, seed)
    prior = smooth(found).share
    error = found.share - truth
    tails = np.abs(np.arange(1, PARAMS.k + 1) - MEAN) > 4 * SD
    return NormalRun(
        NormalPanel(
            reports,
            truth.tolist(),
            found.share.tolist(),
            np.sqrt(np.diag(found.covariance)).tolist(),
            prior.tolist(),
        ),
        root_mean_square(error),
        root_mean_square(prior - truth),
        float(np.abs(error).sum() / 2),
        float(np.corrcoef(found.share, truth)[0, 1] ** 2),
        reports * root_mean_square(found.share[tails]),
        found.mean(),
    )


def mean_of(seed: int) -> SummaryEstimate:
    """The estimated mean of the largest collection, with its interval."""
    return collect(SIZES[-1], seed)[0].mean()


def run(seeds: int, progress: Progress) -> Outcome:
    """Three sizes, the mean's interval, and smoothing."""
    runs = {
        size: replicate(partial(one_seed, size), seeds, progress, f"{size:,} reports")
        for size in SIZES
    }
    means = replicate(mean_of, COVERAGE_SEEDS, progress, f"mean of {SIZES[-1]:,} reports")
    panels = [runs[size][SHOWN - 1].panel for size in SIZES]
    comparisons = (_privacy(), *_shapes(runs), _tails(runs), _coverage(means), _smoothing(runs))
    return Outcome(
        comparisons,
        (draw(panels), draw_smooth(panels)),
        (_errors(runs), _shares(panels)),
        _text(),
    )


def _privacy() -> Comparison:
    epsilon = epsilon_one(PARAMS, "ordinal")
    return Comparison(
        "ε of a report",
        "ln 3",
        f"ln {math.exp(epsilon):g}",
        math.isclose(epsilon, math.log(3), rel_tol=1e-15),
        "Two numbers differ in one bit each way: ε = ln(q(1-p) / (p(1-q))), exactly.",
    )


def _shapes(runs: dict[int, list[NormalRun]]) -> Iterator[Comparison]:
    for size, words in zip(SIZES, WORDS, strict=True):
        signal = [run.signal for run in runs[size]]
        mean = spread(signal).mean
        ours = WORDS[(mean >= EMERGES) + (mean >= CLOSE)]
        noise = spread([run.rmse for run in runs[size]]).mean
        yield Comparison(
            f"{size:,} reports: the bell curve",
            f"“{words}”",
            f"{mean_sd([100 * part for part in signal], '.1f', ' %')} of the variation is signal: "
            f"{ours}",
            ours == words,
            f"A share is off by {100 * noise:.2g} points (root mean square); the curve is "
            f"{100 * max(population().shares):.2g} points high. Below {EMERGES:.0%} signal we call "
            f"it too noisy, from {CLOSE:.0%} traced closely.",
        )


def _tails(runs: dict[int, list[NormalRun]]) -> Comparison:
    size = SIZES[-1]
    tail = [run.tail for run in runs[size]]
    formula = standard_error(PARAMS, size, hashes=1)
    found = spread(tail)
    return Comparison(
        "Noise in the tails, where there is no signal",
        "“Notice the noise in the left and right tails”",
        f"{mean_sd(tail, ',.0f')} reports at {size:,}; formula {formula:,.0f}",
        abs(found.mean - formula) < 4 * found.se + 0.02 * formula,
        "√(p(1-p)N)/(q-p) = 2√N: the same noise on every number, common or not. It is a little "
        "smaller because the shares are made to add up to 1.",
    )


def _coverage(means: list[SummaryEstimate]) -> Comparison:
    covered = [mean.low_95 <= MEAN <= mean.high_95 for mean in means]
    return Comparison(
        f"95 % interval of the mean at {SIZES[-1]:,} reports",
        "no figure",
        f"covers 50 in {sum(covered)} of {len(covered)} seeds; mean "
        f"{mean_sd([mean.value for mean in means], '.2f')}",
        extra(sum(covered) >= 0.9 * len(covered)),
        f"The mean is known to ±{1.96 * spread([mean.std_error for mean in means]).mean:.1f}: "
        "numbers far from the mean are as noisy as near ones, and weigh more.",
    )


def _smoothing(runs: dict[int, list[NormalRun]]) -> Comparison:
    gains = {size: [run.rmse / run.rmse_smooth for run in found] for size, found in runs.items()}
    shown = ", ".join(f"{spread(gain).mean:.1f}" for gain in gains.values())
    return Comparison(
        "Smoothing, if the shape may be assumed",
        "“could significantly improve”",
        f"error {shown} times smaller at {', '.join(f'{size:,}' for size in SIZES)}",
        all(spread(gain).mean > 1.5 for gain in gains.values()),
        "Penalised second differences, their strength by cross-validation. It is a prior: it "
        "has no ordinary interval, and misleads if neighbouring numbers differ.",
    )


def _errors(runs: dict[int, list[NormalRun]]) -> Table:
    def pair(values: list[float]) -> tuple[float, float]:
        found = spread(values)
        return found.mean, found.sd

    rows = []
    for size, found in runs.items():
        row: list[object] = [size, 100 * standard_error(PARAMS, size, hashes=1) / size]
        for column in ("rmse", "rmse_smooth"):
            row += pair([100 * getattr(run, column) for run in found])
        row += [*pair([run.distance for run in found]), *pair([run.signal for run in found])]
        rows.append((*row, *pair([run.mean.value for run in found])))
    names = ("error", "error when smoothed", "total variation", "signal share", "mean")
    columns = [f"{name}{part}" for name in names for part in ("", " (sd)")]
    return Table(
        "normal-errors",
        "Errors by number of reports",
        ("reports", "formula, points", *columns),
        tuple(rows),
        "Errors are root mean squares over the hundred numbers, in percentage points of the "
        "reports, averaged over seeds with their standard deviation (sd) between seeds.",
    )


def _shares(panels: list[NormalPanel]) -> Table:
    return Table(
        "normal-shares",
        "Every number of the collections drawn",
        ("reports", "number", "true share", "estimate", "standard error", "smoothed (prior)"),
        tuple(
            (panel.reports, number, *values)
            for panel in panels
            for number, values in enumerate(
                zip(panel.truth, panel.estimate, panel.error, panel.prior, strict=True), 1
            )
        ),
        f"Seed {SHOWN}. Estimates are unbiased and may be negative.",
        show=10,
    )


def _text() -> tuple[str, ...]:
    return (
        "True shares are those of the simulated clients, drawn from the rounded normal "
        "distribution; each number from 1 to 100 has a bit of its own (Basic One-time RAPPOR, "
        "f = 0, p = 0.5, q = 0.75). The shares are estimated bit by bit and then made to add up to "
        "1 by least squares. Nothing is assumed about the curve’s form, except in the figure that "
        "says so.",
    )


EXPERIMENT = Experiment(
    name="normal",
    title="A normal distribution",
    source="Figure 4, §5.1",
    about="Numbers from a normal distribution with mean 50 and standard deviation 10, rounded, are "
    "reported once by Basic RAPPOR with q = 0.75 and p = 0.5. The paper shows the estimated shape "
    "for 10,000, 100,000 and a million reports, without assuming that it is normal.",
    run=run,
    replicates=lambda seeds: f"{seeds} seeds, {COVERAGE_SEEDS} for the interval of the mean",
)
