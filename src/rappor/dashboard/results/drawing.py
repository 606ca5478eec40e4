"""The charts of a view: those of the package, in the view's unit and on its scale."""

from __future__ import annotations

from rappor.charts.comparison import Pair, comparison_panel
from rappor.charts.distribution import cumulative_panel, histogram_panel
from rappor.charts.dots import dots_panel
from rappor.charts.panel import Panel
from rappor.charts.results import bars_panel, strip_panel
from rappor.charts.rows import PAGE_ROWS
from rappor.dashboard.results.kept import Kept
from rappor.dashboard.results.table import chart_lines
from rappor.dashboard.view import View

_CUMULATIVE_HEIGHT = 160


def drawn(kept: Kept, view: View, theme: str = "light", *, page: bool) -> dict[str, Panel]:
    """Every chart of a view by name, in the order of the page.

    Args:
        kept: the result, with reports and rows.
        view: its unit, its scale and the names of what is compared.
        theme: "light" or "dark".
        page: whether they go into a page, or into a file.
    """
    found: dict[str, Panel] = {}
    if kept.other is not None and view.against is not None:
        found["compared"] = _compared(kept, view, theme, page)
    elif (hist := kept.decoded.histogram) is not None:
        found["histogram"] = histogram_panel(hist, theme=theme, unit=view.unit)
        found["cumulative"] = cumulative_panel(hist, theme=theme, height=_CUMULATIVE_HEIGHT)
    elif view.scale == "log":
        found["results"] = dots_panel(kept.decoded, theme=theme, unit=view.unit, page=page)
    else:
        found["results"] = bars_panel(kept.decoded, theme=theme, unit=view.unit, page=page)
    mass = strip_panel(kept.decoded, theme=theme)
    if mass is not None:
        found["unlisted"] = mass
    return found


def _compared(kept: Kept, view: View, theme: str, page: bool) -> Panel:
    lines = chart_lines(kept, PAGE_ROWS)
    pairs = [
        Pair(line.row, line.other, line.gap)
        for line in lines
        if line.other is not None and line.gap is not None
    ]
    different = 0 if kept.compared is None else len(kept.compared.different)
    tested = 0 if kept.compared is None else kept.compared.candidates
    noun = "candidates" if kept.decoded.kind == "string" else "values"
    verb = "differs" if different == 1 else "differ"
    title = f"{different:,} of {tested:,} {noun} {verb}" if different else f"No {noun} differ"
    other = view.against.words if view.against is not None else ""
    return comparison_panel(
        pairs,
        (view.side.words, other),
        f"{title} between {view.side.words} and {other}",
        ["Differences are in percentage points, with 95 % intervals."] if page else (),
        theme=theme,
        unit=view.unit,
        scale=view.scale,
        page=page,
    )
