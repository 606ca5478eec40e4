"""One field of an association: its values, and what each puts on the bits of every cohort.

Each report gives the numbers (1, x_1, ..., x_k) for a field, x_i = (bit i - p*)/(q* - p*). Their
mean over reports that hold a value is (1, B_1, ..., B_k), the value's filter. A field of strings
has one value more, "other": all strings that are not listed. A bit of an unlisted string is set
with the chance h/k, whatever the string is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

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
from rappor.params import MAX_M, Params
from rappor.typing import FloatArray

OTHER = "other"
_SELDOM = 1_000  # draws of hashes, of which one may leave two values alike
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


class Told(NamedTuple):
    """What the bits of one cohort tell of a field.

    Attributes:
        values: how many values the field has, with "other".
        most: differences between values that a cohort tells at most.
        usual: how many it tells on average: several values may share a bit, and none set another.
        alike: the chance that two values set the same bits in a cohort.
    """

    values: int
    most: int
    usual: float
    alike: float

    @classmethod
    def all_of(cls, values: int) -> Told:
        """Of a closed field: every value has a bit of its own."""
        return cls(values, values - 1, values - 1, 0.0)

    @classmethod
    def by_hashes(cls, values: int, params: Params, dialect: str | None) -> Told:
        """Of strings that are hashed, and "other"."""
        k, h = params.k, params.h
        most = min(free_bits(params, dialect), values - 1)
        taken = k * (1.0 - (1.0 - h / k) ** (values - 1))
        return cls(values, most, min(taken, most), 1.0 / math.comb(k, h))


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
        told: what one cohort tells of the values.
        notes: what a reader should know about the list.
    """

    name: str
    labels: tuple[str, ...]
    is_open: bool
    table: FloatArray = field(repr=False)
    params: Params
    told: Told
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
    table = np.repeat(one[None], m, axis=0)
    return FieldDesign(name, labels, False, table, params, Told.all_of(len(labels)))


def string_field(
    name: str, counts: Counts, values: FieldValues, dialect: str | None
) -> FieldDesign:
    """The listed strings of a field, and "other"."""
    if values is None:
        raise DecodeError(without_candidates(name))
    try:
        design, notes = _design(counts, values, dialect)
    except DecodeError as error:
        raise DecodeError(f"{name}: {error}") from None
    if len(design) > MAX_VALUES:
        raise DecodeError(
            f"{name} has {len(design):,} candidates; an association takes at most {MAX_VALUES:,} "
            "values of a field: decode it by itself first, and give those that were detected"
        )
    params = counts.params
    cohorts = int((counts.totals > 0).sum()) or params.m
    told = Told.by_hashes(len(design) + 1, params, design.dialect)
    equations = cohorts * free_bits(params, design.dialect)
    if len(design) > equations:
        raise DecodeError(
            f"{name} has {len(design):,} candidates, but {cohorts} cohorts of {params.k} bits give "
            f"{equations:,} equations: list fewer candidates, or collect with "
            f"{more_equations(cohorts_enough(told))}"
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
    return FieldDesign(name, labels, True, table, params, told, tuple(notes))


def chance_of_bit(params: Params, dialect: str | None) -> float:
    """The chance that a string sets a bit: h/k, less where two hashes may set the same one."""
    if _sets_h_bits(params, dialect):
        return params.h / params.k
    return float(1 - (1 - 1 / params.k) ** params.h)


def free_bits(params: Params, dialect: str | None) -> int:
    """Bits of a cohort that tell strings apart.

    One less than there are where every string sets h of them: their sum is then known beforehand.

    >>> free_bits(Params(64, 2, 16, 0.5, 0.5, 0.75), "rappor-v1")
    63
    """
    return params.k - 1 if _sets_h_bits(params, dialect) else params.k


def _sets_h_bits(params: Params, dialect: str | None) -> bool:
    """Whether every string sets h bits; in other dialects two hashes may set the same one."""
    return params.h == 1 or dialect in ("rappor-v1", None)


def enough(equations: int) -> int:
    """A quarter more equations than are needed: hashes let some of them say the same."""
    return -(-5 * equations // 4)


def cohorts_enough(*fields: Told) -> int:
    """Cohorts that tell the values of these fields apart, and all combinations of them.

    There are a quarter more equations than unknown numbers. And every two values of each field are
    told apart by one cohort at once, in all but one of a thousand draws of hashes.

    >>> cohorts_enough(Told.by_hashes(20, Params(8, 1, 8, 0.5, 0.5, 0.75), None), Told.all_of(2))
    6
    """
    usual = math.prod(field.usual for field in fields)
    counted = enough(math.prod(field.values - 1 for field in fields)) / usual
    alike = 1.0 - math.prod(1.0 - field.alike for field in fields)
    chances = math.prod(math.comb(field.values, 2) for field in fields)
    apart = math.log(chances * _SELDOM) / -math.log(alike) if alike > 0 else 1.0
    return max(math.ceil(counted), math.ceil(apart), 1)


def more_equations(cohorts: int) -> str:
    """What gives more of them: so many cohorts, if there can be so many.

    >>> more_equations(16), more_equations(2_000)
    ('16 cohorts', 'more bits')
    """
    return f"{cohorts:,} cohorts" if cohorts <= MAX_M else "more bits"


def without_candidates(name: str) -> str:
    """What is wrong if a field of strings has no list."""
    return f"{name} holds strings: give candidates for it, a list or a file"


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
