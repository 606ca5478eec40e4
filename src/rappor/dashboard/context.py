"""Context: the parts of a dashboard that every page works with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from rappor.dashboard.assets import Assets
from rappor.dashboard.auth.roles import Visitor
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.ingest.watch import Watch
from rappor.dashboard.jobs import Jobs
from rappor.dashboard.settings import DashboardSettings
from rappor.dashboard.state import DashboardState
from rappor.dashboard.templating import environment, frame


@dataclass(slots=True)
class Context:
    """The parts of one dashboard.

    Attributes:
        settings: the settings of the process.
        catalogue: what the store holds.
        state: accounts, candidates, results and jobs.
        jobs: the queue of long work.
        assets: scripts and styles.
        watch: the collector's figures over time.
    """

    settings: DashboardSettings
    catalogue: Catalogue
    state: DashboardState
    jobs: Jobs
    assets: Assets
    watch: Watch = field(default_factory=lambda: Watch(None))

    def render(
        self,
        template: str,
        request: Request,
        visitor: Visitor,
        status: int = 200,
        **context: Any,
    ) -> Response:
        """Render a page from a template that extends base.html."""
        page = environment().get_template(template)
        return HTMLResponse(page.render(**frame(self, request, visitor), **context), status)
