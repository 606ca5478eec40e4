"""Experiments that find what a test wants them to."""

from __future__ import annotations

from rappor.charts.theme import TOKENS, whole_chart
from rappor.experiments.experiment import Comparison, Experiment, Figure, Outcome, Table
from rappor.experiments.summary import RunRecord

SPEC = whole_chart(
    {
        "data": {"values": [{"a": 1}]},
        "mark": {"type": "point", "color": TOKENS["c1"][0]},
        "encoding": {"x": {"field": "a", "type": "quantitative"}},
    },
    "title",
    [],
    "light",
)


def an_outcome(text: str = "text", agrees: bool = True) -> Outcome:
    return Outcome(
        (Comparison(text, text, text, agrees, text),),
        (Figure("a-figure", text, text, SPEC),),
        (Table("a-table", text, (text, "n"), tuple((text, i) for i in range(40)), text, show=3),),
        (text,),
    )


def an_experiment(
    outcome: Outcome | Exception, text: str = "text", name: str = "fdr"
) -> Experiment:
    def run(_seeds: int, _progress: object) -> Outcome:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return Experiment(name, text, text, text, run, stand_in=text)


def done(outcome: Outcome | None, text: str = "text", error: Exception | None = None) -> RunRecord:
    experiment = an_experiment(outcome or ValueError(), text)
    return RunRecord("fdr", experiment, outcome, error, 20, 1.0)
