"""Counts: how many reports each cohort sent, and how many of them had each bit set (§4).

Decoding needs these m × (k+1) numbers, and nothing else. They form a commutative monoid: the counts
of threads, machines, days and partitions add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike

from rappor.aggregate import counts_formats
from rappor.checks import show, whole
from rappor.errors import DecodeError, ParamsError
from rappor.mechanism.dialects import DIALECTS
from rappor.mechanism.kinds import check_kind
from rappor.params import Params, check_params
from rappor.typing import IntArray

_MUST_AGREE = ("params", "kind", "dialect", "collection", "version")


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Reports and set bits by cohort.

    Attributes:
        params: the parameters that the reports were made with.
        totals: N_j, reports in cohort j; shape (m,), 64-bit.
        ones: c_ij, reports in cohort j with bit i set; shape (m, k), 64-bit.
        kind: the kind of collection.
        dialect: how strings were placed; None if unknown.
        collection: the collection's name; None if unknown.
        version: the collection's version; None if unknown.
        reports_per_client: the largest number of reports that one client can have made on one
            value; None if unknown.
    """

    params: Params
    totals: IntArray = field(repr=False)
    ones: IntArray = field(repr=False)
    kind: str = "string"
    dialect: str | None = None
    collection: str | None = None
    version: int | str | None = None
    reports_per_client: int | None = 1

    def __init__(
        self,
        params: Params,
        totals: ArrayLike,
        ones: ArrayLike,
        kind: str = "string",
        dialect: str | None = None,
        collection: str | None = None,
        version: int | str | None = None,
        reports_per_client: int | None = 1,
    ) -> None:
        check_params(params)
        if dialect is not None and (not isinstance(dialect, str) or dialect not in DIALECTS):
            raise ParamsError(f"dialect must be one of {', '.join(DIALECTS)}; got {show(dialect)}")
        if reports_per_client is not None:
            reports_per_client = whole("reports_per_client", reports_per_client, 1)
        sent = whole_numbers("totals", totals, (params.m,))
        set_bits = whole_numbers("ones", ones, (params.m, params.k))
        too_many = np.argwhere(set_bits > sent[:, None])
        if len(too_many):
            cohort, bit = (int(index) for index in too_many[0])
            raise DecodeError(
                f"cohort {cohort} has {sent[cohort]} reports, but bit {bit} is set in "
                f"{set_bits[cohort, bit]} of them: count the reports again"
            )
        assign = object.__setattr__
        assign(self, "params", params)
        assign(self, "totals", sent)
        assign(self, "ones", set_bits)
        assign(self, "kind", check_kind(kind))
        assign(self, "dialect", dialect)
        assign(self, "collection", collection)
        assign(self, "version", version)
        assign(self, "reports_per_client", reports_per_client)

    @classmethod
    def zero(cls, params: Params, **about: Any) -> Counts:
        """No reports at all: the neutral element of addition."""
        check_params(params)
        empty = np.zeros((params.m, params.k), np.int64)
        return cls(params, empty[:, 0], empty, **about)

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        params: Params,
        *,
        kind: str = "string",
        dialect: str | None = None,
        collection: str | None = None,
        version: int | str | None = None,
        reports_per_client: int | None = None,
    ) -> Counts:
        """Counts from google/rappor's counts.csv, which holds the numbers only.

        Raises:
            DecodeError: names the file, the line, what was expected and what was found.
        """
        check_params(params)
        totals, ones = counts_formats.read_counts(path, params)
        return cls(params, totals, ones, kind, dialect, collection, version, reports_per_client)

    def to_csv(self, path: str | PathLike[str] | TextIO) -> None:
        """Write google/rappor's counts.csv (also to an open text stream)."""
        counts_formats.write_counts(path, self.totals, self.ones)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> Counts:
        """The counts that `to_parquet` wrote."""
        totals, ones, about = counts_formats.read_parquet(path)
        return cls(totals=totals, ones=ones, **about)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file with the counts and everything about them."""
        counts_formats.write_parquet(path, self.totals, self.ones, self._about())

    @classmethod
    def from_npz(cls, path: str | PathLike[str]) -> Counts:
        """The counts that `to_npz` wrote."""
        totals, ones, about = counts_formats.read_npz(path)
        return cls(totals=totals, ones=ones, **about)

    def to_npz(self, path: str | PathLike[str]) -> None:
        """Write an npz file with the counts and everything about them."""
        counts_formats.write_npz(path, self.totals, self.ones, self._about())

    def _about(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in (*_MUST_AGREE, "reports_per_client")}

    @property
    def reports(self) -> int:
        """N, over all cohorts."""
        return sum(self.totals.tolist())  # exact: all cohorts together may exceed 64 bits

    def __add__(self, other: object) -> Counts:
        """The sum of two parts of one period, or of one population split in any way.

        `reports_per_client` becomes the larger of the two. Use `sum_periods` for different periods,
        because a client may have reported in each.
        """
        if not isinstance(other, Counts):
            return NotImplemented
        for name in _MUST_AGREE:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise DecodeError(f"cannot add counts of another {name}: {mine} and {theirs}")
        known = _known((self, other))
        return replace(
            self,
            totals=_sum(self.totals, other.totals),
            ones=_sum(self.ones, other.ones),
            reports_per_client=max(known) if known else None,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        same = all(getattr(self, name) == getattr(other, name) for name in _MUST_AGREE)
        return (
            same
            and self.reports_per_client == other.reports_per_client
            and np.array_equal(self.totals, other.totals)
            and np.array_equal(self.ones, other.ones)
        )

    @staticmethod
    def sum_periods(parts: Iterable[Counts]) -> Counts:
        """The sum over different periods: one client's reports on one value add up."""
        listed = list(parts)
        if not listed:
            raise DecodeError("no counts to add up")
        total = listed[0]
        for part in listed[1:]:
            total = total + part
        known = _known(listed)
        return replace(total, reports_per_client=sum(known) if known else None)


def _known(parts: Sequence[Counts]) -> list[int]:
    """Reports per client of all parts; empty if it is unknown for one of them."""
    known = [part.reports_per_client for part in parts if part.reports_per_client is not None]
    return known if len(known) == len(parts) else []


def _sum(one: IntArray, other: IntArray) -> IntArray:
    total = one + other
    if (total < one).any():
        raise DecodeError("counts above 2^63 - 1 cannot be added: add up fewer of them")
    return total


def whole_numbers(name: str, given: ArrayLike, shape: tuple[int, ...]) -> IntArray:
    """A read-only 64-bit copy, or DecodeError."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, object)
    if array.shape != shape:
        raise DecodeError(
            f"{name} must have the shape {shape} that its params ask for, got {array.shape}"
        )
    if array.dtype.kind not in "iuf" or array.dtype == np.bool_:
        raise DecodeError(f"{name} must be whole numbers, got {array.dtype}")
    if array.dtype.kind == "f" and not (np.isfinite(array).all() and (array % 1 == 0).all()):
        raise DecodeError(f"{name} must be whole numbers")
    # A float of 2^63 is above the largest integer but compares as equal to it.
    if array.size and (array.min() < 0 or array.max() >= 2**63):
        raise DecodeError(f"{name} must be whole numbers from 0 to 2^63 - 1")
    copy: IntArray = array.astype(np.int64)
    copy.setflags(write=False)
    return copy
