"""The journal of a run: one small file for each finished unit, written after its results.

It lies in the folder of results, in `.run`. A unit is finished if its entry has the unit's key, and
its files are there as they were written.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rappor import files
from rappor.errors import StoreBusy

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system: no lock there
    fcntl = None

FOLDER = ".run"
_DONE = "done"
_CHUNK = 2**20
_DRAFT = re.compile(r"\..+\.[0-9]+\.(csv|json|parquet)")


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What the journal says about a finished unit.

    Attributes:
        name: the unit.
        key: the digest of everything that shaped the result.
        job: the name of the job.
        collection: the name of the collection.
        version: its version.
        periods: the periods, added up.
        dimensions: the chosen values of dimensions.
        reports: the number of reports.
        candidates: how many values were tested.
        detected: how many were detected.
        undetected_mass: the share of reports that no detected value explains.
        failed_checks: the codes of the checks that failed.
        files: the SHA-256 of each file, by its path in the folder.
        published: whether the dashboard has the result.
        seconds: how long it took.
        detected_strings: the detected values.
    """

    name: str
    key: str
    job: str
    collection: str
    version: int
    periods: tuple[str, ...]
    dimensions: Mapping[str, str]
    reports: int
    candidates: int
    detected: int
    undetected_mass: float | None
    failed_checks: tuple[str, ...]
    files: Mapping[str, str]
    published: bool
    seconds: float
    detected_strings: tuple[str, ...] = field(default=(), repr=False)

    def document(self) -> dict[str, Any]:
        """The entry without the strings, ready for JSON."""
        facts = asdict(self)
        del facts["detected_strings"], facts["key"]
        return facts


class Journal:
    """The journal of one folder of results, for the one run that may write there.

    Args:
        output: the folder of results, made if missing.

    Raises:
        StoreBusy: another run writes there.
    """

    def __init__(self, output: Path) -> None:
        self.output = output
        self.folder = output / FOLDER
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor: int | None = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is not None:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self.close()
                raise StoreBusy(
                    f"{output}: another run writes to this folder; wait until it ends, or name "
                    "another output"
                ) from None
        self._remove_drafts()

    def close(self) -> None:
        """Let another run write."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def finished(self, name: str, key: str) -> UnitResult | None:
        """The entry of a unit, if its key is this one and its files are whole; else None."""
        entry = read_entry(entry_path(self.output, name))
        if entry is None or entry.key != key:
            return None
        whole = all(digest_of(self.output / path) == each for path, each in entry.files.items())
        return entry if whole else None

    def _remove_drafts(self) -> None:
        """Remove the unfinished files of a run that was killed."""
        for folder, _, names in os.walk(self.output):
            for name in names:
                if _DRAFT.fullmatch(name):
                    Path(folder, name).unlink(missing_ok=True)


def entry_path(output: Path, name: str) -> Path:
    """The file of a unit's entry."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:32]
    return output / FOLDER / _DONE / f"{digest}.json"


def write_entry(output: Path, entry: UnitResult) -> None:
    """Write the entry of a finished unit."""
    path = entry_path(output, entry.name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.write_text(path, json.dumps(asdict(entry), allow_nan=False))


def read_entry(path: Path) -> UnitResult | None:
    """An entry, or None if there is none that can be read."""
    try:
        facts = json.loads(path.read_text(encoding="ascii"))
        names = ("periods", "failed_checks", "detected_strings")
        return UnitResult(**{**facts, **{name: tuple(facts[name]) for name in names}})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def results_of(output: Path, job: str) -> list[UnitResult]:
    """The finished units of a job, by name."""
    folder = output / FOLDER / _DONE
    paths = sorted(folder.glob("*.json")) if folder.is_dir() else []
    entries = [entry for path in paths if (entry := read_entry(path)) is not None]
    return sorted((entry for entry in entries if entry.job == job), key=lambda entry: entry.name)


def digest_of(path: Path) -> str | None:
    """The SHA-256 of a file; None if there is none."""
    hashed = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                hashed.update(chunk)
    except OSError:
        return None
    return hashed.hexdigest()
