"""Files of reports on their way into a store: read as `rappor aggregate` reads them (§4)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.aggregate.file_parts import SHOWN, FilePart
from rappor.aggregate.kernel import count
from rappor.aggregate.report_files import Malformed, reader_of
from rappor.collection import Collection
from rappor.params import Params
from rappor.store import CellKey, Fold


@dataclass(slots=True)
class ImportedReports:
    """A file of reports on its way into a store.

    Attributes:
        path: the file.
        collection: the collection of its reports.
        cell: the cell that they are added to.
        malformed: how many lines are not reports; complete when `folds` has ended.
        examples: the first 20 of them.
    """

    path: str | PathLike[str]
    collection: Collection
    cell: CellKey
    malformed: int = 0
    examples: list[Malformed] = field(default_factory=list)

    def digest(self) -> bytes:
        """A digest of the file's bytes and the collection, so that a file is imported only once."""
        state = hashlib.blake2b(digest_size=32, person=b"rappor-import")
        state.update(f"{self.collection.name}\n{self.collection.version}\n".encode())
        with Path(self.path).expanduser().open("rb") as file:
            while piece := file.read(2**20):
                state.update(piece)
        return state.digest()

    def folds(self) -> Iterator[Fold]:
        """The reports: in pieces if the collection keeps them, else one sum for each cohort."""
        params = self.collection.params_for(self.cell.period)
        parts = (
            (part, count(part.packed, part.cohorts, params))
            for part in self._parts(params)
            if len(part.cohorts)
        )
        if self.collection.keep_reports_days:
            for part, counts in parts:
                yield from self._fold(counts, part)
        else:
            yield from self._fold(sum((counts for _, counts in parts), Counts.zero(params)))

    def _parts(self, params: Params) -> Iterator[FilePart]:
        path, reader = reader_of(self.path)
        lines = 0
        for job in reader(path, params):
            part = job.run()
            room = SHOWN - len(self.examples)
            self.examples += [
                Malformed(str(self.path), lines + line, reason)
                for line, reason in part.wrong.first[:room]
            ]
            self.malformed += part.wrong.count
            lines += part.lines
            yield part

    def _fold(self, counts: Counts, part: FilePart | None = None) -> Iterator[Fold]:
        for cohort in np.flatnonzero(counts.totals).tolist():
            kept = None if part is None else part.packed[part.cohorts == cohort].tobytes()
            total = int(counts.totals[cohort])
            digest = counts.params.digest
            yield Fold(self.cell, cohort, digest, total, counts.ones[cohort], kept)
