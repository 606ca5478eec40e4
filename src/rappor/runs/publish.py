"""Publishing to the dashboard: a result of a run is saved as the page that shows it would save it.

The Results page of the same collection, periods, dimensions, list and options then shows it without
decoding anything. Runs count what pages may show (`rappor.store.released`), so that a published
result tells no more than a page.
"""

from __future__ import annotations

from rappor.dashboard.page_query import PageQuery, between
from rappor.dashboard.results.serialization import pack
from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.state import DECODE
from rappor.decoding.result import Decoded
from rappor.runs.units import DecodeUnit
from rappor.stored_view import StoredView


def publish(state: DashboardState, unit: DecodeUnit, view: StoredView, found: Decoded) -> None:
    """Save a result under the key of its page."""
    listed = None if unit.candidates is None else unit.candidates.saved_version
    query = PageQuery(
        collection=unit.collection,
        version=unit.version,
        periods=between(view.stored, unit.periods[0], unit.periods[-1]),
        dimensions=unit.dimensions,
        correction=unit.job.correction,
        alpha=unit.job.alpha,
        method=unit.job.method,
        candidates=listed,
    )
    about = {
        "collection": unit.collection,
        "version": unit.version,
        "periods": query.periods,
        "dimensions": unit.dimensions,
        "against": None,
        "list": listed,
        "run": unit.job.name,
    }
    result = pack(found, about)
    state.save_result(query.key, DECODE, result.meta, result.table)
