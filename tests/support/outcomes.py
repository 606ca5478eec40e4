"""Looking into the outcome of an experiment."""

from rappor.charts.render import to_svg
from rappor.experiments.experiment import Comparison, Outcome
from rappor.experiments.pages import darkened
from rappor.experiments.reproduce import check_names


def by_what(outcome: Outcome, start: str) -> Comparison:
    """The one comparison of which `what` starts so."""
    (found,) = (each for each in outcome.comparisons if each.what.startswith(start))
    return found


def silent(_: str) -> None:
    """Progress that nobody follows."""


def about(outcome: Outcome, words: str) -> Comparison:
    """The one comparison of which `what` has these words."""
    found = [each for each in outcome.comparisons if words in each.what]
    assert len(found) == 1, f"{words}: {found}"
    return found[0]


def check_complete(outcome: Outcome) -> None:
    """All that a page shows is there, and figures can be drawn in light and dark."""
    check_names(outcome)
    assert outcome.figures
    assert outcome.tables
    for each in outcome.comparisons:
        assert each.what
        assert each.published
        assert each.ours
        assert each.why.endswith(".")
    for figure in outcome.figures:
        assert figure.caption
        assert "<svg" in to_svg(figure.spec)
        assert darkened(figure.spec) != figure.spec
    for table in outcome.tables:
        assert {len(row) for row in table.rows} == {len(table.columns)}
