"""Counts and kept reports of a store as files, with a record of who exported them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from rappor.aggregate.counts import Counts
from rappor.aggregate.stored_counts import sum_cells, within
from rappor.collection import Collection
from rappor.errors import DecodeError, ParamsError
from rappor.files import replacing
from rappor.store import Store

ENDINGS = {"counts": (".csv", ".npz", ".parquet"), "reports": (".csv", ".parquet")}


def check_export(path: Path, *, reports: bool) -> None:
    """ParamsError if the name of the file does not say a known format."""
    what = "reports" if reports else "counts"
    if path.suffix.lower() not in ENDINGS[what]:
        raise ParamsError(f"{path}: a file of {what} must end in {', '.join(ENDINGS[what])}")


def export_title(collection: Collection, periods: Sequence[str], *, reports: bool) -> str:
    """What is exported, in words."""
    what = "reports" if reports else "counts"
    name = f"{collection.name} v{collection.version}"
    return f"{what} of {name}, {periods[0]} to {periods[-1]}"


def export(
    store: Store,
    collection: Collection,
    periods: Sequence[str],
    path: Path,
    *,
    reports: bool,
    actor: str,
) -> int:
    """Write counts, or the kept reports in random order; return the number of reports."""
    title = export_title(collection, periods, reports=reports)
    # Recorded first: an export without a record is worse than a record without an export.
    store.audit(actor, "export", f"{title}, to {path.name}")
    if reports:
        return _write_reports(store, collection, periods, path)
    counts = _counts(store, collection, periods)
    _write_counts(counts, path)
    return counts.reports


def export_periods(
    store: Store, collection: Collection, first: date | None, last: date | None
) -> list[str]:
    """The stored periods between two days; DecodeError if there are none."""
    periods = {
        summary.cell.period
        for summary in store.cells()
        if (summary.cell.collection, summary.cell.version) == (collection.name, collection.version)
        and within(summary.cell.period, first, last)
    }
    if not periods:
        raise DecodeError(
            f"{collection.name} v{collection.version} has no reports in the store"
            + ("" if first is None and last is None else " in these periods")
        )
    return sorted(periods)


def _counts(store: Store, collection: Collection, periods: Sequence[str]) -> Counts:
    cells = store.counts(collection.name, collection.version, periods=periods)
    sums = sum_cells(cells, collection)
    if len(sums) > 1:
        raise DecodeError(
            "the reports of these periods have different p and q, so their counts cannot be "
            "summed: choose periods with one p and q"
        )
    return sums[0]


def _write_counts(counts: Counts, path: Path) -> None:
    with replacing(path.resolve(), private=True) as draft:
        match path.suffix.lower():
            case ".csv":
                counts.to_csv(draft)
            case ".npz":
                counts.to_npz(draft)
            case _:
                counts.to_parquet(draft)


def _write_reports(store: Store, collection: Collection, periods: Sequence[str], path: Path) -> int:
    from rappor.aggregate.write_reports import write_csv, write_parquet

    if not collection.keep_reports_days:
        raise DecodeError(f"{collection.name} keeps counts only: it has no reports to export")
    found = store.reports(collection.name, collection.version, periods=periods)
    kept = ((cohort, data) for _, cohort, data in found)
    with replacing(path.resolve(), private=True) as draft:
        write = write_parquet if path.suffix.lower() == ".parquet" else write_csv
        return write(draft, kept, collection.params.k)
