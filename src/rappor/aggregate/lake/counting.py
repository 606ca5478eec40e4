"""Counting a lake again from nothing: the counts of each cell, as the store has them.

A file is read whole, and its checksum, definition and numbers are compared with the manifest before
a single report of it is counted. What does not agree is named and not used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from collections.abc import Collection as AnyOf
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np

from rappor.aggregate.kernel import count
from rappor.aggregate.lake.manifest import LakeFault, LakeFile, Manifest, read_manifest
from rappor.aggregate.lake.place import LakePlace
from rappor.aggregate.lake.rows import ForeignFile, LakeRow, NotParquet, matrix, read_rows
from rappor.collection import Collection
from rappor.errors import DecodeError, WireError
from rappor.params import Params
from rappor.store import CellKey, StoredCounts
from rappor.typing import IntArray


@dataclass(frozen=True, slots=True)
class LakeCounts:
    """The counts of a lake.

    Attributes:
        cells: the counts of each cell, sorted, as `Store.counts` gives them.
        collections: the definitions by name and version.
        faults: what was not used, and why.
    """

    cells: tuple[StoredCounts, ...]
    collections: dict[tuple[str, int], Collection] = field(repr=False)
    faults: tuple[LakeFault, ...] = ()

    @property
    def reports(self) -> int:
        """The number of reports."""
        return sum(cell.reports for cell in self.cells)


def count_lake(
    place: LakePlace,
    *,
    collection: str | None = None,
    version: int | None = None,
    periods: AnyOf[str] | None = None,
    progress: Callable[[int], object] = lambda _: None,
) -> LakeCounts:
    """Count the reports of a lake.

    Args:
        place: the lake.
        collection: only this one.
        version: only this one.
        periods: only these.
        progress: called with the number of bytes of each file that was counted.
    """
    manifest = read_manifest(place)
    chosen = choose(manifest, collection, version, periods)
    faults = list(manifest.faults)
    sums: dict[CellKey, tuple[str, IntArray, IntArray]] = {}
    definitions: dict[tuple[str, int], Collection] = {}
    for file in chosen:
        try:
            definition, counted = count_file(place, file)
        except DecodeError as error:
            faults.append(fault_of(file, error))
            continue
        definitions[definition.name, definition.version] = definition
        for cell, (totals, ones) in counted.items():
            if cell in sums:
                totals, ones = totals + sums[cell][1], ones + sums[cell][2]
            sums[cell] = (file.params_digest, totals, ones)
        progress(file.size)
    cells = tuple(StoredCounts(cell, *sums[cell]) for cell in sorted(sums))
    return LakeCounts(cells, definitions, tuple(faults))


def choose(
    manifest: Manifest,
    collection: str | None = None,
    version: int | None = None,
    periods: AnyOf[str] | None = None,
) -> list[LakeFile]:
    """The files of a collection, a version and some periods; None means all."""
    return [
        file
        for file in manifest.files.values()
        if collection in (None, file.of[0])
        and version in (None, file.of[1])
        and (periods is None or file.of[2] in periods)
    ]


class FileMissing(DecodeError):
    """The manifest has a file that is not there."""


class FileDamaged(DecodeError):
    """A file has other bytes than were sealed."""


def fault_of(file: LakeFile, error: DecodeError) -> LakeFault:
    """A fault of a file that cannot be used."""
    codes = {FileMissing: "missing", FileDamaged: "damaged", ForeignFile: "foreign"}
    code = codes.get(type(error), "damaged")
    return LakeFault(file.path, code, f"{error}; it is not used")


def read_file(place: LakePlace, file: LakeFile) -> tuple[Collection, list[LakeRow]]:
    """The definition and the rows of a file whose bytes are those that were sealed.

    Raises:
        FileMissing: there is no such file.
        FileDamaged: its bytes are others.
        ForeignFile: another program wrote it.
        DecodeError: its content contradicts the manifest.
    """
    data = place.read(file.path)
    if data is None:
        raise FileMissing("the manifest has this file, and it is not there")
    if len(data) != file.size or hashlib.sha256(data).hexdigest() != file.sha256:
        with suppress(NotParquet):
            read_rows(data)  # ForeignFile if another program wrote it
        if len(data) != file.size:
            raise FileDamaged(f"it has {len(data):,} bytes, and {file.size:,} were sealed")
        raise FileDamaged("its checksum is not the one that was sealed")
    definition, rows = read_rows(data)
    if len(rows) != file.rows:
        raise DecodeError(f"it has {len(rows)} rows, and the manifest says {file.rows}")
    return definition, rows


def count_file(
    place: LakePlace, file: LakeFile
) -> tuple[Collection, dict[CellKey, tuple[IntArray, IntArray]]]:
    """The definition, and N_j and c_ij of each cell of a file; raises as `read_file`."""
    definition, rows = read_file(place, file)
    params = definition.params_for(file.of[2])
    if params.digest != file.params_digest:
        raise DecodeError("its definition must have the parameters that the manifest says")
    counted = count_rows(rows, params)
    reports = tuple(sorted((cell, int(totals.sum())) for cell, (totals, _) in counted.items()))
    if reports != file.cells:
        raise DecodeError("it has other numbers of reports than the manifest says")
    return definition, counted


def count_rows(rows: list[LakeRow], params: Params) -> dict[CellKey, tuple[IntArray, IntArray]]:
    """N_j, of shape (m,), and c_ij, of shape (m, k), of each cell."""
    counted: dict[CellKey, tuple[IntArray, IntArray]] = {}
    for row in rows:
        try:
            part = count(matrix(row, params.k), row.cohort, params)
        except WireError as error:
            raise DecodeError(f"a row of {row.cell}: {error}") from None
        if row.cell not in counted:
            empty = np.zeros((params.m, params.k), np.int64)
            counted[row.cell] = (empty[:, 0].copy(), empty)
        totals, ones = counted[row.cell]
        totals += part.totals
        ones += part.ones
    return counted
