"""Counts and candidates to a table: the calls in order (§4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, cast

from rappor.aggregate.counts import Counts
from rappor.checks import between_0_and_1, show
from rappor.decoding.candidates import Candidates
from rappor.decoding.closed_form import Overlap
from rappor.decoding.design import Design, build_design
from rappor.decoding.mapfile import read_map
from rappor.decoding.options import Correction, Method, check_decoded
from rappor.decoding.own_decoder import Decoder, check_decoder
from rappor.decoding.result import Decoded
from rappor.decoding.significance import check_correction
from rappor.decoding.strings import FINDERS, Finder, decode_strings
from rappor.errors import DecodeError
from rappor.mechanism.predicates import Ranges

Progress = Callable[[str], None]
Given = Iterable[str | bytes] | str | PathLike[str] | Candidates | Design


def decode(
    counts: Counts | Sequence[Counts],
    candidates: Given | Ranges | None = None,
    *,
    dialect: str | None = None,
    correction: Correction = "fdr",
    alpha: float = 0.05,
    method: Method | Finder = "auto",
    decoder: Decoder | None = None,
    overlap: Overlap = "bound",
    null_reports: bool = False,
    progress: Progress | None = None,
) -> Decoded:
    """Estimate which strings clients hold, and how many reports hold each.

    Args:
        counts: one Counts, or several that differ in p and q only.
        candidates: strings to look for: a list, the path of a .txt, .csv or .parquet file or of a
            google/rappor map.csv, or a `Design` made before. For categories their names in the
            order of bits; for ordinals the `Ranges`, or None.
        dialect: how clients place strings; default: the dialect of the counts.
        correction: "fdr", "bh", "holm", "bonferroni" or "none"; see `options.CORRECTIONS`.
        alpha: the error rate that the correction keeps.
        method: "auto", "lasso" for the paper's procedure, or an object with the methods of
            `rappor.decoding.Finder`. For strings only.
        decoder: a decoder of your own, an object with a name and the method `decode` of
            `rappor.decoding.Decoder`. Its estimates, intervals and p-values are checked for their
            form only; p-values are corrected as usual. For strings only; see docs/decoder.md.
        overlap: for several Counts of one client population, how many clients reported in two of
            them: "bound" for the most there can be, None for none, or a symmetric table of report
            pairs. Strings need none: their residuals show it.
        null_reports: whether clients without a value report too, with no bit set. Estimates do not
            change; the check of the share of set bits does.
        progress: called with a line of text after each step.

    Returns:
        `Decoded`; for ordinal counts its `histogram` has the mean and quantiles. The same input
        gives the same result to the last bit, whatever the order of the candidates.
    """
    parts = [counts] if isinstance(counts, Counts) else counts
    if isinstance(parts, Iterable):
        parts = list(parts)
    if not isinstance(parts, list) or not parts or not all(isinstance(c, Counts) for c in parts):
        raise DecodeError(f"counts must be Counts, or a list of them; got {show(counts)}")
    check_correction(correction)
    between_0_and_1("alpha", alpha)
    finder = _finder(method)
    kind = parts[0].kind
    if decoder is not None:
        check_decoder(decoder)
        _check_alone(kind, method)
    check_decoded(kind, parts[0].collection or "")
    if kind == "ordinal":
        from rappor.decoding.ordinal import decode_ordinal

        is_file = isinstance(candidates, (str, PathLike))
        ranges: Any = _labels(candidates) if is_file else candidates  # checked there
        histogram = decode_ordinal(
            parts,
            ranges,
            correction=correction,
            alpha=alpha,
            overlap=overlap,
            null_reports=null_reports,
        )
        return replace(histogram.decoded, histogram=histogram)
    if kind != "string":
        from rappor.decoding.categories import decode_basic

        return decode_basic(
            parts,
            _labels(candidates),
            correction=correction,
            alpha=alpha,
            overlap=overlap,
            null_reports=null_reports,
        )
    design, notes = _design(parts[0], candidates, dialect)
    if decoder is not None:
        from rappor.decoding.own_table import decode_with

        return decode_with(
            decoder,
            parts,
            design,
            correction=correction,
            alpha=alpha,
            notes=notes,
            null_reports=null_reports,
        )
    return decode_strings(
        parts,
        design,
        correction=correction,
        alpha=alpha,
        finder=finder,
        notes=notes,
        null_reports=null_reports,
        progress=progress,
    )


def _finder(method: object) -> Finder:
    if isinstance(method, str) and method in FINDERS:
        return FINDERS[method]
    if not isinstance(method, str) and callable(getattr(method, "find", None)):
        return cast(Finder, method)
    hint = "; a Decoder goes into decoder=" if callable(getattr(method, "decode", None)) else ""
    raise DecodeError(
        f"method must be one of {', '.join(FINDERS)}, or a Finder; got {show(method)}{hint}"
    )


def _check_alone(kind: str, method: object) -> None:
    """DecodeError if a decoder of one's own has nothing to do, or comes with a method."""
    if kind != "string":
        raise DecodeError(
            f"a decoder of your own is for strings; counts of kind {kind} have a closed form: "
            "leave decoder out"
        )
    if method != "auto":
        raise DecodeError("decoder and method exclude each other: leave one of them out")


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
                raise DecodeError(
                    f"the candidates' map has {name} = {theirs}, counts have {mine}: make the map "
                    "with the params of the counts"
                )
        return candidates, candidates.strings.notes
    if isinstance(candidates, Ranges):
        raise DecodeError(
            "ranges are for kind ordinal; give the candidates that strings are decoded against"
        )
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
