"""Steps through stored periods: the addresses behind ‹ and ›, and behind the keys [ and ]."""

from __future__ import annotations

from collections.abc import Sequence

from rappor.dashboard.page_query import View, between


def moved(view: View, stored: Sequence[str], by: int, page: str = "") -> str:
    """The address of as many periods, so many earlier (-1) or later (1); "" where there is none.

    Args:
        view: what is shown.
        stored: all stored periods, oldest first.
        by: how far.
        page: of which page of the collection, such as "/trends".

    >>> weeks = ["2026-W26", "2026-W27", "2026-W28"]
    >>> shown = View("homepage", 1, "2026-W27", "2026-W27", usual={"to": "2026-W28"})
    >>> moved(shown, weeks, -1, "/trends"), moved(shown, weeks, 2)
    ('/collections/homepage/trends?to=2026-W26&version=1', '')
    """
    shown = between(stored, view.first, view.last)
    if not shown:
        return ""
    places = list(stored)
    first, last = (places.index(shown[end]) + by for end in (0, -1))
    if first < 0 or last >= len(places):
        return ""
    vs = view.vs if "=" in view.vs else ""  # a period that it is compared with may be among them
    return view.path(page, first=places[first], last=places[last], vs=vs)
