"""Simulated populations and their counts: numpy's generators and seeds are fine here."""

from rappor.simulate.drawn_counts import Simulated, counts, simulate
from rappor.simulate.full_reports import Reports, reports
from rappor.simulate.judge import Judgement, TruthRow, judge, judge_shares, read_truth
from rappor.simulate.pairs import PairReports, pair_reports
from rappor.simulate.population_files import read_population
from rappor.simulate.populations import (
    GOOGLE_SHAPES,
    Population,
    exponential,
    google_shape,
    normal,
    tuples,
    uniform,
    zipf,
)
from rappor.simulate.scenario import Scenario

__all__ = [
    "GOOGLE_SHAPES",
    "Judgement",
    "PairReports",
    "Population",
    "Reports",
    "Scenario",
    "Simulated",
    "TruthRow",
    "counts",
    "exponential",
    "google_shape",
    "judge",
    "judge_shares",
    "normal",
    "pair_reports",
    "read_population",
    "read_truth",
    "reports",
    "simulate",
    "tuples",
    "uniform",
    "zipf",
]
