"""The tasks behind Trends, Diagnostics and Candidates: each period, the residuals, two lists."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rappor.dashboard.jobs.job import JobResult, Progress
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection
    from rappor.dashboard.analysis.trend import PeriodResult
    from rappor.dashboard.catalogue import Catalogue
    from rappor.decoding.result import Decoded


def trend(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode each period by itself; those that did not change since the last time are taken over.

    Args:
        arguments: data, collection, spans (period and version), dimensions, list, strings,
            correction, alpha, method; known: what was kept before, as (meta, table), or None.
        progress: told which period it is at.
    """
    from rappor.dashboard.analysis import trend as kept

    before = arguments.get("known")
    known = kept.unpack(*before) if before else {}
    work = _Periods(arguments)
    found = dict(known)
    spans = arguments["spans"]
    fresh: set[str] = set()
    for number, (period, version) in enumerate(spans):
        progress(f"{period}, {number + 1} of {len(spans)}", number / len(spans))
        counts = work.counts(period, version)
        if counts is None:
            found.pop(period, None)
            continue
        digest = kept.digest_of(counts, work.about(version))
        if period not in known or known[period].digest != digest:
            decoded = work.decode(counts, version)
            found[period] = kept.summary_of(period, version, digest, decoded)
            fresh.add(period)
    if not found:
        raise DecodeError("there are no reports left in these periods")
    _complete(found, work, progress)
    about = {
        "collection": arguments["collection"],
        "dimensions": arguments["dimensions"],
        "list": arguments["list"],
        "versions": sorted({each.version for each in found.values()}),
        "decoded": len(fresh),
    }
    return kept.pack([found[period] for period in sorted(found)], about)


def _complete(found: dict[str, PeriodResult], work: _Periods, progress: Progress) -> None:
    """Decode periods again that did not keep a string which another period detected."""
    from rappor.dashboard.analysis import trend as kept

    wanted = kept.largest(found.values())
    for period, result in list(found.items()):
        missing = [name for name in wanted if name not in result.rows]
        if not missing or len(result.rows) >= work.size:
            continue
        counts = work.counts(period, result.version)
        if counts is not None:
            progress(f"{period}, strings that were detected later", None)
            decoded = work.decode(counts, result.version)
            args = (period, result.version, result.digest, decoded)
            found[period] = kept.summary_of(*args, also=wanted)


class _Periods:
    """What one trend reads and decodes."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        from rappor.dashboard.jobs.decoding import catalogue_of

        self._given = arguments
        self._catalogue: Catalogue = catalogue_of(arguments)
        self._asked = dict(arguments["dimensions"])
        self._designs: dict[Any, Any] = {}
        self._counts: dict[tuple[str, int], list[Counts]] = {}
        for wanted in sorted({version for _, version in arguments["spans"]}):
            periods = [period for period, version in arguments["spans"] if version == wanted]
            read = self._catalogue.counts_by_period(
                arguments["collection"], wanted, periods, self._asked
            )
            self._counts |= {(period, wanted): counts for period, counts in read.items()}

    @property
    def size(self) -> int:
        """How many strings are looked for; 0 where a kind has its own."""
        return len(self._given["strings"] or ())

    def counts(self, period: str, version: int) -> list[Counts] | None:
        """The counts of one period; None where there are none any more."""
        return self._counts.get((period, version))

    def about(self, version: int) -> str:
        """How counts of a version are decoded."""
        names = ("list", "list_digest", "correction", "alpha", "method")
        return json.dumps([version, *(self._given[name] for name in names)])

    def decode(self, counts: list[Counts], version: int) -> Decoded:
        """One period."""
        from rappor.decoding.decode import decode

        given = self._given
        collection = self._catalogue.get(given["collection"], version)
        return decode(
            counts,
            self._looked_for(collection, counts),
            null_reports=collection.null_reports,
            correction=given["correction"],
            alpha=given["alpha"],
            method=given["method"],
        )

    def _looked_for(self, collection: Collection, counts: list[Counts]) -> Any:
        if collection.kind != "string":
            return collection.categories or collection.ranges
        from rappor.decoding.design import build_design

        params = counts[0].params
        key = (params.k, params.h, params.m, collection.dialect)
        if key not in self._designs:  # versions that place strings alike share it
            self._designs[key] = build_design(self._given["strings"], params, collection.dialect)
        return self._designs[key]


def diagnose(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode a view and look it over: verdicts, balance, and the cells of cohort and bit."""
    from rappor.dashboard.analysis.diagnosis import pack
    from rappor.dashboard.jobs.decoding import Work
    from rappor.decoding.diagnosis import bit_table
    from rappor.decoding.diagnosis import diagnose as diagnosis_of

    work = Work(arguments, progress)
    counts = work.counts(arguments["periods"], arguments["dimensions"])
    found = work.decode(counts)
    names = ("collection", "version", "periods", "dimensions", "list")
    about = {name: arguments[name] for name in names}
    about["params"] = counts[0].params.digest
    return pack(found, diagnosis_of(found), bit_table(found, counts), about)


def explain(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """What a list of candidates explains, beside what the one before it does.

    Args:
        arguments: those of a decode with the new list, and `before`: the strings of the old one,
            or None.
        progress: told how far it is.
    """
    from rappor.dashboard.jobs.decoding import Work

    lists = {"before": arguments["before"], "after": arguments["strings"]}
    found: dict[str, Any] = {}
    detected: dict[str, set[str]] = {"before": set()}
    for number, (name, strings) in enumerate(lists.items()):
        if strings is None:
            found[name] = None
            continue
        part = _half(progress, number, arguments["before"] is not None)
        work = Work({**arguments, "strings": strings}, part)
        counts = work.counts(arguments["periods"], arguments["dimensions"])
        table = work.decode(counts)
        detected[name] = {row.string for row in table.detected}
        mass = table.unlisted
        found[name] = {
            "candidates": table.candidates,
            "reports": table.reports,
            "detected": len(detected[name]),
            "explained": [1 - mass.proportion, 1 - mass.prop_high_95, 1 - mass.prop_low_95],
            "new": [
                [row.string, row.proportion, row.prop_low_95, row.prop_high_95]
                for row in table.detected
                if row.string not in detected["before"]
            ][:50],
        }
    about = {name: arguments[name] for name in ("collection", "version", "periods", "dimensions")}
    return JobResult(about | found)


def _half(progress: Progress, number: int, both: bool) -> Progress:
    """Progress of one of two decodes."""

    def tell(text: str, share: float | None = None) -> None:
        words = f"{'new' if number else 'present'} list: {text}"
        progress(words, share if share is None or not both else (number + share) / 2)

    return tell
