"""Charts as plain Vega-Lite specifications, rendered offline."""

from rappor.charts.distribution import cumulative, histogram
from rappor.charts.render import Chart, render
from rappor.charts.results import results

__all__ = ["Chart", "cumulative", "histogram", "render", "results"]
