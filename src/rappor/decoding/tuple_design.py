"""Two fields of a tuple: their values, and which bits each pair of values sets in which cohort.

The cohort chooses a view (docs/theory/views.md). Cohorts that see both fields hash the pair as a
whole; cohorts that see one of them hash its value. A pair of which a value is not listed sets each
bit of a cohort that sees both with the chance h/k: these cohorts say nothing else about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from rappor.checks import plural, show
from rappor.decoding.candidates import Candidates
from rappor.decoding.decode import _labels
from rappor.decoding.field_design import (
    MAX_VALUES,
    FieldValues,
    enough,
    free_bits,
    more_equations,
    other_name,
    pair_of,
    without_candidates,
)
from rappor.decoding.placement import place_all
from rappor.errors import DecodeError
from rappor.mechanism.bloom import check_string_params
from rappor.mechanism.views import Field, Views
from rappor.params import MAX_M, Params

MAX_CELLS = 40_000
Sight = Literal["both", "first", "second"]
SIGHTS: tuple[Sight, ...] = ("both", "first", "second")


@dataclass(frozen=True, slots=True)
class TupleField:
    """One field of a tuple and the values to look for.

    Attributes:
        name: what the field is called.
        labels: its values; for an open field the last one is "other".
        is_open: whether there may be values that are not listed.
        parts: the bytes of each listed value in an encoded tuple.
        notes: what a reader should know about the list.
    """

    name: str
    labels: tuple[str, ...]
    is_open: bool
    parts: tuple[bytes, ...] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def listed(self) -> int:
        """How many values are listed: all but "other"."""
        return len(self.parts)


@dataclass(frozen=True, slots=True, eq=False)
class TupleDesign:
    """What each unknown share puts on the bits of the cohorts that are used.

    The unknown shares are, in this order: those of listed pairs, row by row (times the values of
    further closed fields that are always seen with them); those of a listed first and an unlisted
    second value, if a cohort sees the first alone; those of an unlisted first and a listed second
    value, if a cohort sees the second alone.

    Attributes:
        fields: the two fields.
        matrix: shape (cohorts × k, unknown shares), of zeros and ones.
        cohorts: the cohorts that are used: they have reports, and see one or both of the fields.
        sights: for each of them the index in `SIGHTS` of what it sees.
        further: combinations of further fields; 1 if there are none.
        first_alone: the shares of (listed, other) are known.
        second_alone: the shares of (other, listed) are known.
    """

    fields: tuple[TupleField, TupleField]
    matrix: csr_array = field(repr=False)
    cohorts: NDArray[np.intp] = field(repr=False)
    sights: NDArray[np.intp] = field(repr=False)
    further: int
    first_alone: bool
    second_alone: bool

    @property
    def shape(self) -> tuple[int, int]:
        """Listed values of the first and of the second field."""
        return self.fields[0].listed, self.fields[1].listed

    @property
    def pairs(self) -> int:
        """Unknown shares of listed pairs."""
        return self.shape[0] * self.shape[1] * self.further

    def may_hold_others(self, sight: Sight) -> bool:
        """Whether a report of such a cohort may hold a value that is not listed."""
        first, second = (each.is_open for each in self.fields)
        return {"both": first or second, "first": first, "second": second}[sight]


def tuple_field(declared: Field, values: FieldValues) -> TupleField:
    """The values of a field: candidates for strings; else None, or some of those it may have."""
    name = declared.name
    if declared.kind == "string":
        return _string_field(name, values)
    if declared.kind == "boolean":
        known = {"true": b"true", "false": b"false"}
    elif declared.ranges is not None:
        known = {label: b"%d" % place for place, label in enumerate(declared.ranges.labels)}
    else:
        known = {label: label.encode() for label in declared.categories or ()}
    chosen = tuple(_labels(values) or known)
    unknown = [label for label in chosen if label not in known]
    if unknown:
        raise DecodeError(
            f"{name}: {show(unknown[0])} is not one of its values, which are "
            f"{', '.join(list(known)[:10])}"
        )
    if len(set(chosen)) != len(chosen):
        raise DecodeError(f"{name} has a value twice: list each value once")
    parts = tuple(known[label] for label in chosen)
    is_open = len(chosen) < len(known)
    labels = (*chosen, other_name(chosen)) if is_open else chosen
    if len(labels) < 2:
        raise DecodeError(
            f"{name} has one value: a table of 1 × n has no association; decode the other field "
            "by itself"
        )
    return TupleField(name, labels, is_open, parts)


def field_candidates(name: str, values: Any) -> Candidates:
    """The candidates of a field that holds strings: a list, or the name of a file."""
    if values is None:
        raise DecodeError(without_candidates(name))
    try:
        if isinstance(values, (str, PathLike)):
            return Candidates.read(values)
        return Candidates.of(values)
    except DecodeError as error:
        raise DecodeError(f"{name}: {error}") from None


def _string_field(name: str, values: Any) -> TupleField:
    listed = field_candidates(name, values)
    if len(listed) > MAX_VALUES:
        raise DecodeError(
            f"{name} has {len(listed):,} candidates; an association takes at most {MAX_VALUES:,} "
            "values of a field: list the frequent ones"
        )
    labels = (*listed.strings, other_name(listed.strings))
    return TupleField(name, labels, True, tuple(listed.encoded()), tuple(listed.notes))


def tuple_design(
    params: Params,
    totals: ArrayLike,
    views: Views,
    fields: tuple[TupleField, TupleField],
    dialect: str | None,
) -> TupleDesign:
    """The design of two fields.

    Args:
        params: k, h and m are used.
        totals: reports of each cohort, shape (m,); cohorts without reports are left out.
        views: what cohorts see.
        fields: the two fields.
        dialect: how clients place tuples; default rappor-v1.

    Raises:
        DecodeError: no cohort with reports sees both fields, or they give too few equations.
    """
    chosen = fields[0].name, fields[1].name
    whole, declared = _view_of_both(views, chosen)
    extra = tuple(tuple_field(each, None) for each in declared)
    further = int(np.prod([each.listed for each in extra], initial=1))
    seen_in = [whole, *(_view_of_one(views, name) for name in chosen)]
    sight_of = {view: place for place, view in enumerate(seen_in) if view is not None}
    table = np.array([sight_of.get(view, -1) for view in views.table(params.m)])
    cohorts = np.flatnonzero((table >= 0) & (np.asarray(totals) > 0))
    sights = table[cohorts]
    dialect = dialect or "rappor-v1"
    check_string_params(params)
    each_cohort = free_bits(params, dialect)
    _check_equations(each_cohort, views, whole, fields, further, int((sights == 0).sum()))
    alone = bool((sights == 1).any()), bool((sights == 2).any())
    encoded = [_encoded(views, whole, (*fields, *extra))]
    for place, view in enumerate(seen_in[1:]):
        encoded.append([] if view is None else _encoded(views, view, (fields[place],)))
    bits = [place_all(values, params, dialect) for values in encoded]
    shares = _shares(fields, further, alone)
    size = 1 + max(int(columns.max()) for _, columns in shares)
    k, h = params.k, params.h
    rows, columns = [], []
    for place, (cohort, sight) in enumerate(zip(cohorts.tolist(), sights.tolist(), strict=True)):
        values, of_share = shares[sight]
        set_bits = bits[sight][cohort * h : cohort * h + h, values].astype(np.int64)
        rows.append((place * k + set_bits).ravel())
        columns.append(np.tile(of_share, h))
    entries = np.concatenate(rows), np.concatenate(columns)
    matrix = csr_array((np.ones(len(entries[0])), entries), shape=(len(cohorts) * k, size))
    matrix.sum_duplicates()
    matrix.data[:] = 1.0  # a bit that two hashes of one value set is set once
    return TupleDesign(
        fields=fields,
        matrix=matrix,
        cohorts=cohorts,
        sights=sights,
        further=further,
        first_alone=not fields[1].is_open or alone[0],
        second_alone=not fields[0].is_open or alone[1],
    )


def _shares(
    fields: tuple[TupleField, TupleField], further: int, alone: tuple[bool, bool]
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each sight: values that set bits, and the unknown share that each stands for."""
    first, second = fields[0].listed, fields[1].listed
    pairs = np.arange(first * second * further)
    row, column = pairs // (second * further), pairs // further % second
    found = [(pairs, pairs), (row, pairs), (column, pairs)]
    size = len(pairs)
    for which in (0, 1):
        if fields[1 - which].is_open and alone[which]:
            own = np.arange(fields[which].listed)
            values, of_share = found[1 + which]
            joined = np.concatenate([values, own]), np.concatenate([of_share, size + own])
            found[1 + which] = joined
            size += len(own)
    return found


def _view_of_one(views: Views, name: str) -> int | None:
    """The view of one field alone."""
    alone = [place for place, view in enumerate(views.views) if view.fields == (name,)]
    return alone[0] if alone else None


def _view_of_both(views: Views, chosen: tuple[str, str]) -> tuple[int, list[Field]]:
    """The view that tells the table of both fields, and its others, which are closed."""
    declared = {each.name: each for each in views.fields}
    place = views.joint_view(*chosen)
    if place is not None:
        others = (name for name in views.views[place].fields if name not in chosen)
        return place, [declared[name] for name in others]
    holding = [view.fields for view in views.views if set(chosen) <= set(view.fields)]
    if not holding:
        raise DecodeError(
            f"no cohort sees {chosen[0]} and {chosen[1]} together: collect with a view of both"
        )
    strings = [
        name
        for name in min(holding, key=len)
        if name not in chosen and declared[name].kind == "string"
    ]
    raise DecodeError(
        f"{chosen[0]} and {chosen[1]} are only seen together with {strings[0]}, which holds "
        f"strings that cannot all be listed: collect with a view of {chosen[0]} and {chosen[1]}"
    )


def _encoded(views: Views, view: int, fields: Sequence[TupleField]) -> list[bytes]:
    """What clients of a view hash, for all combinations of listed values."""
    names = [each.name for each in fields]
    return [
        views.encode_parts(view, dict(zip(names, parts, strict=True)))
        for parts in product(*(each.parts for each in fields))
    ]


def _check_equations(
    each_cohort: int,
    views: Views,
    whole: int,
    fields: tuple[TupleField, TupleField],
    further: int,
    cohorts: int,
) -> None:
    """DecodeError if the cohorts that see both fields say too little about their pairs.

    A cohort tells its number of reports, the same in all of them, and `each_cohort` numbers more.
    """
    pairs = fields[0].listed * fields[1].listed * further
    if pairs > MAX_CELLS:
        raise DecodeError(
            f"a table of {pairs:,} pairs is more than {MAX_CELLS:,}: give fewer candidates"
        )
    needed = pairs + any(each.is_open for each in fields)  # the share of all others
    given = cohorts * each_cohort + 1
    if needed > given:
        wanted = cohorts_for(needed, each_cohort, views, whole)
        raise DecodeError(
            f"a table of {pairs:,} pairs needs {needed:,} equations, but "
            f"{plural(cohorts, 'cohort', 'cohorts')} with reports on both fields "
            f"{'gives' if cohorts == 1 else 'give'} {given:,}: list fewer candidates, or "
            f"collect with {more_equations(wanted)}"
        )


def cohorts_for(equations: int, each_cohort: int, views: Views, whole: int) -> int:
    """The cohorts with which a view has enough equations; more than `MAX_M` if none has."""
    seeing = -(-enough(equations) // each_cohort)
    m = max(int(seeing / views.views[whole].share), len(views.views))
    while m <= MAX_M and views.cohorts(m)[whole] < seeing:
        m += 1
    return m


def fields_of(
    views: Views, names: Sequence[str] | None, values: Sequence[FieldValues] | Mapping[str, Any]
) -> tuple[TupleField, TupleField]:
    """The two fields that were asked for, with their values."""
    declared = {each.name: each for each in views.fields}
    first, second = (
        tuple_field(declared[name], given)
        for name, given in values_by_field(views, names, values).items()
    )
    return first, second


def values_by_field(
    views: Views, names: Sequence[str] | None, values: Sequence[FieldValues] | Mapping[str, Any]
) -> dict[str, FieldValues]:
    """What to look for in the two fields that were asked for, in their order, by name.

    Raises:
        DecodeError: there are no such two fields, or the values are not theirs.
    """
    declared = [each.name for each in views.fields]
    chosen = tuple(names) if names is not None else tuple(declared)
    if len(chosen) != 2 or len(set(chosen)) != 2 or not set(chosen) <= set(declared):
        raise DecodeError(f"name two of the fields {', '.join(declared)}; got {', '.join(chosen)}")
    if not isinstance(values, Mapping):
        return dict(zip(chosen, pair_of(values), strict=True))
    unknown = [name for name in values if name not in chosen]
    if unknown:
        raise DecodeError(
            f"candidates for {unknown[0]}, but the fields are {chosen[0]} and {chosen[1]}: "
            "leave them out"
        )
    return {name: values.get(name) for name in chosen}
