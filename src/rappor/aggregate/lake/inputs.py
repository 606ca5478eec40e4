"""A lake as an input of `rappor aggregate`: one collection of it, counted here or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.aggregate.file_parts import MalformedLines
from rappor.aggregate.lake.counting import count_file, fault_of, read_file
from rappor.aggregate.lake.manifest import LakeFault, LakeFile, read_manifest
from rappor.aggregate.lake.place import LakePlace
from rappor.aggregate.report_files import CountedPart
from rappor.aggregate.stored_counts import within
from rappor.checks import show
from rappor.collection import Collection
from rappor.errors import DecodeError
from rappor.mechanism.kinds import HASHED
from rappor.params import Params

_THREADS = 4
Days = tuple[date | None, date | None]


@dataclass(frozen=True, slots=True)
class LakeInput:
    """The files of a lake that are counted together.

    Attributes:
        where: the lake, as it was named.
        files: the files.
        collection: the definition.
        params: the parameters of all their reports.
        faults: what of the manifest cannot be used.
    """

    where: str
    files: tuple[LakeFile, ...] = field(repr=False)
    collection: Collection
    params: Params
    faults: tuple[LakeFault, ...] = ()

    @property
    def about(self) -> dict[str, Any]:
        """What the counts say about themselves."""
        periods = len({file.of[2] for file in self.files})
        each = self.collection.reports_per_period
        return {
            "kind": self.collection.kind,
            "dialect": self.collection.dialect if self.collection.kind in HASHED else None,
            "collection": self.collection.name,
            "version": self.collection.version,
            "reports_per_client": 1 if self.collection.one_time else each * periods,
        }


@dataclass(frozen=True, slots=True)
class CountedLake:
    """The counts of a lake, and what was not used."""

    counts: Counts
    faults: tuple[LakeFault, ...]


def is_lake(name: str) -> bool:
    """Whether a name is that of a lake, or of an object store that may hold one.

    >>> is_lake("reports.parquet"), is_lake("s3://bucket/lake"), is_lake("s3://bucket/a.csv")
    (False, True, False)
    """
    from pathlib import Path

    from rappor.aggregate.lake.manifest import FOLDER

    endings = (".csv", ".jsonl", ".ndjson", ".gz", ".parquet")
    if "://" in name:
        return not name.partition("?")[0].lower().endswith(endings)
    return (Path(name).expanduser() / FOLDER).is_dir()


def lake_input(
    where: str, collection: str | None, version: int | None, days: Days = (None, None)
) -> LakeInput:
    """Choose what to count.

    Args:
        where: the lake.
        collection: its name; None if the lake has only one.
        version: its version; None: the newest in the lake.
        days: only periods between these.

    Raises:
        DecodeError: there is no such collection, or its reports cannot be added up.
    """
    place = LakePlace(where)
    manifest = read_manifest(place)
    names = sorted({file.of[0] for file in manifest.files.values()})
    if collection is None and len(names) == 1:
        collection = names[0]
    if collection is None or collection not in names:
        wrong = "" if collection is None else f" no {show(collection)}, but"
        raise DecodeError(
            f"{place} has{wrong} {len(names)} collections: {', '.join(names)}; name one of them"
        )
    files = [file for file in manifest.files.values() if file.of[0] == collection]
    newest = max(file.of[1] for file in files) if version is None else version
    files = [file for file in files if file.of[1] == newest and within(file.of[2], *days)]
    if not files:
        raise DecodeError(
            f"{place} has no reports of {collection} v{newest} in these periods; choose others: "
            "`rappor lake ls`"
        )
    if len({file.params_digest for file in files}) > 1:
        raise DecodeError(
            "the reports of these periods have different p and q, so their counts cannot be "
            "summed: choose periods with one p and q"
        )
    definition = _definition(place, files)
    params = definition.params_for(files[0].of[2])
    return LakeInput(where, tuple(files), definition, params, manifest.faults)


def _definition(place: LakePlace, files: list[LakeFile]) -> Collection:
    """The definition in the first file that can be read."""
    for file in sorted(files, key=lambda file: file.size):
        try:
            return read_file(place, file)[0]
        except DecodeError:
            continue
    raise DecodeError(
        f"{place}: none of its {len(files)} files can be used; see `rappor lake verify`"
    )


def count_part(where: str, file: LakeFile, params: Params) -> CountedPart:
    """The counts of one file; if it cannot be used, none, and why. For any engine."""
    wrong = MalformedLines()
    totals, ones = np.zeros(params.m, np.int64), np.zeros((params.m, params.k), np.int64)
    try:
        _, cells = count_file(LakePlace(where), file)
    except DecodeError as error:
        fault = fault_of(file, error)
        wrong.add(0, f"{fault.code}\n{fault.text}")
        return CountedPart(totals, ones, 0, wrong)
    for more_totals, more_ones in cells.values():
        totals += more_totals
        ones += more_ones
    return CountedPart(totals, ones, file.rows, wrong)


def count_here(chosen: LakeInput, progress: Callable[[int], object]) -> CountedLake:
    """Count in threads of this process."""

    def parts() -> Iterator[CountedPart]:
        with ThreadPoolExecutor(_THREADS, "rappor-lake") as pool:
            done = pool.map(
                lambda file: count_part(chosen.where, file, chosen.params), chosen.files
            )
            for file, part in zip(chosen.files, done, strict=True):
                progress(file.size)
                yield part

    totals = np.zeros(chosen.params.m, np.int64)
    ones = np.zeros((chosen.params.m, chosen.params.k), np.int64)
    listed = []
    for part in parts():
        totals += part.totals
        ones += part.ones
        listed.append(part)
    return counted(chosen, totals, ones, listed)


def counted(chosen: LakeInput, totals: Any, ones: Any, parts: list[CountedPart]) -> CountedLake:
    """The counts of all files, and the faults that their parts tell."""
    faults = list(chosen.faults)
    for file, part in zip(chosen.files, parts, strict=True):
        for _, told in part.wrong.first:
            code, _, text = told.partition("\n")
            faults.append(LakeFault(file.path, code, text))
    return CountedLake(Counts(chosen.params, totals, ones, **chosen.about), tuple(faults))


def count_on_spark(chosen: LakeInput, spark: Any) -> CountedLake:
    """Count on a Spark session; executors verify each file before they count it."""
    from rappor.aggregate.spark import map_sum

    where, params = chosen.where, chosen.params

    def work(file: LakeFile) -> CountedPart:
        return count_part(where, file, params)

    return counted(chosen, *map_sum(spark, chosen.files, work, params))
