"""Filters: the true bits B of every value in every cohort, for all values at once (§2, step 1).

`rappor.decoding.placement` places strings and tuples exactly as a client does; a category, a range
or a boolean has its own bit.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rappor.decoding.placement import place_all
from rappor.errors import EncodeError, ParamsError
from rappor.mechanism.views import Views
from rappor.params import Params
from rappor.typing import ByteArray, IntArray

_NO_BIT = -1


@dataclass(frozen=True, slots=True)
class Filters:
    """Where each value's bits are.

    Attributes:
        params: k, h and m are used.
        placed: strings and tuples: shape (m * h, M), row j * h + l the bit of hash l in cohort j;
            other kinds: shape (1, M), the same in all cohorts, -1 for no bit.
        hashed: whether the values are strings or tuples.
    """

    params: Params
    placed: NDArray[np.integer]
    hashed: bool

    def _rows(self, cohort: int) -> NDArray[np.integer]:
        h = self.params.h
        return self.placed[cohort * h : (cohort + 1) * h] if self.hashed else self.placed

    def ones(self, cohort: int, held: IntArray) -> IntArray:
        """How many clients of a cohort set each bit before any noise; held: (M,), → (k,).

        A bit that two hashes of one value set counts once.
        """
        rows = self._rows(cohort)
        truly = np.zeros(self.params.k, np.int64)
        for number, bits in enumerate(rows):
            first = ~(rows[:number] == bits).any(axis=0) & (bits != _NO_BIT)
            truly += np.bincount(bits[first], held[first], minlength=self.params.k).astype(np.int64)
        return truly

    def packed(self, cohort: int) -> ByteArray:
        """The filters of all values in one cohort, shape (M, ceil(k/8)), packed as on the wire."""
        rows = self._rows(cohort)
        filters = np.zeros((rows.shape[1], (self.params.k + 7) // 8), np.uint8)
        for bits in rows:
            which = np.flatnonzero(bits != _NO_BIT)
            at = bits[which]
            filters[which, at >> 3] |= (1 << (at & 7)).astype(np.uint8)
        return filters


def tuple_filters(names: Sequence[str], views: Views, params: Params, dialect: str) -> Filters:
    """The filters of tuples: in each cohort, those of what its view shows.

    Args:
        names: M tuples, each as a JSON object of its fields.
        views: the fields and the views.
        params: the parameters of the collection.
        dialect: how tuples are placed.
    """
    try:
        tuples = [json.loads(name) for name in names]
        shown = [
            [views.encode(view, value) for value in tuples] for view in range(len(views.views))
        ]
    except (EncodeError, ValueError) as error:
        raise ParamsError(
            f"population must be JSON objects with the fields of the tuple: {error}"
        ) from None
    of_view = [place_all(values, params, dialect) for values in shown]
    placed = np.empty_like(of_view[0])
    for cohort, view in enumerate(views.table(params.m)):
        rows = slice(cohort * params.h, (cohort + 1) * params.h)
        placed[rows] = of_view[view][rows]
    return Filters(params, placed, hashed=True)


def filters_of(
    names: Sequence[str], bits: Sequence[int] | None, params: Params, kind: str, dialect: str
) -> Filters:
    """The filters of these values.

    Args:
        names: M values.
        bits: for kinds without hashing, the bit of each value; None: value i sets bit i.
        params: the parameters of the collection.
        kind: string, category, ordinal or boolean.
        dialect: how strings are placed.
    """
    if kind == "string":
        try:
            values = [name.encode() for name in names]
        except UnicodeEncodeError:
            raise ParamsError("population must be Unicode text; half a surrogate pair") from None
        return Filters(params, place_all(values, params, dialect), hashed=True)
    if kind == "boolean":
        if params.k != 1 or set(names) - {"true", "false"}:
            raise ParamsError(
                'kind boolean has k = 1 and the values "true" and "false": give these'
            )
        own = [0 if name == "true" else _NO_BIT for name in names]
    else:
        own = list(range(len(names)) if bits is None else bits)
        if max(own) >= params.k:
            raise ParamsError(
                f"{max(own) + 1} values do not fit {params.k} bits: raise k, or give fewer"
            )
    return Filters(params, np.array([own], np.int64), hashed=False)
