"""What the pages of docs/ take for granted: a data folder with some weeks or days of reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from rappor.demo.definitions import definitions
from support.dashboard import TODAY, Sample

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
