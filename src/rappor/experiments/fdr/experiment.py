"""Figure 7: picking reports with both bits of a string set (§6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rappor.attack.fdr import attack, false_discovery_rate
from rappor.attack.result import AttackFigure as Simulated
from rappor.charts.marks import wrapped
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.attack_agreement import AttackPoint, agreement, attack_point
from rappor.experiments.experiment import Comparison, Experiment, Figure, Outcome, Table
from rappor.experiments.seeds import Progress, replicate
from rappor.experiments.shared_charts import legend, named, share_axis
from rappor.params import Params

PARAMS = Params.preset("exponential")  # p = .5, q = .75, h = 2
NOISE = (0.0, 0.25, 0.5, 0.75)  # f
FREQUENCIES = (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TRIALS = 50_000
RARE, FREQUENT = 0.01, 0.1

Cell = tuple[float, float]  # f, frequency
Points = dict[Cell, AttackPoint]


def with_noise(f: float) -> Params:
    """The parameters of the figure with another f."""
    return replace(PARAMS, f=f)


def one_seed(seed: int) -> dict[Cell, Simulated]:
    """The false discovery rate for each f and frequency, exact and simulated."""
    found = {}
    cells = [(f, x) for f in NOISE for x in FREQUENCIES]
    for number, (f, x) in enumerate(cells):
        draw = seed * len(cells) + number
        found[f, x] = attack(with_noise(f), frequency=x, trials=TRIALS, seed=draw).figures[0]
    return found


def run(seeds: int, progress: Progress) -> Outcome:
    """The exact curves, and the simulated attack."""
    runs = replicate(one_seed, seeds, progress, "fdr")
    points = {cell: attack_point([run[cell] for run in runs]) for cell in runs[0]}
    return Outcome(
        comparisons=(
            _share(points, RARE, seeds),
            _share(points, FREQUENT, seeds),
            _proportional(),
            agreement(points.values(), seeds, TRIALS),
        ),
        figures=(_figure(points, seeds),),
        tables=(_table(points),),
        text=(
            "The attacker picks every report in which all h bits of v are set. At frequency x, the "
            "share of those picked who do not hold v is (1-x) p*^h / ((1-x) p*^h + x q*^h). The "
            "clients that do not hold v are taken to hold strings that share no bit with it, as in "
            "the paper; strings that share bits make the attack even weaker.",
        ),
    )


def _share(points: Points, frequency: float, seeds: int) -> Comparison:
    point = points[PARAMS.f, frequency]
    return Comparison(
        f"share of those picked who do not hold v, frequency {100 * frequency:g} %, f = "
        f"{PARAMS.f:g}",
        'no number; "for relatively rare values, most clients in the target set will, in fact, '
        'have a value that is different from v"',
        f"exact {100 * point.exact:.1f} %; simulated {100 * point.mean:.1f} ± "
        f"{100 * point.sd:.1f} % ({seeds} seeds)",
        point.exact > 0.5,
        f"Without any report it would be {100 * (1 - frequency):g} %: two noisy bits multiply the "
        f"odds of v by {_odds(frequency):.2f} only.",
    )


def _odds(frequency: float) -> float:
    """By how much both bits set multiply the odds of v."""
    false = false_discovery_rate(PARAMS, frequency)
    return (1 - false) / false / (frequency / (1 - frequency))


def _proportional() -> Comparison:
    rates = [false_discovery_rate(with_noise(f), FREQUENT) for f in NOISE]
    shown = " / ".join(f"{rate:.3f}" for rate in rates)
    ratio = rates[-1] / rates[-2]
    return Comparison(
        f"the rate at {100 * FREQUENT:g} % for f = {' / '.join(f'{f:g}' for f in NOISE)}",
        '"FDR is proportional to f"',
        shown,
        abs(ratio / (NOISE[-1] / NOISE[-2]) - 1) < 0.05 and rates[0] < 0.05,
        f"It grows with f, but from {rates[0]:.2f} at f = 0, and a proportional rate would "
        f"be 0 there: p and q alone already hide most of it. From f = {NOISE[-2]:g} to "
        f"{NOISE[-1]:g} it grows by a "
        f"factor of {ratio:.3f}, not {NOISE[-1] / NOISE[-2]:g}.",
    )


def _table(points: Points) -> Table:
    rows = tuple(
        (f, x, f"{exact:.5f}", f"{mean:.5f}", f"{sd:.5f}", f"{off:+.1f}")
        for (f, x), (exact, mean, sd, off) in points.items()
    )
    return Table(
        "fdr-rates",
        "Share of those picked who do not hold v",
        (
            "f",
            "Frequency of v",
            "Exact",
            "Simulated (mean)",
            "sd of seeds",
            "Off, in standard errors",
        ),
        rows,
        "p = .5, q = .75, h = 2.",
        show=len(rows),
    )


def _figure(points: Points, seeds: int) -> Figure:
    colour = colours()
    labels = {f: f"f = {f:g}" for f in NOISE}
    grid = np.linspace(0, 1, 101).tolist()
    lines = [
        {"frequency": x, "rate": false_discovery_rate(with_noise(f), x), "f": labels[f]}
        for f in NOISE
        for x in grid
    ]
    dots = [
        {"frequency": x, "rate": point.mean, "f": labels[f]} for (f, x), point in points.items()
    ]
    ink = dict(
        zip(labels.values(), (colour[name] for name in ("c2", "c3", "c1", "c4")), strict=True)
    )
    shapes = dict(zip(labels.values(), ("circle", "square", "diamond", "triangle-up"), strict=True))
    place = {
        "x": share_axis("frequency", "Frequency of v in the population"),
        "y": share_axis("rate", "Share of those picked who do not hold v"),
    }
    both = {"color": named("f", ink, legend()), "shape": named("f", shapes, legend())}
    layers: list[Spec] = [
        {
            "data": {"values": lines},
            "mark": {"type": "line", "strokeWidth": 1.75},
            "encoding": {**place, "color": both["color"]},
        },
        {
            "data": {"values": dots},
            "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1},
            "encoding": {**place, **both},
        },
        *_callouts(),
    ]
    words = [
        "Lines: exact, for p = .5, q = .75, h = 2. Points: the attack simulated, mean of "
        f"{seeds} seeds."
    ]
    parts: Spec = {"width": 600, "height": 340, "layer": layers}
    return Figure(
        "fdr-curves",
        "False discovery rate of an attacker who picks reports",
        "Most clients that are picked do not hold a rare string, for any f; f raises the rate, "
        "but not in proportion.",
        whole_chart(parts, "How many of those picked do not hold v", wrapped(words), "light"),
    )


def _callouts() -> Sequence[Spec]:
    """The two numbers at f = .5, named in the chart."""
    values = [
        {
            "frequency": x,
            "rate": false_discovery_rate(PARAMS, x),
            "text": f"{100 * false_discovery_rate(PARAMS, x):.1f} % at {100 * x:g} %, f = .5",
        }
        for x in (RARE, FREQUENT)
    ]
    return [
        {
            "data": {"values": [point]},
            "mark": {"type": "text", "align": "left", "dx": dx, "dy": dy},
            "encoding": {
                "x": {"field": "frequency", "type": "quantitative"},
                "y": {"field": "rate", "type": "quantitative"},
                "text": {"field": "text"},
            },
        }
        for point, (dx, dy) in zip(values, ((36, 6), (36, -4)), strict=True)
    ]


EXPERIMENT = Experiment(
    name="fdr",
    title="Picking out the clients that hold a string",
    source="Figure 7, §6",
    about=(
        "An attacker who knows how frequent a string v is picks all reports in which both of its "
        "bits are set. The figure shows which share of those picked do not hold v, against the "
        "frequency of v, for several f."
    ),
    run=run,
)
