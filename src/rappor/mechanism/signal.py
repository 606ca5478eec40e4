"""Signal: a value of any kind -> its true filter B and the bytes that stand for it in the memo.

Strings are memoized by value, tuples by what their view shows. Every other kind is memoized by its
bits: two numbers in one range share one memo, because the average of two memos would reveal the
range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rappor.errors import ParamsError
from rappor.mechanism.bloom import check_string_params, filter_bits, value_bytes
from rappor.mechanism.dialects import Place, make_place
from rappor.mechanism.kinds import HASHED, check_kind
from rappor.mechanism.predicates import (
    Ranges,
    boolean_bit,
    category_bit,
    category_index,
    free_bits,
)
from rappor.mechanism.views import Views
from rappor.params import Params
from rappor.typing import Kind

Signal = Callable[[object], tuple[int, bytes]]  # value -> B and the memo input


def signal_of(
    params: Params,
    kind: Kind,
    dialect: str,
    cohort: int,
    categories: Sequence[str] | None,
    ranges: Ranges | None,
    views: Views | None = None,
) -> Signal:
    """The function value -> (B, memo input) of one client; ParamsError if the parts do not fit."""
    check_kind(kind)
    place = make_place(dialect, cohort, params)
    if categories is not None and kind != "category":
        raise ParamsError(f"categories belong to kind 'category', not to kind {kind!r}")
    if ranges is not None and kind != "ordinal":
        raise ParamsError(f"ranges belong to kind 'ordinal', not to kind {kind!r}")
    if (views is not None) != (kind == "tuple"):
        raise ParamsError(f"fields belong to kind 'tuple', which needs them; the kind is {kind!r}")
    if kind not in HASHED:
        return _by_bits(_predicate(params, kind, categories, ranges), params.k)
    check_string_params(params)
    if views is not None:
        return _by_view(views, views.table(params.m)[cohort], place)

    def of_string(value: object) -> tuple[int, bytes]:
        data = None
        try:
            if type(value) is str:
                data = value.encode()
        except UnicodeEncodeError:
            pass  # raised again below, without the value that this error holds
        if data is None:
            data = value_bytes(value)
        bits = 0
        for position in place(data):
            bits |= 1 << position
        return bits, data

    return of_string


def _by_view(views: Views, view: int, place: Place) -> Signal:
    def of_tuple(value: object) -> tuple[int, bytes]:
        data = views.encode(view, value)
        return filter_bits(place(data)), data

    return of_tuple


def _predicate(
    params: Params, kind: Kind, categories: Sequence[str] | None, ranges: Ranges | None
) -> Callable[[object], int]:
    if kind != "bits" and params.h != 1:
        raise ParamsError(f"kind {kind!r} sets one bit for a value: h must be 1, got {params.h}")
    match kind:
        case "category":
            if categories is None:
                raise ParamsError("kind 'category' needs categories: a list of strings, a bit each")
            index = category_index(categories)
            _check_bits(kind, params, len(index), "categories")
            return lambda value: category_bit(value, index)
        case "ordinal":
            if not isinstance(ranges, Ranges):
                raise ParamsError(
                    "kind 'ordinal' needs ranges: rappor.Ranges((18, 65)), for example"
                )
            _check_bits(kind, params, ranges.count, "ranges")
            return lambda value: 1 << ranges.range_of(value)
        case "boolean":
            if params.k != 1:
                raise ParamsError(f"k must be 1 for kind 'boolean', got k = {params.k}")
            return boolean_bit
        case _:
            return lambda value: free_bits(value, params.k)


def _check_bits(kind: Kind, params: Params, needed: int, of_what: str) -> None:
    if params.k < needed:
        raise ParamsError(
            f"k must be at least {needed} for {needed} {of_what} of kind {kind!r}, "
            f"got k = {params.k}"
        )


def _by_bits(predicate: Callable[[object], int], k: int) -> Signal:
    size = (k + 7) // 8

    def of_bits(value: object) -> tuple[int, bytes]:
        bits = predicate(value)
        return bits, bits.to_bytes(size, "little")

    return of_bits
