"""Every route of the dashboard: the one list that the router and the tests read."""

from __future__ import annotations

import rappor.dashboard.candidates.page as candidates
import rappor.dashboard.collections.page as collections
import rappor.dashboard.diagnostics.page as diagnostics
import rappor.dashboard.ingest.page as ingest
import rappor.dashboard.jobs.page as jobs
import rappor.dashboard.results.page as results
import rappor.dashboard.session.page as session
import rappor.dashboard.trends.page as trends
from rappor.dashboard import static_page
from rappor.dashboard.routing import lookup

PAGES = (
    *static_page.PAGES,
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
