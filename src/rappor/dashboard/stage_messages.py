"""What a page says first about its state, in the words of DASHBOARD.md."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from rappor.collection import Collection
from rappor.dashboard import page_state as states
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import CANCELLED, TooManyJobs
from rappor.dashboard.page_messages import Said, few
from rappor.dashboard.problems import problem, refusal
from rappor.dashboard.routing import Endpoint
from rappor.dashboard.stage import Stage
from rappor.dashboard.templating import as_sentence, duration_text
from rappor.errors import DecodeError, ParamsError


def said(stage: Stage, where: str, visitor: Visitor, collection: Collection) -> Said | None:
    """The box of a state; None where there is nothing to say.

    Args:
        stage: how far it is.
        where: which reports it is about: "2026-W27 – 2026-W28, NZ".
        visitor: who looks.
        collection: what it is about.
    """
    job, kept = stage.job, stage.saved is not None
    match stage.state:
        case states.EMPTY:
            return Said("No reports yet", f"Nothing arrived for {where or 'it yet'}.")
        case states.NO_LIST:
            text = "Strings are found by testing a list of candidates. Paste or upload one."
            return Said("No candidates yet", text)
        case states.TOO_FEW if stage.reach is not None:
            return few(stage.reach, collection.kind)
        case states.LOADING if job is not None:
            return Said(job.label, job.doing)
        case states.ERROR if job is not None:
            after = "; the earlier result is still here." if kept else "."
            text = f"{as_sentence(job.error)} Nothing changed{after}"
            return Said("This decode stopped", text, "bad")
        case states.STALE:
            ago = duration_text(max(stage.age, 1))
            since = f"; {stage.behind:,} reports since" if stage.behind > 0 else ""
            if stage.behind < 0:
                since = f"; {-stage.behind:,} reports fewer since"
            return Said("Out of date", f"Decoded {ago} ago{since}.", "warn")
        case state if state == CANCELLED:
            at = "" if job is None or job.share is None else f" at {job.percent}"
            shown = "The earlier result is shown." if kept else "There is no earlier result."
            return Said(f"Cancelled{at}", shown)
        case states.NO_PERMISSION:
            return Said(*refusal(visitor, states.DECODERS, collection.owner))
        case _:
            return None


def careful(answer: Endpoint) -> Endpoint:
    """An endpoint that says what is wrong with its address, or that too much is asked at once."""

    def endpoint(context: Context, request: Request, visitor: Visitor) -> Response:
        context.catalogue.get(request.path_params["name"])  # ParamsError: not there
        try:
            return answer(context, request, visitor)
        except (ParamsError, DecodeError) as error:
            text = f"{str(error)[:1].upper()}{str(error)[1:]}."
            return problem(context, request, visitor, 400, "This address cannot be read", text)
        except TooManyJobs as error:
            return problem(context, request, visitor, 503, "Too much at once", f"{error}.")

    return endpoint
