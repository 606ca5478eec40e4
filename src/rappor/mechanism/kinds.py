"""Kinds of collection, and how far two values of a kind can lie apart: the pairs (u, d).

Between two values of a kind, at most u bits go 0 -> 1 while d bits go 1 -> 0 (R3). Every ε is
computed from these pairs (docs/theory/kinds.md), never from a fraction of another kind's ε.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from rappor.checks import show
from rappor.errors import ParamsError
from rappor.params import Params, check_params


class BitChange(NamedTuple):
    """One extreme way in which two filters of a kind differ."""

    up: int
    down: int


Kind: TypeAlias = Literal["string", "category", "boolean", "ordinal", "bits"]
KINDS: dict[str, str] = {
    "string": "any string, hashed onto a Bloom filter with h bits",
    "category": "one of a fixed list of strings, one bit each (Basic RAPPOR)",
    "boolean": "true or false, one bit",
    "ordinal": "a number, by the disjoint range it lies in, one bit each",
    "bits": "k free bits: overlapping or cumulative predicates",
}


def check_kind(kind: str) -> str:
    """The kind, or ParamsError listing the kinds."""
    if type(kind) is not str or kind not in KINDS:
        raise ParamsError(f"kind must be one of {', '.join(KINDS)}; got {show(kind)}")
    return kind


def extreme_changes(kind: str, params: Params) -> tuple[BitChange, ...]:
    """The pairs (u, d) between two values of the kind; every ε is the largest over them.

    A null report (the all-zero filter) adds (h, 0) and (0, h), which lie within (h, h); for a
    string with k < 2h, (h, h) cannot quite be reached and the bound is safe but not tight.

    >>> extreme_changes("string", Params.preset("windows"))
    (Change(up=2, down=2),)
    """
    check_params(params)
    match check_kind(kind):
        case "string":
            return (BitChange(params.h, params.h),)
        case "category" | "ordinal":
            return (BitChange(1, 1),)
        case "boolean":
            return (BitChange(1, 0), BitChange(0, 1))
        case _:
            return (BitChange(params.k, 0), BitChange(0, params.k))
