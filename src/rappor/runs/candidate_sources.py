"""Candidates of a run: from a file, from a data folder, or from the results of another run.

A run takes each list once, as a snapshot in its folder: a file that changes meanwhile does not
change half of the results.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import closing
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from rappor import files
from rappor.checks import show
from rappor.decoding.candidates import Candidates
from rappor.decoding.saved_candidates import saved_candidates
from rappor.errors import DecodeError
from rappor.host import actor
from rappor.runs.jobs_file import CandidateSource
from rappor.runs.journal import results_of

_REMEMBERED = 4  # lists


@dataclass(frozen=True, slots=True)
class CandidateSnapshot:
    """A list of candidates as a run uses it.

    Attributes:
        path: the file with the strings, as JSON.
        digest: the SHA-256 of the strings.
        size: how many there are.
        saved_version: the version of the dashboard's list that has these strings; None if unknown.
    """

    path: Path
    digest: str
    size: int
    saved_version: int | None = None

    def read(self) -> tuple[str, ...]:
        """The strings, sorted."""
        return tuple(json.loads(self.path.read_text(encoding="ascii")))


class SnapshotFolder:
    """Takes snapshots of lists, each list once."""

    def __init__(self, folder: Path) -> None:
        """Take the folder, made if missing."""
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._read = lru_cache(_REMEMBERED)(Candidates.read)

    def take(
        self, source: CandidateSource | None, collection: str, data: Path
    ) -> CandidateSnapshot:
        """The candidates of a collection.

        Args:
            source: where they come from; None: the data folder's newest list of the collection.
            collection: the collection that is decoded.
            data: the data folder.

        Raises:
            DecodeError: there is no such list, or it is empty.
        """
        if source is None:
            source = CandidateSource(data=data)
        if source.file is not None:
            return self._save(self._read(source.file))
        if source.run is not None:
            return self._save(_detected(source, collection))
        named = source.collection or collection
        listed = saved_candidates(source.data or data, named, source.version)
        if listed is None:
            which = "no list" if source.version is None else f"no version {source.version}"
            raise DecodeError(
                f"{source.data} has {which} of candidates for {show(named)}: name a file in "
                "candidates, or save a list on the page Candidates"
            )
        own = source.data == data and named == collection
        return self._save(Candidates.of(listed.strings), listed.version if own else None)

    def _save(self, listed: Candidates, version: int | None = None) -> CandidateSnapshot:
        text = json.dumps(listed.strings)
        digest = hashlib.sha256(text.encode("ascii")).hexdigest()
        path = self._folder / f"{digest}.json"
        if not path.exists():
            files.write_text(path, text)
        return CandidateSnapshot(path, digest, len(listed), version)


def _detected(source: CandidateSource, collection: str) -> Candidates:
    """The strings that a job of a run detected, in any of its results.

    Clients answer with the same permanent noise every time. Strings that were chosen on reports of
    a collection are not tested again on that collection: what noise made up once, it makes up
    again, and p-values would not allow for the choice.
    """
    if source.run is None or source.job is None:
        raise DecodeError("candidates of a run need its folder and the name of a job")
    found = results_of(source.run, source.job)
    if not found:
        raise DecodeError(f"{source.run} has no results of a job {show(source.job)}; run it first")
    if any(entry.collection == collection for entry in found):
        raise DecodeError(
            f"the strings of job {source.job} were chosen on reports of {collection}: tested on it "
            "again, their p-values would be too small; take a list, or results of another "
            "collection"
        )
    strings = {string for entry in found for string in entry.detected_strings}
    if not strings:
        raise DecodeError(f"job {source.job} of {source.run} detected nothing: there is no list")
    return Candidates.of(sorted(strings))


def with_version(data: Path, collection: str, candidates: CandidateSnapshot) -> CandidateSnapshot:
    """The candidates as a version of the dashboard's list, saved as the next one if it has none.

    A page names the version of its list, so results of a list that the dashboard does not have
    could not be found again.
    """
    if candidates.saved_version is not None:
        return candidates
    from rappor.dashboard.settings import STATE_FILE
    from rappor.dashboard.state import DashboardState

    strings = candidates.read()
    with closing(DashboardState(data / STATE_FILE)) as state:
        newest = state.candidates(collection)
        if newest is not None and tuple(sorted(newest.strings)) == strings:
            return replace(candidates, saved_version=newest.version)
        saved = state.save_candidates(collection, strings, actor())
    return replace(candidates, saved_version=saved)
