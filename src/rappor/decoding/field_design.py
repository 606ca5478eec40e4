"""One field of an association: its values, and what each puts on the bits of every cohort.

Each report gives the numbers (1, x_1, ..., x_k) for a field, x_i = (bit i - p*)/(q* - p*). Their
mean over reports that hold a value is (1, B_1, ..., B_k), the value's filter. A field of strings
has one value more, "other": all strings that are not listed. A bit of an unlisted string is set
with the chance h/k, whatever the string is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.checks import plural
from rappor.decoding.candidates import Candidates, quoted
from rappor.decoding.decode import _design, _labels
from rappor.decoding.design import Design
from rappor.decoding.repeats import shared_noise
from rappor.errors import DecodeError
from rappor.mechanism.channel import channel
from rappor.mechanism.predicates import Ranges
from rappor.params import Params
from rappor.typing import FloatArray

OTHER = "other"
MAX_VALUES = 2_000
FieldValues = Iterable[str | bytes] | str | PathLike[str] | Candidates | Design | Ranges | None


def pair_of(values: Any) -> tuple[FieldValues, FieldValues]:
    """What to look for in two variables, or DecodeError if it is not a pair."""
    is_list = isinstance(values, Sequence) and not isinstance(values, (str, bytes))
    if not is_list or len(values) != 2:
        raise DecodeError(
            "candidates must be a pair: what to look for in the first variable, and in the second"
        )
    return values[0], values[1]


@dataclass(frozen=True, slots=True, eq=False)
class FieldDesign:
    """The values of a field.

    Attributes:
        name: what the field is called.
        labels: its values; for an open field the last one is "other".
        is_open: whether there may be values that are not listed.
        table: shape (m, 1 + k, values): 1, then the chance that a report of the value has each bit
            of its filter set.
        params: the parameters of its bits.
        notes: what a reader should know about the list.
    """

    name: str
    labels: tuple[str, ...]
    is_open: bool
    table: FloatArray = field(repr=False)
    params: Params
    notes: tuple[str, ...] = ()

    @property
    def listed(self) -> int:
        """How many values are listed: all but "other"."""
        return len(self.labels) - self.is_open

    def noise(self) -> FloatArray:
        """Variance of x_i for reports of each value: shape (m, 1 + k, values); 0 for the 1.

        The bits of an unlisted string also vary with the string, by B(1 - B).
        """
        if_zero, if_one = channel(self.params).noise
        noise = if_zero + (if_one - if_zero) * self.table
        if self.is_open:
            chance = self.table[:, :, -1]
            noise[:, :, -1] += chance * (1.0 - chance)
        noise[:, 0] = 0.0
        return noise

    def shared(self) -> FloatArray:
        """Covariance of x_i in two reports of one client on one value; shape (1 + k,)."""
        both = np.full(self.params.k + 1, shared_noise(self.params))
        both[0] = 0.0
        return both


def field_design(
    name: str, counts: Counts, values: FieldValues, dialect: str | None
) -> FieldDesign:
    """The values of a field from what it may hold: candidates, categories, ranges, or nothing.

    Args:
        name: what the field is called.
        counts: the counts of its bits; kind and params are used.
        values: candidates for strings; names for categories; `Ranges` or names for ordinals; None,
            or two names (of true and of false), for booleans.
        dialect: how clients place strings; default: the dialect of the counts.
    """
    params, m = counts.params, counts.params.m
    if counts.kind == "bits":
        raise DecodeError(
            f"{name} is of kind bits: its bits overlap, so that it has no list of values; decode "
            "it by itself"
        )
    if counts.kind == "string":
        return string_field(name, counts, values, dialect)
    labels = _closed_labels(name, counts, values)
    if len(labels) < 2:
        raise DecodeError(
            f"{name} has one value: a table of 1 × n has no association; decode the other field "
            "by itself"
        )
    one = np.zeros((params.k + 1, len(labels)))
    one[0] = 1.0
    bits = np.arange(1 if counts.kind == "boolean" else len(labels))
    one[1 + bits, bits] = 1.0
    return FieldDesign(name, labels, False, np.repeat(one[None], m, axis=0), params)


def string_field(
    name: str, counts: Counts, values: FieldValues, dialect: str | None
) -> FieldDesign:
    """The listed strings of a field, and "other"."""
    design, notes = _design(counts, values, dialect)
    if len(design) > MAX_VALUES:
        raise DecodeError(
            f"{name} has {len(design):,} candidates; an association takes at most {MAX_VALUES:,} "
            "values of a field: decode it by itself first, and give those that were detected"
        )
    params = counts.params
    cohorts = int((counts.totals > 0).sum()) or params.m
    equations = cohorts * params.k
    if len(design) > equations:
        raise DecodeError(
            f"{name} has {len(design):,} candidates, but {cohorts} cohorts of {params.k} bits give "
            f"{equations:,} equations: list at most {equations:,}, or collect with "
            f"{-(-len(design) // params.k):,} cohorts"
        )
    groups = design.groups()
    if groups:
        alike = [design.strings.strings[int(column)] for column in groups[0]]
        raise DecodeError(
            f"{name}: {quoted(alike)} set the same bits in every cohort and cannot be told apart; "
            "keep one of them"
        )
    table = np.zeros((params.m, params.k + 1, len(design) + 1))
    table[:, 1:, :-1] = (
        design.columns(np.arange(len(design))).toarray().reshape(params.m, params.k, len(design))
    )
    table[:, 1:, -1] = chance_of_bit(params, design.dialect)
    table[:, 0] = 1.0
    labels = (*design.strings.strings, other_name(design.strings.strings))
    return FieldDesign(name, labels, True, table, params, tuple(notes))


def chance_of_bit(params: Params, dialect: str | None) -> float:
    """The chance that a string sets a bit: h/k, less where two hashes may set the same one."""
    if dialect in ("rappor-v1", None):
        return params.h / params.k
    return float(1 - (1 - 1 / params.k) ** params.h)


def other_name(strings: Sequence[str]) -> str:
    """A name for the strings that are not listed, unlike those that are."""
    name = OTHER
    while name in strings:
        name = f"({name})"
    return name


def _closed_labels(name: str, counts: Counts, values: Any) -> tuple[str, ...]:
    if isinstance(values, Ranges):
        labels: Sequence[str] = values.labels
    else:
        labels = _labels(values) or ()
    k = counts.params.k
    if counts.kind == "boolean":
        labels = labels or ("true", "false")
        if len(labels) != 2:
            raise DecodeError(
                f"{name} is boolean: name true and false, or leave the names out; got "
                f"{plural(len(labels), 'name', 'names')}"
            )
    elif not labels:
        labels = [f"bit {bit}" for bit in range(k)]
    if counts.kind != "boolean" and len(labels) > k:
        raise DecodeError(f"{name} has {k} bits, but {len(labels)} names: give at most {k}")
    if len(set(labels)) != len(labels):
        raise DecodeError(f"{name} has a name twice: give each value a name of its own")
    return tuple(labels)
