"""Every route of the dashboard: the one list that the router and the tests read."""

from __future__ import annotations

from rappor.dashboard.pages import (
    candidates,
    collections,
    diagnostics,
    ingest,
    jobs,
    results,
    session,
    static,
    trends,
)
from rappor.dashboard.routing import lookup

PAGES = (
    *static.PAGES,
    *session.PAGES,
    *collections.PAGES,
    *results.PAGES,
    *trends.PAGES,
    *diagnostics.PAGES,
    *candidates.PAGES,
    *jobs.PAGES,
    *ingest.PAGES,
)
NAMED = lookup(PAGES)
