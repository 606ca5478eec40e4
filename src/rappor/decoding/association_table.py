"""An association as text, CSV columns and JSON: what `print`, the command and the page show."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rappor.charts.numbers import NO_BREAK, show_difference, show_finding, show_p, show_share
from rappor.checks import plural
from rappor.decoding.exports import without_nan
from rappor.decoding.options import CORRECTIONS
from rappor.decoding.result_table import COMMAND, MAX_ROWS, align, p_text, visible
from rappor.privacy.rounding import up
from rappor.terminal import percent, showable

if TYPE_CHECKING:
    from rappor.decoding.association import Association, JointCell

_FACTS = (
    *("names", "reports", "tested", "method", "epsilon_one", "epsilon_infinity"),
    *("correction", "alpha", "warnings", "notes"),
)


def sentences(found: Association) -> list[str]:
    """What the table says: whether the fields are associated, and how sure that is."""
    first, second = found.names
    p = f"p {show_p(found.independence.p_value)}"
    if not found.tested:
        verdict = f"Whether {first} and {second} are associated was not tested."
    elif found.is_associated:
        verdict = f"{first} and {second} are associated ({p})."
    else:
        verdict = (
            f"No association of {first} and {second} was found ({p}): they are independent, or "
            "the reports are too few to show that they are not."
        )
    said = [verdict]
    count = len(found.associated)
    rate = CORRECTIONS[found.correction].rate.format(alpha=percent(found.alpha))
    of = plural(found.tested, "listed pair departs", "listed pairs depart")
    if found.tested:
        said.append(f"{count:,} of {of} from independence ({rate}).")
    if found.unlisted_mass[2] > found.unlisted_mass[1]:
        said.append(_unlisted(*found.unlisted_mass))
    return said


def _unlisted(share: float, low: float, high: float) -> str:
    """How much is not listed: estimates may lie below 0 and above 100 %, reports cannot."""
    if high <= 0:
        return "No report seems to hold a value that is not listed."
    if low >= 1:
        return "Every report seems to hold a value that is not listed."
    share, low, high = (min(max(number, 0.0), 1.0) for number in (share, low, high))
    shown = str(show_finding(share, low, high, low > 0)).replace(NO_BREAK, " ")
    return f"{shown[0].upper()}{shown[1:]} of the reports hold a value that is not listed."


def summary(found: Association) -> str:
    """One line: reports, the test of independence, and what one report costs."""
    test = found.independence
    before = f"{found.title}: " if found.title else ""
    degrees = f"{test.freedom:.4g} degree{'s' * (test.freedom != 1)} of freedom"
    tested = f"χ² {test.statistic:.1f} with {degrees}; " if found.tested else ""
    return (
        f"{before}{plural(found.reports, 'report', 'reports')}; {' '.join(sentences(found))} "
        f"{tested}ε {up(found.epsilon_one)} for one report on both"
    )


def lines(found: Association, *, every: bool, others: str = COMMAND) -> list[str]:
    """The cells as a table: those that depart first, at most 50; all with `every`."""
    known = [cell for cell in found.rows if cell.share == cell.share]
    ranked = sorted(
        known, key=lambda cell: (not cell.associated, -cell.share, cell.first, cell.second)
    )
    shown = ranked if every else ranked[:MAX_ROWS]
    head = (
        f"{visible(found.names[0])} × {visible(found.names[1])}",
        *("share", "95 % interval", "if independent", "departure", "p (adjusted)", "departs"),
    )
    drawn = align([head, *map(_cells, shown)])
    if len(shown) < len(ranked):
        drawn.append(f"… and {len(ranked) - len(shown):,} more cells ({others})")
    return drawn


def _cells(cell: JointCell) -> tuple[str, ...]:
    share = show_share(cell.share, cell.low_95, cell.high_95)
    reach = 1.96 * cell.departure_std_error
    gap = show_difference(cell.departure, cell.departure - reach, cell.departure + reach)
    numbers = (share.value, share.interval, _percent(cell.expected), gap.value)
    tested = cell.adjusted_p_value == cell.adjusted_p_value
    return (
        f"{visible(cell.first)} × {visible(cell.second)}",
        *(number.replace(NO_BREAK, " ") for number in numbers),
        p_text(cell.adjusted_p_value) if tested else "–",
        ("yes" if cell.associated else "no") if tested else "–",
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %" if share == share else "–"


def whole_text(found: Association) -> str:
    """The table, the summary, the notes and the warnings: what `rappor associate` prints."""
    said = (*found.notes, *found.warnings)
    table = lines(found, every=False, others="`.rows` has every one")
    whole = [*table, "", summary(found), *(f"note: {text}" for text in said)]
    return "\n".join(showable(line, sys.stdout) for line in whole)


def document(found: Association) -> dict[str, Any]:
    """Everything that is known about an association, ready for JSON."""
    share, low, high = found.unlisted_mass
    ready: dict[str, Any] = without_nan(
        {
            **{name: getattr(found, name) for name in _FACTS},
            "independence": found.independence._asdict(),
            "associated": len(found.associated),
            "unlisted_mass": {"share": share, "low_95": low, "high_95": high},
            "margins": {
                name: [value._asdict() for value in margin]
                for name, margin in zip(found.names, found.margins, strict=True)
            },
            "rows": [cell._asdict() for cell in found.rows],
            "projected": found.projected().tolist(),
            "shrunk": found.shrunk().tolist(),
            "checks": [check._asdict() for check in found.checks],
        }
    )
    return ready
