"""The work of one unit, in a worker process: decode, write the files, publish, then the journal."""

from __future__ import annotations

import json
import math
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor import files
from rappor.decoding.candidates import Candidates
from rappor.decoding.design import Design, build_design
from rappor.decoding.exports import columns, csv_lines, document, write_parquet
from rappor.decoding.result import Decoded
from rappor.runs.journal import UnitResult, digest_of, write_entry
from rappor.runs.units import DecodeUnit, OutputOptions, unit_key
from rappor.stored_view import StoredSource, StoredView
from rappor.view_results import decode_view
from rappor.workspace import Workspace

if TYPE_CHECKING:
    from rappor.params import Params


@dataclass(slots=True)
class UnitWorker:
    """Does units one after the other; keeps the last collection and the last list in memory.

    Attributes:
        options: what to write.
    """

    options: OutputOptions
    _source: tuple[tuple[str, int], StoredSource] | None = None
    _design: tuple[Any, Design] | None = None

    def work(self, unit: DecodeUnit) -> UnitResult:
        """Decode a unit and write everything about it; returns its entry in the journal."""
        began = time.monotonic()
        view = unit.view(self._stored(unit))
        found = decode_view(
            view,
            self._placed(unit, view),
            correction=unit.job.correction,
            alpha=unit.job.alpha,
            method=unit.job.method,
        )
        written = self._write(unit, view, found)
        published = False
        if self.options.dashboard and view.on_pages:  # pages show no exact counts
            self._publish(unit, view, found)
            published = True
        share = found.undetected_mass.proportion
        entry = UnitResult(
            name=unit.name,
            key=unit_key(unit, view, self.options),
            job=unit.job.name,
            collection=unit.collection,
            version=unit.version,
            periods=view.periods,
            dimensions=dict(unit.dimensions),
            reports=found.reports,
            candidates=found.candidates,
            detected=len(found.detected),
            undetected_mass=share if math.isfinite(share) else None,
            failed_checks=tuple(check.code for check in found.checks if not check.ok),
            files=written,
            published=published,
            seconds=round(time.monotonic() - began, 3),
            detected_strings=tuple(row.string for row in found.detected),
        )
        write_entry(self.options.output, entry)
        return entry

    def _stored(self, unit: DecodeUnit) -> StoredSource:
        key = (unit.collection, unit.version)
        if self._source is None or self._source[0] != key:
            self._source = (key, Workspace(self.options.data).source(*key))
        return self._source[1]

    def _placed(self, unit: DecodeUnit, view: StoredView) -> Design | None:
        if unit.candidates is None:
            return None
        params: Params = view.collection.params
        key = (unit.candidates.digest, params.k, params.h, params.m, view.collection.dialect)
        if self._design is None or self._design[0] != key:
            listed = Candidates.of(unit.candidates.read())
            self._design = (key, build_design(listed, params, view.collection.dialect))
        return self._design[1]

    def _write(self, unit: DecodeUnit, view: StoredView, found: Decoded) -> dict[str, str]:
        """Write the files of a result; returns their digests by path in the folder."""
        options, written = self.options, {}
        for ending in options.formats:
            name = f"{unit.name}.{ending}"
            path = options.output / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with files.replacing(path) as draft:
                _write_file(draft, ending, view, found, options.all_rows)
            written[name] = digest_of(path) or ""
        return written

    def _publish(self, unit: DecodeUnit, view: StoredView, found: Decoded) -> None:
        from rappor.dashboard.settings import STATE_FILE
        from rappor.dashboard.state import DashboardState
        from rappor.runs.publish import publish

        with closing(DashboardState(self.options.data / STATE_FILE)) as state:
            publish(state, unit, view, found)


def _write_file(path: Path, ending: str, view: StoredView, found: Decoded, every: bool) -> None:
    match ending:
        case "json":
            about = {
                "collection": view.collection.name,
                "version": view.collection.version,
                "periods": list(view.periods),
                "dimensions": dict(view.dimensions),
            }
            text = json.dumps(about | document(found, every=every), indent=2, allow_nan=False)
            path.write_text(text + "\n", encoding="ascii")
        case "parquet":
            write_parquet(columns(found, every), path)
        case _:
            with path.open("w", encoding="utf-8", newline="") as file:
                file.writelines(csv_lines(columns(found, every)))
