"""Lists of candidates: pending ones before they are saved, versions after."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

from rappor.dashboard.candidates.candidate_upload import (
    MAX_STRINGS,
    CandidateUpload,
    ListDifference,
    UnreadableLine,
    difference,
    digest_of,
)
from rappor.dashboard.context import Context
from rappor.dashboard.state.saved import CandidateVersion
from rappor.decoding.exports import mass_in
from rappor.decoding.saved_candidates import CandidateList
from rappor.errors import ParamsError

DRAFT, DIFFERENCE = "draft", "list-difference"
ADD, REPLACE = "add", "replace"
HOW = (ADD, REPLACE)


@dataclass(frozen=True, slots=True)
class PendingList:
    """A list that is not saved yet.

    Attributes:
        digest: its name in addresses.
        strings: sorted; with those of the present list if they are added to it.
        words: how much was read.
        unreadable: lines left out, the first 20 of them.
        notes: further remarks.
        how: add or replace.
        change: the difference from the present list.
    """

    digest: str
    strings: tuple[str, ...] = field(repr=False)
    words: str
    unreadable: tuple[UnreadableLine, ...]
    notes: tuple[str, ...]
    how: str
    change: ListDifference


@dataclass(frozen=True, slots=True)
class ListVersion:
    """A saved list and its difference from the version before."""

    about: CandidateVersion
    change: ListDifference


def save_pending(context: Context, collection: str, draft: CandidateUpload, how: str) -> str:
    """Keep an uploaded list until it is saved or forgotten; returns its digest.

    Raises:
        ParamsError: `how` is not add or replace, or there are too many strings together.
    """
    if how not in HOW:
        raise ParamsError(f"how must be one of {', '.join(HOW)}; got {how!r}")
    strings = draft.strings
    present = context.state.candidates(collection) if how == ADD else None
    if present is not None:
        strings = tuple(sorted({*present.strings, *draft.strings}))
        if len(strings) > MAX_STRINGS:
            raise ParamsError(
                f"a list may have {MAX_STRINGS:,} strings; with v{present.version} this one has "
                f"{len(strings):,}"
            )
    digest = digest_of(strings)
    meta = {
        "collection": collection,
        "words": draft.words,
        "unreadable": [list(line) for line in draft.unreadable],
        "notes": list(draft.notes),
        "how": how,
    }
    context.state.save_result(_draft_key(collection, digest), DRAFT, meta, _packed(strings))
    return digest


def read_pending(context: Context, collection: str, digest: str) -> PendingList | None:
    """A pending list by its digest; None if it is forgotten."""
    saved = context.state.result(_draft_key(collection, digest))
    if saved is None or saved.kind != DRAFT or saved.table is None:
        return None
    strings = _unpacked(saved.table)
    present = context.state.candidates(collection)
    return PendingList(
        digest=digest,
        strings=strings,
        words=saved.meta["words"],
        unreadable=tuple(UnreadableLine(*line) for line in saved.meta["unreadable"]),
        notes=tuple(saved.meta["notes"]),
        how=saved.meta["how"],
        change=difference(() if present is None else present.strings, strings),
    )


def versions_of(context: Context, collection: str) -> list[ListVersion]:
    """All saved versions, newest first, each with its difference."""
    listed = context.state.candidate_versions(collection)
    return [ListVersion(version, _change(context, version)) for version in listed]


def _change(context: Context, about: CandidateVersion) -> ListDifference:
    """The difference of a version from the one before; computed once, as versions do not change."""
    key = f"{DIFFERENCE}-{about.collection}-{about.version}"
    saved = context.state.result(key)
    if saved is not None:
        meta = saved.meta
        names = ("some_added", "some_removed")
        return ListDifference(
            meta["added"], meta["removed"], *(tuple(meta[name]) for name in names)
        )
    after = context.state.candidates(about.collection, about.version)
    before = None
    if about.version > 1:
        before = context.state.candidates(about.collection, about.version - 1)
    change = difference(_strings(before), _strings(after))
    meta = {"collection": about.collection, **change._asdict()}
    context.state.save_result(key, DIFFERENCE, meta, None)
    return change


def _strings(listed: CandidateList | None) -> tuple[str, ...]:
    return () if listed is None else listed.strings


def _draft_key(collection: str, digest: str) -> str:
    return f"{DRAFT}-{collection}-{digest}"


def _packed(strings: tuple[str, ...]) -> bytes:
    return zlib.compress("\n".join(strings).encode(), 1)


def _unpacked(table: bytes) -> tuple[str, ...]:
    return tuple(zlib.decompress(table).decode().split("\n"))


def explained(meta: dict[str, Any]) -> tuple[float, float, float] | None:
    """The share that detected strings explain, with its interval, from the facts of a decode."""
    mass = mass_in(meta)
    if not mass or mass.get("proportion") is None:
        return None
    return 1 - mass["proportion"], 1 - mass["prop_high_95"], 1 - mass["prop_low_95"]
