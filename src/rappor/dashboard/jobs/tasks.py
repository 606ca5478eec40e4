"""The tasks of the worker, by name: what the jobs of all pages do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.dashboard.jobs.queue import JobResult, Progress
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection
    from rappor.dashboard.catalogue import Catalogue
    from rappor.dashboard.snapshot import Dimensions
    from rappor.dashboard.trends.period_results import PeriodResult
    from rappor.decoding.result import Decoded

Task = Callable[[dict[str, Any], Progress], JobResult]
_PLACED = 0.4  # the share of the time that placing candidates on bits takes, about
_STEP = 0.75  # roughly the part of the work that is left after each step of the search


def decode_view(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode the reports of a query.

    Args:
        arguments: see `rappor.dashboard.page_state.task_arguments`.
        progress: called with the progress.
    """
    from rappor.dashboard.results.serialization import pack

    work = DecodeWork(arguments, progress)
    counts = work.counts(arguments["periods"], arguments["dimensions"])
    return pack(work.decode(counts), _about(arguments))


def compare_view(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode both sides of a comparison, and test every candidate for a difference."""
    from rappor.aggregate.stored_counts import single
    from rappor.collection.periods import is_older
    from rappor.dashboard.page_query import Selection
    from rappor.dashboard.results.serialization import pack
    from rappor.decoding.compare import compare

    work = DecodeWork(arguments, progress, parts=3)
    shown = (arguments, arguments["against"])
    sides = [work.counts(side["periods"], side["dimensions"]) for side in shown]
    pair = [single(counts) for counts in sides]
    words = [Selection(side["periods"], side["dimensions"]).words for side in shown]
    if is_older(arguments["periods"], arguments["against"]["periods"]):
        pair.reverse()  # a difference is new minus old, whichever is shown
        words.reverse()
    one, other = (work.decode(counts) for counts in sides)
    work.next("comparing")
    compared = compare(
        pair[0],
        pair[1],
        work.looked_for(sides[0]),
        correction=arguments["correction"],
        alpha=arguments["alpha"],
        null_reports=work.collection.null_reports,
        names=(words[0], words[1]),
    )
    return pack(one, _about(arguments), other, compared)


def google_files(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """google/rappor's counts.csv, params.csv and map.csv in a zip file."""
    from rappor.dashboard.results.downloads import zipped

    work = DecodeWork(arguments, progress)
    counts = work.counts(arguments["periods"], arguments["dimensions"])
    return JobResult(_about(arguments), zipped(counts, work.looked_for(counts), work.collection))


def _about(arguments: dict[str, Any]) -> dict[str, Any]:
    """The facts that say what a result was made of."""
    names = ("collection", "version", "periods", "dimensions", "against", "list")
    return {name: arguments.get(name) for name in names}


def catalogue_of(arguments: dict[str, Any]) -> Catalogue:
    """The catalogue of a task: the released counts of the dashboard's day."""
    from rappor.dashboard.catalogue import Catalogue

    data, day = Path(arguments["data"]), arguments.get("today")
    if day is None:
        return Catalogue(data)
    today = date.fromisoformat(day)
    return Catalogue(data, today=lambda: today)


class DecodeWork:
    """A decode: what it reads, and its progress."""

    def __init__(self, arguments: dict[str, Any], progress: Progress, parts: int = 1) -> None:
        self._given, self._progress = arguments, progress
        self._part, self._parts = 0, parts
        self._design: Any = None
        self._catalogue = catalogue_of(arguments)
        self.collection: Collection = self._catalogue.get(
            arguments["collection"], arguments["version"]
        )

    def counts(self, periods: Sequence[str], dimensions: Dimensions) -> list[Counts]:
        """The counts of one side."""
        self._tell("reading counts", 0.0)
        name, version = self.collection.name, self.collection.version
        found = self._catalogue.counts(name, version, periods, dimensions)
        if not found:
            raise DecodeError("there are no reports left in these periods")
        return found

    def looked_for(self, counts: list[Counts]) -> Any:
        """The design of the candidates, made once; or the categories, or the ranges."""
        if self.collection.kind != "string":
            return self.collection.categories or self.collection.ranges
        if self._design is None:
            from rappor.decoding.candidates import Candidates
            from rappor.decoding.design import build_design

            listed = Candidates.of(self._given["strings"])
            params, done = counts[0].params, 0

            def placed(more: int) -> None:
                nonlocal done
                done += more
                self._tell("placing candidates", _PLACED * done / (len(listed) * params.m))

            self._design = build_design(listed, params, self.collection.dialect, placed)
        return self._design

    def decode(self, counts: list[Counts]) -> Decoded:
        """Decode one side."""
        from rappor.decoding.decode import decode

        steps = 0

        def step(text: str) -> None:
            nonlocal steps
            steps += 1
            share = _PLACED + (1 - _PLACED) * (1 - _STEP**steps)
            self._tell(f"fitting ({text})", share)

        looked_for = self.looked_for(counts)
        self._tell("fitting", _PLACED)
        found = decode(
            counts,
            looked_for,
            correction=self._given["correction"],
            alpha=self._given["alpha"],
            method=self._given["method"],
            null_reports=self.collection.null_reports,
            progress=step,
        )
        self.next("putting the table together")
        return found

    def next(self, text: str) -> None:
        """Report that one part is done."""
        self._part = min(self._part + 1, self._parts)
        self._progress(text, self._part / self._parts)

    def _tell(self, text: str, share: float) -> None:
        self._progress(text, (self._part + share) / self._parts)


def trend(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode each period by itself; unchanged periods come from the saved result.

    Args:
        arguments: data, collection, spans (period and version), dimensions, list, strings,
            correction, alpha, method; known: the saved result as (meta, table), or None.
        progress: called with the present period.
    """
    from rappor.dashboard.trends import period_results as kept

    before = arguments.get("known")
    known = kept.unpack(*before) if before else {}
    work = _TrendTask(arguments)
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
        "versions": sorted({result.version for result in found.values()}),
        "decoded": len(fresh),
    }
    return kept.pack([found[period] for period in sorted(found)], about)


def _complete(found: dict[str, PeriodResult], work: _TrendTask, progress: Progress) -> None:
    """Decode periods again that lack a string which another period detected."""
    from rappor.dashboard.trends import period_results as kept

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


class _TrendTask:
    """A trend: what it reads and decodes."""

    def __init__(self, arguments: dict[str, Any]) -> None:

        self._given = arguments
        self._catalogue: Catalogue = catalogue_of(arguments)
        self._designs: dict[Any, Any] = {}
        self._counts: dict[tuple[str, int], list[Counts]] = {}
        for wanted in sorted({version for _, version in arguments["spans"]}):
            periods = [period for period, version in arguments["spans"] if version == wanted]
            read = self._catalogue.counts_by_period(
                arguments["collection"], wanted, periods, arguments["dimensions"]
            )
            self._counts |= {(period, wanted): counts for period, counts in read.items()}

    @property
    def size(self) -> int:
        """The number of strings that are tested; 0 if the kind has declared values."""
        return len(self._given["strings"] or ())

    def counts(self, period: str, version: int) -> list[Counts] | None:
        """The counts of one period; None if they are gone."""
        return self._counts.get((period, version))

    def about(self, version: int) -> str:
        """How the counts of a version are decoded, as a text for the digest."""
        names = ("list", "list_digest", "correction", "alpha", "method")
        return json.dumps([version, *(self._given[name] for name in names)])

    def decode(self, counts: list[Counts], version: int) -> Decoded:
        """Decode one period."""
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
        if key not in self._designs:  # versions that place strings the same way share it
            self._designs[key] = build_design(self._given["strings"], params, collection.dialect)
        return self._designs[key]


def diagnose(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode, and check the fit: checks, cohort sizes, and the cells of cohorts and bits."""
    from rappor.dashboard.diagnostics.serialization import pack
    from rappor.decoding.diagnosis import bit_table
    from rappor.decoding.diagnosis import diagnose as diagnosis_of

    work = DecodeWork(arguments, progress)
    counts = work.counts(arguments["periods"], arguments["dimensions"])
    table = work.decode(counts)
    names = ("collection", "version", "periods", "dimensions", "list")
    about = {name: arguments[name] for name in names}
    about["params"] = counts[0].params.digest
    return pack(table, diagnosis_of(table), bit_table(table, counts), about)


def explain(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """What a list of candidates explains, compared with the present list.

    Args:
        arguments: those of a decode with the new list, and `before`: the strings of the present
            list, or None.
        progress: called with the progress.
    """
    lists = {"before": arguments["before"], "after": arguments["strings"]}
    found: dict[str, Any] = {}
    detected: dict[str, set[str]] = {"before": set()}
    for number, (name, strings) in enumerate(lists.items()):
        if strings is None:
            found[name] = None
            continue
        part = _half(progress, number, arguments["before"] is not None)
        work = DecodeWork({**arguments, "strings": strings}, part)
        counts = work.counts(arguments["periods"], arguments["dimensions"])
        table = work.decode(counts)
        detected[name] = {row.string for row in table.detected}
        mass = table.undetected_mass
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
    """The progress of one of two decodes."""

    def tell(text: str, share: float | None = None) -> None:
        words = f"{'new' if number else 'present'} list: {text}"
        progress(words, share if share is None or not both else (number + share) / 2)

    return tell


def associate_fields(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Associate two fields of a tuple.

    Args:
        arguments: those of a decode, and `fields`: the names of the two.
        progress: called with the progress.
    """
    from rappor.dashboard.associations.serialization import pack
    from rappor.decoding.associate import associate
    from rappor.decoding.field_lists import field_lists

    work = DecodeWork(arguments, progress)
    counts = work.counts(arguments["periods"], arguments["dimensions"])
    collection = work.collection
    views, strings = collection.tuple_views, arguments["strings"]
    if views is None:
        raise DecodeError(f"{collection.name} is of kind {collection.kind}: it has no fields")
    listed = {} if strings is None else field_lists(views, strings)
    progress("fitting the table", None)
    found = associate(
        counts,
        {name: values for name, values in listed.items() if name in arguments["fields"]},
        views=views,
        fields=arguments["fields"],
        null_reports=collection.null_reports,
        correction=arguments["correction"],
        alpha=arguments["alpha"],
    )
    return pack(found, _about(arguments))


TASKS: dict[str, Task] = {
    "decode": decode_view,
    "compare": compare_view,
    "google": google_files,
    "trend": trend,
    "diagnose": diagnose,
    "explain": explain,
    "associate": associate_fields,
}
