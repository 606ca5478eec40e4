"""Figure 8: how probable v is, given its two bits in one report (§6)."""

from __future__ import annotations

import numpy as np

from rappor.attack.posterior import attack, crossing, posterior
from rappor.attack.result import AttackFigure as Simulated
from rappor.charts.marks import wrapped
from rappor.charts.theme import Spec, colours, whole_chart
from rappor.experiments.attack_agreement import AttackPoint, agreement, attack_point
from rappor.experiments.experiment import Comparison, Experiment, Figure, Outcome, Table, extra
from rappor.experiments.seeds import Progress, replicate
from rappor.experiments.shared_charts import legend, named, share_axis
from rappor.params import Params

PARAMS = Params.preset("exponential")  # f = .5, p = .5, q = .75, h = 2
PATTERNS = {"11": "both bits set", "10": "one bit set", "00": "no bit set"}
FREQUENCIES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
TRIALS = 50_000
NAMED = 0.1  # §6: "for relatively rare strings (those with less than 10 % frequency)"

Cell = tuple[str, float]  # pattern, frequency
Points = dict[Cell, AttackPoint]


def one_seed(seed: int) -> dict[Cell, Simulated]:
    """P(v) for each pattern and frequency, exact and simulated."""
    found = {}
    for number, x in enumerate(FREQUENCIES):
        draw = seed * len(FREQUENCIES) + number
        figures = attack(PARAMS, frequency=x, trials=TRIALS, seed=draw).figures
        for pattern, figure in zip(PATTERNS, figures, strict=False):  # most bits set first
            found[pattern, x] = figure
    return found


def run(seeds: int, progress: Progress) -> Outcome:
    """The exact curves, and the same from simulated clients."""
    runs = replicate(one_seed, seeds, progress, "posterior")
    points = {cell: attack_point([run[cell] for run in runs]) for cell in runs[0]}
    return Outcome(
        comparisons=(
            _at_ten_percent(points["11", NAMED], seeds),
            _claim(),
            _crossing(),
            agreement(points.values(), seeds, TRIALS),
        ),
        figures=(_figure(points, seeds),),
        tables=(_table(points), _crossings()),
        text=(
            "By Bayes' rule, with x the frequency of v and j of its h bits set in a report, "
            "P(v) = x q*^j (1-q*)^(h-j) / (x q*^j (1-q*)^(h-j) + (1-x) p*^j (1-p*)^(h-j)). With "
            "both bits set, v becomes the likelier only above x = p*²/(p*² + q*²) = "
            f"{100 * crossing(PARAMS):.1f} %: what the paper says of strings below 10 % holds for "
            "strings four times as frequent.",
        ),
    )


def _at_ten_percent(point: AttackPoint, seeds: int) -> Comparison:
    exact = point.exact
    return Comparison(
        f"P(v) with both bits set, at frequency {100 * NAMED:g} %",
        'no number; "much smaller than of it not being reported"',
        f"exact {100 * exact:.1f} %, against {100 * (1 - exact):.1f} % for not v; simulated "
        f"{100 * point.mean:.1f} ± {100 * point.sd:.1f} % ({seeds} seeds)",
        exact < 0.25,
        f"{(1 - exact) / exact:.1f} to 1 against v.",
    )


def _claim() -> Comparison:
    at = crossing(PARAMS)
    return Comparison(
        "strings for which not v is the likelier, even with both bits set",
        '"those with less than 10 % frequency"',
        f"all with less than {100 * at:.1f} %, those below {100 * NAMED:g} % among them",
        at >= NAMED,
        "The paper's statement is true, and a stronger one holds: see the next row.",
    )


def _crossing() -> Comparison:
    at = crossing(PARAMS)
    return Comparison(
        "frequency at which the curves of v and not v cross, both bits set",
        "no number",
        f"{100 * at:.1f} %",
        extra(abs(posterior(PARAMS, at, "11") - 0.5) < 1e-9),
        f"p*²/(p*² + q*²) = {at:.3f}: the protection reaches {at / NAMED:.1f} times as far as the "
        "text claims.",
    )


def _table(points: Points) -> Table:
    rows = tuple(
        (
            *(x, PATTERNS[pattern], f"{exact:.5f}", f"{1 - exact:.5f}"),
            *(f"{mean:.5f}", f"{sd:.5f}", f"{off:+.1f}"),
        )
        for (pattern, x), (exact, mean, sd, off) in points.items()
    )
    return Table(
        "posterior-probabilities",
        "Probability of v given its two bits",
        (
            *("Frequency of v", "Report", "P(v), exact", "P(not v), exact"),
            *("P(v), simulated", "sd of seeds", "Off, in standard errors"),
        ),
        rows,
        "f = .5, p = .5, q = .75, h = 2.",
        show=len(rows),
    )


def _crossings() -> Table:
    rows = tuple(
        (words, f"{100 * crossing(PARAMS, pattern.count('1')):.1f} %")
        for pattern, words in PATTERNS.items()
    )
    return Table(
        "posterior-crossings",
        "Frequency at which v becomes the likelier",
        ("Report", "Frequency of v"),
        rows,
    )


def _figure(points: Points, seeds: int) -> Figure:
    colour = colours()
    ink = dict(zip(PATTERNS.values(), (colour[name] for name in ("c3", "c1", "c2")), strict=True))
    dashes: dict[str, object] = {"v": [1, 0], "not v": [6, 4]}
    grid = np.linspace(0, 1, 101).tolist()
    lines = [
        {"frequency": x, "chance": chance, "report": words, "of": of}
        for pattern, words in PATTERNS.items()
        for x in grid
        for of, chance in (
            ("v", posterior(PARAMS, x, pattern)),
            ("not v", 1 - posterior(PARAMS, x, pattern)),
        )
    ]
    dots = [
        {"frequency": x, "chance": point.mean, "report": PATTERNS[pattern]}
        for (pattern, x), point in points.items()
    ]
    place = {
        "x": share_axis("frequency", "Frequency of v in the population"),
        "y": share_axis("chance", "Probability, given the report"),
    }
    at = crossing(PARAMS)
    layers: list[Spec] = [
        {
            "data": {"values": lines},
            "mark": {"type": "line", "strokeWidth": 1.75},
            "encoding": {
                **place,
                "color": named("report", ink, legend(symbolType="stroke", symbolStrokeWidth=3)),
                "strokeDash": named("of", dashes, None),
            },
        },
        {
            "data": {"values": dots},
            "mark": {"type": "circle", "size": 38, "opacity": 1},
            "encoding": {**place, "color": named("report", ink, None)},
        },
        *_marked(NAMED, f"named in the text: {100 * NAMED:g} %", colour["muted"], 178),
        *_marked(at, f"crossing: {100 * at:.1f} %", colour["threshold"], 316),
    ]
    words = [
        "Solid: P(v). Dashed: P(not v). Lines are exact for f = .5, p = .5, q = .75; dots are "
        f"simulated clients, mean of {seeds} seeds."
    ]
    parts: Spec = {"width": 600, "height": 340, "layer": layers}
    return Figure(
        "posterior-curves",
        "What one report says about v",
        "Below the crossing it is more probable that a client does not hold v, even when both bits "
        "of v are set in its report.",
        whole_chart(parts, "Is it v? Belief after one report", wrapped(words, 105), "light"),
    )


def _marked(frequency: float, text: str, colour: str, down: int) -> list[Spec]:
    once = {"values": [{"at": frequency}]}
    at = {"field": "at", "type": "quantitative"}
    return [
        {
            "data": once,
            "mark": {"type": "rule", "strokeDash": [3, 3], "color": colour},
            "encoding": {"x": at},
        },
        {
            "data": once,
            "mark": {"type": "text", "align": "left", "dx": 5, "color": colour, "text": text},
            "encoding": {"x": at, "y": {"value": down}},
        },
    ]


EXPERIMENT = Experiment(
    name="posterior",
    title="What one report says about a string",
    source="Figure 8, §6",
    about=(
        "The exact probability that a client holds v, and that it does not, given what the two "
        "bits of v show in one report, against the frequency of v; f = .5, p = .5, q = .75, h = 2."
    ),
    run=run,
)
