"""Upkeep of a lake: verify reads everything; compact merges small files, deletes useless ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date

from rappor.aggregate.lake.counting import count_file, fault_of, read_file
from rappor.aggregate.lake.manifest import (
    FOLDER,
    LakeFault,
    LakeFile,
    Manifest,
    read_manifest,
    write_record,
)
from rappor.aggregate.lake.place import LakePlace
from rappor.aggregate.lake.rows import read_rows
from rappor.aggregate.lake.sealing import FILE_BYTES, remove_old, write_seal
from rappor.errors import DecodeError
from rappor.store.released import is_closed

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Verified:
    """What a lake holds, and what is wrong with it.

    Attributes:
        files: the number of files that are sound.
        reports: the number of reports in them.
        faults: everything that is not used, and why.
    """

    files: int
    reports: int
    faults: tuple[LakeFault, ...]


@dataclass(frozen=True, slots=True)
class Compacted:
    """What compacting did.

    Attributes:
        merged: small files that were merged.
        written: files that they became.
        removed: files that were too old, or whose cells another file has.
        faults: files that are damaged; they stay as they are.
    """

    merged: int
    written: int
    removed: int
    faults: tuple[LakeFault, ...]


def verify(place: LakePlace, progress: Progress = lambda _: None) -> Verified:
    """Read and count every file; name what is damaged, missing, foreign or not in the manifest."""
    manifest = read_manifest(place)
    faults = list(manifest.faults)
    sound: list[LakeFile] = []
    for number, file in enumerate(manifest.files.values(), 1):
        progress(f"{number:,} of {len(manifest.files):,} files")
        try:
            count_file(place, file)
            sound.append(file)
        except DecodeError as error:
            faults.append(fault_of(file, error))
    faults += unlisted(place, manifest)
    return Verified(len(sound), sum(file.reports for file in sound), tuple(faults))


def unlisted(place: LakePlace, manifest: Manifest) -> Iterator[LakeFault]:
    """Files that are in the folder and do not belong to the lake."""
    known = {*manifest.files, *(fault.file for fault in manifest.faults)}
    for name in place.list():
        if name in known or name.startswith(f"{FOLDER}/"):
            continue
        if name in manifest.removed:
            text = "the manifest removed it, and it is still there; compact deletes it"
            yield LakeFault(name, "unlisted", text)
            continue
        try:
            read_rows(place.read(name) or b"")
            text = "the manifest does not have it: its seal did not end; it is not used"
            yield LakeFault(name, "unlisted", text)
        except DecodeError as error:
            text = f"the manifest does not have it, and {error}; it is not used"
            yield LakeFault(name, "foreign", text)


def compact(place: LakePlace, today: date, progress: Progress = lambda _: None) -> Compacted:
    """Merge the small files of each closed period, and delete what is too old or useless.

    The order keeps the lake whole at every moment: new files, their record, and only then the
    deletion of what they replace.
    """
    manifest = read_manifest(place)
    old = remove_old(place, manifest, today)
    useless = [fault.file for fault in manifest.faults if fault.code == "twice"]
    left = [name for name in place.list() if name in manifest.removed]
    if useless:
        write_record(place, remove=useless)
    for name in (*useless, *left):
        place.delete(name)
    merged = written = 0
    faults: list[LakeFault] = []
    live = Manifest({path: file for path, file in manifest.files.items() if path not in old})
    for group in _small(live, today):
        progress(f"{group[0].of[0]} v{group[0].of[1]} {group[0].of[2]}: {len(group)} files")
        sound, wrong = _merge(place, group)
        faults += wrong
        merged += len(group) - len(wrong) if sound else 0
        written += sound
    _fold(place)
    return Compacted(merged, written, len(old) + len(useless) + len(left), tuple(faults))


def _small(manifest: Manifest, today: date) -> Iterator[list[LakeFile]]:
    """Groups of whole seals to merge: small ones of one collection, version and closed period."""
    groups: dict[tuple[str, int, str, str], list[LakeFile]] = {}
    for files in manifest.seals().values():
        if len(files) == 1 and files[0].size < FILE_BYTES and is_closed(files[0].of[2], today):
            groups.setdefault((*files[0].of, files[0].params_digest), []).append(files[0])
    for group in groups.values():
        if len(group) > 1:
            yield group


def _merge(place: LakePlace, group: list[LakeFile]) -> tuple[int, list[LakeFault]]:
    """Merge files into one seal; returns the number of new files, and what could not be read."""
    faults, sound, rows, definition = [], [], [], None
    for file in group:
        try:
            count_file(place, file)
            definition, found = read_file(place, file)
            rows += found
            sound.append(file)
        except DecodeError as error:
            faults.append(fault_of(file, error))
    if definition is None or len(sound) < 2:
        return 0, faults
    made = write_seal(place, rows, definition, sound[0].params_digest)
    gone = [file.path for file in sound]
    write_record(place, made, gone)
    for path in gone:
        place.delete(path)
    return len(made), faults


def _fold(place: LakePlace) -> None:
    """Replace the records of the manifest by one, and delete them."""
    now = read_manifest(place)
    if len(now.records) < 2 or any(fault.code == "record" for fault in now.faults):
        return
    write_record(place, now.files.values(), now.removed, now.records)
    for name in now.records:
        place.delete(name)
