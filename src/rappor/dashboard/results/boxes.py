"""What each state of a view says first: title, text and tone."""

from __future__ import annotations

from dataclasses import dataclass

from rappor.charts.numbers import show_percent
from rappor.dashboard.access.visitor import Visitor
from rappor.dashboard.problems import refusal
from rappor.dashboard.results import situation as states
from rappor.dashboard.results.enough import NOUNS, Enough, about
from rappor.dashboard.results.situation import DECODERS, Situation
from rappor.dashboard.view import View
from rappor.dashboard.words import duration_text, sentence


@dataclass(frozen=True, slots=True)
class Said:
    """The box above the results; tone as in `ui.box`."""

    title: str
    text: str
    tone: str = ""


def few(enough: Enough, kind: str) -> Said:
    """What is said of too few reports.

    >>> few(Enough(28_582, 0.0526, 790_000), "category").text.replace("\u00a0", " ")
    'These show only categories above 5.26 %.'
    """
    noun = NOUNS.get(kind, "values")
    text = f"These show only {noun} above {show_percent(enough.smallest)}."
    if enough.smallest > 1:
        text = f"These can show no {noun} at all."
    title = f"{enough.reports:,} so far; 1\u00a0% needs at most about {about(enough.needed)}"
    return Said(title, text, "warn")


def box_of(found: Situation, view: View, visitor: Visitor) -> Said | None:
    """What the state says first; None where there is nothing to say."""
    where = view.side.words or "this time"
    match found.state:
        case states.EMPTY:
            arrived = view.against.words if view.against is not None and found.reports else where
            if not found.reports and not view.periods:
                arrived = " – ".join(dict.fromkeys((view.first, view.last))) or "this collection"
            return Said("No reports yet", f"Nothing arrived for {arrived}.")
        case states.NO_LIST:
            text = "Strings are found by testing a list of candidates. Paste or upload one."
            return Said("No candidates yet", text)
        case states.TOO_FEW if found.enough is not None:
            return few(found.enough, found.collection.kind)
        case states.LOADING if found.job is not None:
            return Said(found.job.label, found.job.doing)
        case states.ERROR if found.job is not None:
            return Said("This decode stopped", sentence(found.job.error), "bad")
        case states.STALE:
            since = (
                f"{abs(found.behind):,} reports {'since' if found.behind > 0 else 'fewer since'}"
            )
            ago = duration_text(max(found.age, 1))
            return Said("Out of date", f"Decoded {ago} ago; {since}.", "warn")
        case states.CANCELLED:
            at = "" if found.job is None or found.job.share is None else f" at {found.job.percent}"
            shown = "The earlier result is shown." if found.kept else "There is no earlier result."
            return Said(f"Cancelled{at}", shown)
        case states.NO_PERMISSION:
            return Said(*refusal(visitor, DECODERS, found.collection.owner))
        case _:
            return None
