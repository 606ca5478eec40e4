"""Counts and candidates to a table: the calls in order (§4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from rappor.aggregate.counts import Counts
from rappor.checks import between_0_and_1, show
from rappor.decoding.candidates import Candidates
from rappor.decoding.design import Design, build_design
from rappor.decoding.mapfile import read_map
from rappor.decoding.result import Decoded
from rappor.decoding.significance import check_correction
from rappor.decoding.strings import METHODS, decode_strings
from rappor.errors import DecodeError
from rappor.mechanism.predicates import Ranges

if TYPE_CHECKING:
    from rappor.decoding.histogram import Histogram

Progress = Callable[[str], None]
Given = Iterable[str | bytes] | str | PathLike[str] | Candidates | Design


def decode(
    counts: Counts | Sequence[Counts],
    candidates: Given | Ranges | None = None,
    *,
    dialect: str | None = None,
    correction: str = "fdr",
    alpha: float = 0.05,
    method: str = "auto",
    progress: Progress | None = None,
) -> Decoded | Histogram:
    """Which strings are out there, how many reports hold each, and how sure that is.

    Args:
        counts: one Counts, or several that differ in p and q only (R32).
        candidates: strings to look for: a list, the path of a .txt, .csv or .parquet file or of a
            google/rappor map.csv, or a `Design` made before. For categories their names in the
            order of bits; for ordinals the `Ranges`, or None.
        dialect: how clients place strings; the counts' own where that is not given.
        correction: "fdr", "holm", "bonferroni" or "none".
        alpha: the error rate that the correction keeps.
        method: "auto", or "lasso" for the paper's procedure.
        progress: called with a line of text now and then.

    Returns:
        `Decoded`, or a `Histogram` for ordinal counts. The same input gives the same result to the
        last bit, whatever the order of the candidates.
    """
    parts = [counts] if isinstance(counts, Counts) else counts
    if isinstance(parts, Iterable):
        parts = list(parts)
    if not isinstance(parts, list) or not parts or not all(isinstance(c, Counts) for c in parts):
        raise DecodeError(f"counts must be Counts, or a list of them; got {show(counts)}")
    check_correction(correction)
    between_0_and_1("alpha", alpha)
    if not isinstance(method, str) or method not in METHODS:
        raise DecodeError(f"method must be one of {', '.join(METHODS)}; got {show(method)}")
    kind = parts[0].kind
    if kind == "ordinal":
        from rappor.decoding.ordinal import decode_ordinal

        is_file = isinstance(candidates, (str, PathLike))
        ranges: Any = _labels(candidates) if is_file else candidates  # checked there
        return decode_ordinal(parts, ranges, correction=correction, alpha=alpha)
    if kind != "string":
        from rappor.decoding.categories import decode_basic

        return decode_basic(parts, _labels(candidates), correction=correction, alpha=alpha)
    design, notes = _design(parts[0], candidates, dialect)
    return decode_strings(
        parts,
        design,
        correction=correction,
        alpha=alpha,
        method=method,
        notes=notes,
        progress=progress,
    )


def _design(
    counts: Counts,
    candidates: Given | Ranges | None,
    dialect: str | None,
) -> tuple[Design, tuple[str, ...]]:
    params = counts.params
    if candidates is None:
        raise DecodeError("strings are decoded against candidates: give a list, a file or a map")
    if isinstance(candidates, Design):
        for name in ("k", "h", "m"):
            mine, theirs = getattr(params, name), getattr(candidates.params, name)
            if mine != theirs:
                raise DecodeError(f"the candidates' map has {name} = {theirs}, counts have {mine}")
        return candidates, candidates.strings.notes
    if isinstance(candidates, Ranges):
        raise DecodeError("ranges are for kind ordinal; strings are decoded against candidates")
    if isinstance(candidates, (str, PathLike)):
        if _is_map(candidates):
            design = read_map(candidates, params)
            return design, design.strings.notes
        candidates = Candidates.read(candidates)
    listed = Candidates.of(candidates)
    notes = listed.notes
    chosen = dialect or counts.dialect
    if chosen is None:
        chosen = "rappor-v1"
        notes = (*notes, "No dialect was given: strings were placed as rappor-v1 does.")
    return build_design(listed, params, chosen), notes


def _is_map(path: str | PathLike[str]) -> bool:
    name = str(path).lower()
    return name.endswith("map.csv")


def _labels(candidates: object) -> Sequence[str] | None:
    if candidates is None:
        return None
    if isinstance(candidates, (str, PathLike)):
        from rappor.decoding.candidate_files import read_strings

        return list(read_strings(candidates)[0])
    if isinstance(candidates, Candidates):
        return list(candidates.strings)
    if isinstance(candidates, Iterable):
        return [
            text.decode(errors="backslashreplace") if isinstance(text, bytes) else text
            for text in candidates
        ]
    raise DecodeError(f"the names of bits must be a list of strings, got {show(candidates)}")
