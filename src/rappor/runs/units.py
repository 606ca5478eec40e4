"""Units: a run is cut into decodes of one view each, with a key of everything that shapes a result.

A unit whose key and files are those of an earlier run is not decoded again. So a run that was
killed goes on where it stopped, and a nightly run decodes only what changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote

from rappor._version import __version__
from rappor.checks import show
from rappor.decoding.options import DECODER_VERSION, check_decoded
from rappor.errors import DecodeError, ParamsError, RapporError
from rappor.runs.candidate_sources import CandidateSnapshot, SnapshotFolder, with_version
from rappor.runs.jobs_file import LATEST, Format, JobsFile, JobSpec
from rappor.store.cell_key import key_bytes
from rappor.stored_view import ALL, StoredSource, StoredView
from rappor.workspace import Workspace


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """What a run writes of each result.

    Attributes:
        data: the data folder.
        output: the folder of results.
        formats: the files of each result.
        all_rows: write candidates that were not detected too.
        dashboard: publish results to the dashboard of the data folder.
    """

    data: Path
    output: Path
    formats: tuple[Format, ...]
    all_rows: bool
    dashboard: bool


@dataclass(frozen=True, slots=True)
class DecodeUnit:
    """One decode of a run.

    Attributes:
        job: the job that it belongs to.
        collection: the name of the collection.
        version: its version.
        periods: the periods, which are added up.
        dimensions: only reports with these values, as sorted pairs.
        candidates: the strings to look for; None for kinds that declare their values.
        key: a digest of everything that shapes the result.
    """

    job: JobSpec
    collection: str
    version: int
    periods: tuple[str, ...]
    dimensions: tuple[tuple[str, str], ...] = ()
    candidates: CandidateSnapshot | None = field(default=None, repr=False)
    key: str = field(default="", repr=False)

    @property
    def where(self) -> str:
        """The periods and dimensions, as a file's name without an ending.

        >>> job = JobSpec("theme", ("theme",))
        >>> DecodeUnit(job, "theme", 1, ("2026-W46", "2026-W47"), (("country", "NZ"),)).where
        '2026-W46..2026-W47,country=NZ'
        """
        ends = "..".join(dict.fromkeys((self.periods[0], self.periods[-1])))
        chosen = (f"{quote(name, '')}={quote(value, '')}" for name, value in self.dimensions)
        return ",".join([ends, *chosen])

    @property
    def name(self) -> str:
        """Its name in reports: also the path of its files in the folder, without an ending."""
        return f"{self.job.name}/{self.collection}/{self.where}"

    def view(self, source: StoredSource) -> StoredView:
        """The counts to decode."""
        span = f"{self.periods[0]}..{self.periods[-1]}"
        return source.view(span, dict(self.dimensions))


@dataclass(frozen=True, slots=True)
class UnitProblem:
    """A part of a job that cannot be cut into units, and why."""

    job: str
    collection: str
    error: str


def units_of(
    job: JobSpec, options: OutputOptions, snapshots: SnapshotFolder
) -> Iterator[DecodeUnit | UnitProblem]:
    """The units of a job; what cannot be decoded becomes a problem, and does not stop the others.

    Raises:
        RapporError: the data folder cannot be read at all.
    """
    workspace = Workspace(options.data)
    stored = workspace.collections
    for name in stored if job.collections is None else job.collections:
        try:
            if name not in stored:
                known = ", ".join(stored) or "none yet"
                raise ParamsError(f"the store has no collection {show(name)}; it has: {known}")
            yield from list(_units(job, name, workspace, options, snapshots))
        except (RapporError, OSError) as error:
            yield UnitProblem(job.name, name, said(error))


def _units(
    job: JobSpec,
    name: str,
    workspace: Workspace,
    options: OutputOptions,
    snapshots: SnapshotFolder,
) -> Iterator[DecodeUnit]:
    source = workspace.source(name, job.version)
    collection = source.collection
    if collection.kind == "tuple" and job.collections is None:
        return  # "all" means all that can be decoded
    check_decoded(collection.kind, name)
    candidates = None
    if collection.kind == "string":
        candidates = snapshots.take(job.candidates, collection.name, options.data)
        if options.dashboard:
            candidates = with_version(options.data, collection.name, candidates)
    elif job.candidates is not None and job.collections is not None:
        raise DecodeError(f"{name} is of kind {collection.kind}: it needs no candidates")
    if job.method != "auto" and collection.kind != "string":
        raise DecodeError(f"method does not go with kind {collection.kind}: leave it out")
    chosen = _chosen(job, source, 0 if candidates is None else candidates.size)
    spans = [chosen] if job.together else [(period,) for period in chosen]
    for span in spans:
        unit = DecodeUnit(
            job, name, collection.version, span, job.dimensions, candidates=candidates
        )
        view = unit.view(source)
        values = [None] if job.by is None else list(view.by(job.by))
        for value in values:
            cut = unit
            if value is not None and job.by is not None:
                pairs = tuple(sorted((*job.dimensions, (job.by, value))))
                cut = replace(unit, dimensions=pairs)
            yield replace(cut, key=unit_key(cut, cut.view(source), options))


def _chosen(job: JobSpec, source: StoredSource, candidates: int) -> tuple[str, ...]:
    """The periods of a job that have reports."""
    dimensions = dict(job.dimensions)
    if job.periods == LATEST:
        return source.view(None, dimensions, candidates).periods
    if job.last is not None:
        periods = source.view(ALL, dimensions).periods
        return periods[-job.last :]
    return source.view(job.periods, dimensions).periods


def unit_key(unit: DecodeUnit, view: StoredView, options: OutputOptions) -> str:
    """A digest of everything that shapes the files of a unit: counts, candidates, options."""
    job, listed = unit.job, unit.candidates
    counts = hashlib.sha256()
    for cell in sorted(view.cells, key=lambda stored: stored.cell):
        counts.update(key_bytes(cell.cell) + cell.params_digest.encode())
        counts.update(cell.totals.tobytes() + cell.ones.tobytes())
    shaping = [
        *(__version__, DECODER_VERSION, unit.name, unit.version, unit.periods, unit.dimensions),
        *(job.correction, job.alpha, job.method),
        None if listed is None else listed.digest,
        listed.saved_version if options.dashboard and listed is not None else None,
        *(options.formats, options.all_rows, options.dashboard),
        *(view.collection.to_toml(), view.notes, counts.hexdigest()),
    ]
    text = json.dumps(shaping, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def stages(file: JobsFile) -> list[list[JobSpec]]:
    """The jobs in an order in which each comes after the job whose results it takes.

    Raises:
        ParamsError: jobs wait for each other in a circle.
    """
    waiting = list(file.jobs)
    done: set[str] = set()
    order: list[list[JobSpec]] = []
    names = {job.name for job in file.jobs}
    while waiting:
        ready = [job for job in waiting if _waits_for(job, file, names) <= done]
        if not ready:
            circle = ", ".join(job.name for job in waiting)
            raise ParamsError(f"these jobs wait for each other's results: {circle}; change one")
        order.append(ready)
        done |= {job.name for job in ready}
        waiting = [job for job in waiting if job.name not in done]
    return order


def _waits_for(job: JobSpec, file: JobsFile, names: set[str]) -> set[str]:
    source = job.candidates
    if source is None or source.run is None or source.job not in names:
        return set()
    return {source.job} if source.run.resolve() == file.output.resolve() else set()


def said(error: BaseException) -> str:
    """An error in one sentence."""
    if isinstance(error, OSError):
        reason = (error.strerror or "unknown reason").lower()
        return reason if error.filename is None else f"{error.filename}: {reason}"
    return str(error)
