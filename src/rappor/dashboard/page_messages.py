"""What a page says about its state: one text for each state, on all pages."""

from __future__ import annotations

from dataclasses import dataclass

from rappor.charts.numbers import show_percent
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.page_state import DECODERS, PageState, PageStatus
from rappor.dashboard.problems import refusal
from rappor.dashboard.templating import as_sentence, duration_text
from rappor.planning.reach import NOUNS, ReportReach, about


@dataclass(frozen=True, slots=True)
class PageMessage:
    """The box above the results; `tone` is that of the macro `ui.box`."""

    title: str
    text: str
    tone: str = ""


def message_of(state: PageState, visitor: Visitor) -> PageMessage | None:
    """The message of a state; None if the page has nothing to say."""
    job = state.job
    earlier = state.saved is not None
    match state.status:
        case PageStatus.NO_VIEW:
            text = (
                "No view has two fields without a further field of strings, so no joint table can "
                "be estimated. Collect with a view of the two fields, in a new version."
            )
            return PageMessage("No pair of fields can be associated", text)
        case PageStatus.EMPTY:
            text = f"Nothing arrived for {state.where or 'this collection'}."
            return PageMessage("No reports yet", text)
        case PageStatus.NO_LIST:
            text = "Strings are found by testing a list of candidates. Paste or upload one."
            return PageMessage("No candidates yet", text)
        case PageStatus.TOO_FEW if state.reach is not None:
            return too_few(state.reach, state.collection.kind)
        case PageStatus.LOADING if job is not None:
            return PageMessage(job.label, job.doing)
        case PageStatus.ERROR if job is not None:
            end = "; the earlier result is shown." if earlier else "."
            text = f"{as_sentence(job.error)} Nothing changed{end}"
            return PageMessage("This decode stopped", text, "bad")
        case PageStatus.CANCELLED:
            at = "" if job is None or job.share is None else f" at {job.percent}"
            text = "The earlier result is shown." if earlier else "There is no earlier result."
            return PageMessage(f"Cancelled{at}", text)
        case PageStatus.NO_PERMISSION:
            title, text = refusal(visitor, DECODERS, state.collection.owner)
            return PageMessage(title, f"This view is not decoded yet. {text}")
        case PageStatus.STALE:
            return PageMessage("Out of date", _age(state), "warn")
        case _:
            return None


def too_few(reach: ReportReach, kind: str) -> PageMessage:
    """The message about too few reports.

    >>> too_few(ReportReach(28_582, 0.0526, 790_000), "category").text.replace("\u00a0", " ")
    'These show only categories above 5.26 %.'
    """
    noun = NOUNS.get(kind, "values")
    text = f"These show only {noun} above {show_percent(reach.smallest)}."
    if reach.smallest > 1:
        text = f"These can show no {noun} at all."
    title = f"{reach.reports:,} so far; 1\u00a0% needs at most about {about(reach.needed)}"
    return PageMessage(title, text, "warn")


def _age(state: PageState) -> str:
    since = ""
    if state.behind:
        since = f"; {abs(state.behind):,} reports {'' if state.behind > 0 else 'fewer '}since"
    return f"Decoded {duration_text(max(state.age, 1))} ago{since}."
