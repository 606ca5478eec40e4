"""The tasks behind the Results page: decode, compare, and google/rappor's files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.dashboard.jobs.job import JobResult, Progress
from rappor.errors import DecodeError

if TYPE_CHECKING:
    from rappor.aggregate.counts import Counts
    from rappor.collection import Collection
    from rappor.dashboard.catalogue import Catalogue
    from rappor.decoding.result import Decoded

_PLACED = 0.4  # of the time, about, goes into placing candidates on bits
_STEP = 0.75  # what a step of the search leaves to be done, about


def decode_view(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode a view.

    Args:
        arguments: `arguments_of` a view.
        progress: told how far it is.
    """
    from rappor.dashboard.results.kept import pack

    work = Work(arguments, progress)
    counts = work.counts(arguments["periods"], arguments["dimensions"])
    return pack(work.decode(counts), _about(arguments))


def compare_view(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """Decode both sides of a view, and test every candidate for a difference."""
    from rappor.dashboard.results.kept import pack
    from rappor.decoding.compare import compare

    work = Work(arguments, progress, parts=3)
    sides = [
        work.counts(side["periods"], side["dimensions"])
        for side in (arguments, arguments["against"])
    ]
    for counts in sides:
        if len(counts) > 1:
            raise DecodeError(
                "these periods were made with different p and q: compare periods with one of them"
            )
    one, other = (work.decode(counts) for counts in sides)
    work.next("comparing")
    compared = compare(
        sides[0][0],
        sides[1][0],
        work.looked_for(sides[0]),
        correction=arguments["correction"],
        alpha=arguments["alpha"],
        null_reports=work.collection.null_reports,
    )
    return pack(one, _about(arguments), other, compared)


def google_files(arguments: dict[str, Any], progress: Progress) -> JobResult:
    """counts.csv, params.csv and map.csv of a view, in a zip file."""
    from rappor.dashboard.results.google import zipped

    work = Work(arguments, progress)
    counts = work.counts(arguments["periods"], arguments["dimensions"])
    return JobResult(_about(arguments), zipped(counts, work.looked_for(counts), work.collection))


def _about(arguments: dict[str, Any]) -> dict[str, Any]:
    """What a result is of."""
    names = ("collection", "version", "periods", "dimensions", "against", "list")
    return {name: arguments.get(name) for name in names}


def catalogue_of(arguments: dict[str, Any]) -> Catalogue:
    """What a task reads: the released counts of the day that the dashboard goes by."""
    from rappor.dashboard.catalogue import Catalogue

    data, day = Path(arguments["data"]), arguments.get("today")
    if day is None:
        return Catalogue(data)
    today = date.fromisoformat(day)
    return Catalogue(data, today=lambda: today)


class Work:
    """One task: what it reads, and how far it is."""

    def __init__(self, arguments: dict[str, Any], progress: Progress, parts: int = 1) -> None:
        self._given, self._progress = arguments, progress
        self._part, self._parts = 0, parts
        self._design: Any = None
        self._catalogue = catalogue_of(arguments)
        self.collection: Collection = self._catalogue.get(
            arguments["collection"], arguments["version"]
        )

    def counts(self, periods: Sequence[str], dimensions: Sequence[Sequence[str]]) -> list[Counts]:
        """The counts of one side."""
        self._tell("reading counts", 0.0)
        asked = {each[0]: each[1] for each in dimensions}
        name, version = self.collection.name, self.collection.version
        found = self._catalogue.counts(name, version, list(periods), asked)
        if not found:
            raise DecodeError("there are no reports left in these periods")
        return found

    def looked_for(self, counts: list[Counts]) -> Any:
        """The candidates on their bits, made once; or the categories, or the ranges."""
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
        """One side."""
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
        """One part is done."""
        self._part = min(self._part + 1, self._parts)
        self._progress(text, self._part / self._parts)

    def _tell(self, text: str, share: float) -> None:
        self._progress(text, (self._part + share) / self._parts)
