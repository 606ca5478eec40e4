"""Results of a `StoredView`: decoded, compared, associated; they say which periods they are of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Generic, TypedDict, TypeVar, Unpack

from rappor.aggregate.stored_counts import single
from rappor.decoding.associate import associate
from rappor.decoding.association import Association
from rappor.decoding.candidates import Candidates
from rappor.decoding.closed_form import Overlap
from rappor.decoding.compare import compare
from rappor.decoding.decode import decode
from rappor.decoding.design import Design, build_design
from rappor.decoding.differences import Compared
from rappor.decoding.field_design import FieldValues
from rappor.decoding.mapfile import read_map
from rappor.decoding.options import Correction, Method, check_decoded
from rappor.decoding.own_decoder import Decoder
from rappor.decoding.result import Decoded
from rappor.errors import DecodeError
from rappor.formats import read_text
from rappor.stored_view import StoredView

LookedFor = Iterable[str | bytes] | str | PathLike[str] | Candidates | Design | None
Listed = Candidates | Design | str | PathLike[str] | None
Progress = Callable[[str], None]

Result = TypeVar("Result", Decoded, Compared)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResultParts(Mapping[str, Result], Generic[Result]):
    """One result for each value of a dimension, or for each period; `print` shows them all."""

    by: str
    parts: Mapping[str, Result]

    def __getitem__(self, value: str) -> Result:
        return self.parts[value]

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} by {self.by}: {', '.join(self.parts)}>"

    def __str__(self) -> str:
        """What the command prints with `--by`."""
        tables = (f"{self.by} {value}\n{found}" for value, found in self.parts.items())
        return "\n\n".join(tables)


class DecodedParts(ResultParts[Decoded]):
    """One `Decoded` for each value of a dimension, or for each period."""

    __slots__ = ()


class ComparedParts(ResultParts[Compared]):
    """One `Compared` for each value of a dimension."""

    __slots__ = ()


class DecodeOptions(TypedDict, total=False):
    """Options of `rappor.decode` that a view takes as they are."""

    correction: Correction
    alpha: float
    method: Method
    decoder: Decoder | None
    overlap: Overlap
    progress: Progress | None


def decode_view(
    view: StoredView,
    candidates: Listed,
    **options: Unpack[DecodeOptions],
) -> Decoded:
    """Decode a view; the first of `notes` names it."""
    found = decode(
        view.counts,
        looked_for(view, candidates),
        null_reports=view.collection.null_reports,
        **options,
    )
    return replace(found, notes=(*view.notes, *found.notes), title=view.title)


def compare_views(
    new: StoredView,
    old: StoredView,
    candidates: Listed,
    *,
    correction: Correction = "fdr",
    alpha: float = 0.05,
    progress: Progress | None = None,
) -> Compared:
    """Compare two views: shares of the first minus shares of the second."""
    found = compare(
        single(new.counts),
        single(old.counts),
        looked_for(new, candidates),
        correction=correction,
        alpha=alpha,
        null_reports=new.collection.null_reports,
        names=(new.where, old.where),
        progress=progress,
    )
    title = f"{new.collection.name} v{new.collection.version}"
    said = f"{title}: {new.where} minus {old.where}"
    return replace(found, notes=(said, *found.notes), title=title)


def associate_view(
    view: StoredView,
    candidates: Sequence[FieldValues] | Mapping[str, FieldValues],
    *,
    fields: Sequence[str] | None = None,
    correction: Correction = "holm",
    alpha: float = 0.05,
) -> Association:
    """Associate two fields of a collection of kind tuple; the first of `notes` names the view."""
    collection = view.collection
    if collection.tuple_views is None:
        raise DecodeError(
            f"{collection.name} is of kind {collection.kind}: it holds one variable, and an "
            "association needs two fields of a tuple"
        )
    found = associate(
        view.counts,
        candidates,
        views=collection.tuple_views,
        fields=fields,
        null_reports=collection.null_reports,
        correction=correction,
        alpha=alpha,
    )
    return replace(found, notes=(*view.notes, *found.notes), title=view.title)


def looked_for(view: StoredView, candidates: Listed) -> Any:
    """What `decode` looks for: the placed candidates, the categories or the ranges."""
    collection = view.collection
    check_decoded(collection.kind, collection.name)
    if collection.kind != "string":
        if candidates is not None:
            raise DecodeError(
                f"{collection.name} is of kind {collection.kind}: it needs no candidates"
            )
        return collection.categories or collection.ranges
    if candidates is None:
        raise DecodeError(
            f"strings are decoded against candidates, and the data folder has no list for "
            f"{collection.name}: give a list, a file or a map, or save a list on the page "
            "Candidates"
        )
    if isinstance(candidates, Design):
        return candidates
    if isinstance(candidates, Candidates):
        return build_design(candidates, collection.params, collection.dialect)
    return read_map(candidates, collection.params)


def read_candidates(
    candidates: LookedFor,
) -> Listed:
    """Candidates in memory; a map stays a path, because only a version's parameters read it."""
    if candidates is None or isinstance(candidates, (Candidates, Design)):
        return candidates
    if isinstance(candidates, (str, PathLike)):
        is_map = str(candidates).lower().endswith("map.csv")
        return candidates if is_map else Candidates.read(candidates)
    return Candidates.of(candidates)


def list_size(listed: Listed) -> int:
    """The number of candidates."""
    if isinstance(listed, Candidates):
        return len(listed)
    if isinstance(listed, Design):
        return len(listed.strings)
    if listed is None:
        return 0
    return sum(bool(line.strip()) for line in read_text(listed).splitlines())  # of a map
