"""The manifest of a lake: which files belong to it, with their checksums and what they count.

It is a set of small records that are written once and never changed, each under a random name. A
record adds files and removes files; the lake is all that was added and not removed. So two
processes that seal at the same time do not lose each other's files, on object stores too, which
have neither locks nor renames. A file without a record does not belong to the lake.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from typing import Any, NamedTuple

from rappor.aggregate.lake.place import LakePlace
from rappor.errors import DecodeError
from rappor.store import CellKey

FOLDER = "_manifest"
FORMAT = 1
_NAME_BYTES = 16


class LakeFault(NamedTuple):
    """Something in a lake that is not used, and why.

    Attributes:
        file: its name in the lake.
        code: record, missing, damaged, foreign, unlisted, twice or overlaps.
        text: what is wrong, in plain English.
    """

    file: str
    code: str
    text: str

    def __str__(self) -> str:
        return f"{self.file}: {self.text}"


@dataclass(frozen=True, slots=True)
class LakeFile:
    """A file of a lake, as the manifest has it.

    Attributes:
        path: its name in the lake: collection, version, period, and a random name.
        seal: a random name that the files of one seal share: they have all reports of their cells.
        sha256: of its bytes.
        size: the number of its bytes.
        rows: the number of its rows.
        params_digest: the digest of the parameters that its reports were made with.
        keep_until: the last day on which it may be kept.
        cells: the number of reports of each cell.
    """

    path: str
    seal: str
    sha256: str
    size: int
    rows: int
    params_digest: str
    keep_until: date
    cells: tuple[tuple[CellKey, int], ...] = field(repr=False)

    @property
    def reports(self) -> int:
        """The number of reports."""
        return sum(reports for _, reports in self.cells)

    @property
    def of(self) -> tuple[str, int, str]:
        """Collection, version and period: a file has one of each."""
        return self.cells[0][0][:3]


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest as it was read.

    Attributes:
        files: the files that belong to the lake, by path.
        faults: records that cannot be read, and files that another one makes useless.
        records: the names of all records.
        removed: the paths that were removed.
    """

    files: dict[str, LakeFile]
    faults: tuple[LakeFault, ...] = ()
    records: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()

    def seals(self) -> dict[str, tuple[LakeFile, ...]]:
        """The files of each seal."""
        return _seals(self.files)

    def cells(self) -> dict[CellKey, tuple[str, int]]:
        """The seal and the number of reports of each cell."""
        found: dict[CellKey, tuple[str, int]] = {}
        for file in self.files.values():
            for cell, reports in file.cells:
                found[cell] = (file.seal, found.get(cell, ("", 0))[1] + reports)
        return found


def _seals(files: dict[str, LakeFile]) -> dict[str, tuple[LakeFile, ...]]:
    found: dict[str, tuple[LakeFile, ...]] = {}
    for file in files.values():
        found[file.seal] = (*found.get(file.seal, ()), file)
    return found


def read_manifest(place: LakePlace) -> Manifest:
    """Read all records; what cannot be read is a fault.

    Raises:
        DecodeError: there is no lake here.
    """
    names = sorted(name for name in place.list(FOLDER) if name.endswith(".json"))
    if not names:
        raise DecodeError(f"{place}: there is no lake here; check the name, or seal reports first")
    faults: list[LakeFault] = []
    read: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            read[name] = _record(place.read(name))
        except (ValueError, KeyError, TypeError) as error:
            text = f"this record of the manifest is damaged ({error}); its files are not used"
            faults.append(LakeFault(name, "record", text))
    replaced = {name for record in read.values() for name in record["replaces"]}
    added: dict[str, LakeFile] = {}
    removed: set[str] = set()
    for name, record in read.items():
        if name in replaced:
            continue  # another record says the same: its writer stopped before it was deleted
        added |= {file["path"]: _file(file) for file in record["add"]}
        removed.update(record["remove"])
    live = {path: file for path, file in sorted(added.items()) if path not in removed}
    kept, twice = _once(live)
    faults = [fault for fault in faults if fault.file not in replaced]
    return Manifest(kept, (*faults, *twice), tuple(names), frozenset(removed))


def _once(files: dict[str, LakeFile]) -> tuple[dict[str, LakeFile], list[LakeFault]]:
    """The files without those of seals whose cells another seal has too.

    Two processes that seal one cell at the same time both write it whole. The seal with more
    reports is used, and for equal numbers the one whose name comes first.
    """
    chosen: dict[str, LakeFile] = {}
    taken: dict[CellKey, str] = {}
    faults = []
    seals = _seals(files)
    for seal in sorted(seals, key=lambda seal: (-sum(f.reports for f in seals[seal]), seal)):
        cells = {cell for file in seals[seal] for cell, _ in file.cells}
        other = next((taken[cell] for cell in sorted(cells) if cell in taken), None)
        if other is None:
            chosen |= {file.path: file for file in seals[seal]}
            taken |= dict.fromkeys(cells, seals[seal][0].path)
            continue
        whole = cells <= taken.keys()
        code, also = ("twice", ", and compact removes it") if whole else ("overlaps", "")
        text = f"its cells are in {other} too; it is not used{also}"
        faults += [LakeFault(file.path, code, text) for file in seals[seal]]
    return dict(sorted(chosen.items())), faults


def write_record(
    place: LakePlace,
    add: Iterable[LakeFile] = (),
    remove: Iterable[str] = (),
    replaces: Sequence[str] = (),
) -> str:
    """Write a record, which is the moment at which its files belong to the lake."""
    content = {
        "format": FORMAT,
        "add": [_document(file) for file in add],
        "remove": sorted(remove),
        "replaces": list(replaces),
    }
    text = json.dumps(content, ensure_ascii=True)
    whole = json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest(), "record": text})
    name = f"{FOLDER}/{random_name()}.json"
    place.write(name, whole.encode())
    return name


def random_name() -> str:
    """A name that tells nothing about the order in which files were written."""
    return secrets.token_hex(_NAME_BYTES)


def _record(data: bytes | None) -> dict[str, Any]:
    if data is None:
        return {"add": [], "remove": [], "replaces": []}  # a record that was replaced meanwhile
    whole = json.loads(data)
    text = whole["record"]
    if hashlib.sha256(text.encode()).hexdigest() != whole["sha256"]:
        raise ValueError("another checksum")
    record: dict[str, Any] = json.loads(text)
    if record["format"] != FORMAT:
        raise ValueError("a format that this version does not know")
    return record


def _document(file: LakeFile) -> dict[str, Any]:
    facts = asdict(file)
    facts["keep_until"] = file.keep_until.isoformat()
    facts["cells"] = [[*cell, reports] for cell, reports in file.cells]
    return facts


def _file(facts: dict[str, Any]) -> LakeFile:
    cells = tuple((CellKey(*cell), reports) for *cell, reports in facts["cells"])
    kept = date.fromisoformat(facts["keep_until"])
    return LakeFile(**{**facts, "cells": cells, "keep_until": kept})
