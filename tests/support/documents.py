"""What the pages of docs/ take for granted: a data folder with some weeks or days of reports."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from rappor.collection import Collection
from rappor.demo.definitions import definitions
from rappor.store import CellKey, open_store
from support.dashboard import TODAY, Sample
from support.lakes import PARAMS, add

HIJACKER = "search.hijack-bar.net"
SITES = ("example.com", *(f"site{number}.example" for number in range(1, 20)))


def data_folder(*periods: str, reports: int = 20_000, keep_reports_days: int = 0) -> None:
    """Write `data`, `collections` and `candidates.txt` to the current folder.

    Args:
        periods: the periods of the collection homepage, days or ISO weeks; the last one has a new
            value, which a comparison finds.
        reports: the number of reports of each of two countries in a period.
        keep_reports_days: how long the definition keeps reports.
    """
    folder = Path.cwd()
    kind = "week" if "W" in periods[0] else "day"
    demo = definitions(2 * reports, TODAY)[0]
    homepage = replace(demo, period=kind, keep_reports_days=keep_reports_days)
    sample = Sample(folder)
    sample.define(homepage)
    for period in periods:
        shares = {site: 0.8**rank for rank, site in enumerate(SITES)}
        if period == periods[-1]:
            shares[HIJACKER] = 0.8
        for country in ("NZ", "AU"):
            sample.add(homepage, period, shares, reports, [("country", country)])
    sample.store()
    text = "".join(f"{site}\n" for site in (*SITES, HIJACKER))
    (folder / "candidates.txt").write_text(text, encoding="utf-8")


def kept_reports(folder: str) -> None:
    """Write a data folder that keeps the reports of some closed days."""
    expires = TODAY + timedelta(days=300)
    kept = Collection("homepage", 1, PARAMS, keep_reports_days=365, expires=expires)
    with closing(open_store(folder)) as store:
        store.save_definition(kept.to_toml(), actor="test")
        for back in range(3):
            add(store, CellKey("homepage", 1, str(TODAY - timedelta(days=20 + back))), back, 25)
