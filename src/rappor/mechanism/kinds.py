"""Kinds of collection, and how much two values of a kind can differ: the pairs (u, d).

Between two values of a kind, at most u bits go 0 -> 1 while d bits go 1 -> 0. Every ε is computed
from these pairs (docs/theory/kinds.md), never as a fraction of another kind's ε.
"""

from __future__ import annotations

from typing import NamedTuple

from rappor.checks import show
from rappor.errors import ParamsError
from rappor.params import Params, check_params
from rappor.typing import Kind


class BitChange(NamedTuple):
    """One extreme way in which two filters of a kind differ."""

    up: int
    down: int


KINDS: dict[Kind, str] = {
    "string": "any string, hashed onto a Bloom filter with h bits",
    "category": "one of a fixed list of strings, one bit each (Basic RAPPOR)",
    "boolean": "true or false, one bit",
    "ordinal": "a number, by the disjoint range it lies in, one bit each",
    "bits": "k free bits: overlapping or cumulative predicates",
    "tuple": "two to four fields; a client reports those that its cohort chooses, as one string",
}
HASHED: tuple[Kind, ...] = ("string", "tuple")  # kinds of a Bloom filter, which have a dialect


def check_kind(kind: str) -> Kind:
    """The kind, or ParamsError listing the kinds."""
    if type(kind) is not str or kind not in KINDS:
        raise ParamsError(f"kind must be one of {', '.join(KINDS)}; got {show(kind)}")
    return kind


def extreme_changes(kind: Kind, params: Params) -> tuple[BitChange, ...]:
    """The pairs (u, d) between two values of the kind; every ε is the largest over them.

    A null report (the all-zero filter) adds (h, 0) and (0, h), which (h, h) covers. For a string
    or tuple with k < 2h, no two values differ by (h, h): the bound is safe but not tight.

    >>> extreme_changes("string", Params.preset("windows"))
    (BitChange(up=2, down=2),)
    """
    check_params(params)
    match check_kind(kind):
        case "string" | "tuple":
            return (BitChange(params.h, params.h),)
        case "category" | "ordinal":
            return (BitChange(1, 1),)
        case "boolean":
            return (BitChange(1, 0), BitChange(0, 1))
        case _:
            return (BitChange(params.k, 0), BitChange(0, params.k))
