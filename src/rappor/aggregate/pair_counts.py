"""PairCounts: which bits of two variables are set together, by cohort.

Two variables that a client reports in one message are associated through how often bit i of the
one and bit l of the other are both set. These m × (1 + k1 + k2 + k1 k2) numbers are all that
`rappor.associate` needs. They form a commutative monoid, like `Counts`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.aggregate.counts import Counts, whole_numbers
from rappor.aggregate.kernel import count, packed_rows
from rappor.checks import show
from rappor.errors import DecodeError, WireError
from rappor.params import Params
from rappor.typing import ByteArray, IntArray

_AT_ONCE = 1 << 12  # reports multiplied at once; 32-bit floats are exact up to 2^24


@dataclass(frozen=True, slots=True, eq=False)
class PairCounts:
    """Reports and set bits of two variables, by cohort.

    Attributes:
        first: the counts of the first variable, by itself.
        second: the counts of the second variable, of the same reports.
        both: reports in cohort j with bit i of the first and bit l of the second; shape
            (m, k1, k2), 64-bit.
    """

    first: Counts
    second: Counts
    both: IntArray = field(repr=False)

    def __init__(self, first: Counts, second: Counts, both: ArrayLike) -> None:
        for name, counts in (("first", first), ("second", second)):
            if not isinstance(counts, Counts):
                raise DecodeError(f"{name} must be Counts, got {show(counts)}")
        if not np.array_equal(first.totals, second.totals):
            raise DecodeError(
                "both variables must have the same reports in each cohort: count them together"
            )
        shape = (first.params.m, first.params.k, second.params.k)
        table = whole_numbers("both", both, shape)
        limit = np.minimum(first.ones[:, :, None], second.ones[:, None, :])
        fewest = first.ones[:, :, None] + second.ones[:, None, :] - first.totals[:, None, None]
        if (table > limit).any() or (table < fewest).any():
            raise DecodeError(
                "pairs of bits are set together more or less often than the single bits allow: "
                "count the reports again"
            )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "second", second)
        object.__setattr__(self, "both", table)

    @classmethod
    def zero(cls, first: Counts, second: Counts) -> PairCounts:
        """No reports at all, of two variables like these: the neutral element of addition."""
        none = (_emptied(first), _emptied(second))
        shape = (first.params.m, first.params.k, second.params.k)
        return cls(*none, np.zeros(shape, np.int64))

    @property
    def reports(self) -> int:
        """N, over all cohorts."""
        return self.first.reports

    @property
    def totals(self) -> IntArray:
        """N_j, reports in cohort j; shape (m,)."""
        return self.first.totals

    @property
    def reports_per_client(self) -> int | None:
        """The largest number of reports of one client on one pair of values; None if unknown."""
        known = (self.first.reports_per_client, self.second.reports_per_client)
        return None if None in known else max(number for number in known if number)

    def __add__(self, other: object) -> PairCounts:
        """The sum of two parts of one period, or of one population split in any way."""
        if not isinstance(other, PairCounts):
            return NotImplemented
        return PairCounts(
            self.first + other.first, self.second + other.second, self.both + other.both
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairCounts):
            return NotImplemented
        same = self.first == other.first and self.second == other.second
        return same and np.array_equal(self.both, other.both)

    def to_npz(self, path: str | PathLike[str]) -> None:
        """Write an npz file with the counts and everything about them."""
        from rappor.aggregate import counts_formats

        counts_formats.write_pair_npz(path, self)

    @classmethod
    def from_npz(cls, path: str | PathLike[str]) -> PairCounts:
        """The counts that `to_npz` wrote."""
        from rappor.aggregate import counts_formats

        first, second, both = counts_formats.read_pair_npz(path)
        return cls(Counts(**first), Counts(**second), both)


def _emptied(counts: Counts) -> Counts:
    empty = np.zeros((counts.params.m, counts.params.k), np.int64)
    return replace(counts, totals=empty[:, 0], ones=empty)


def count_pairs(
    first: ArrayLike | bytes,
    second: ArrayLike | bytes,
    cohorts: ArrayLike | int,
    params: tuple[Params, Params],
    *,
    kinds: tuple[str, str] = ("string", "string"),
    dialects: tuple[str | None, str | None] = (None, None),
    names: tuple[str | None, str | None] = (None, None),
    reports_per_client: int | None = None,
) -> PairCounts:
    """Count the bits of two variables that are set together.

    Args:
        first: packed reports of the first variable, as for `rappor.aggregate.count`.
        second: packed reports of the second variable, in the same order.
        cohorts: the cohort of each report, shape (N,), or one number for all of them.
        params: the parameters of the two variables; m must agree.
        kinds: the kinds of the two variables.
        dialects: how strings of each were placed, if known.
        names: what the two variables are called.
        reports_per_client: the largest number of reports of one client on one pair, if known.

    Raises:
        DecodeError: the two have another number of cohorts.
        WireError: a wrong shape, a cohort out of range, or a padding bit that is set.

    >>> params = Params(k=2, h=1, m=1, f=0.5, p=0.5, q=0.75)
    >>> pairs = count_pairs(bytes([0b11, 0b01]), bytes([0b10, 0b00]), [0, 0], (params, params))
    >>> pairs.both.tolist()
    [[[0, 1], [0, 1]]]
    """
    one, two = params
    if one.m != two.m:
        raise DecodeError(
            f"variables that are reported together share their cohorts: m is {one.m} and {two.m}; "
            "give params of one m"
        )
    rows = packed_rows(first, one.k), packed_rows(second, two.k)
    if len(rows[0]) != len(rows[1]):
        raise WireError(
            f"{len(rows[0])} reports of the first variable and {len(rows[1])} of the second: each "
            "report needs both"
        )
    sides = [
        count(
            rows[which],
            cohorts,
            params[which],
            kind=kinds[which],
            dialect=dialects[which],
            collection=names[which],
            reports_per_client=reports_per_client,
        )
        for which in (0, 1)
    ]
    where = np.broadcast_to(np.asarray(cohorts, np.int64), len(rows[0]))
    both = _set_together(*rows, where, sides[0].totals, (one.k, two.k))
    return PairCounts(sides[0], sides[1], both)


def _set_together(
    first: ByteArray, second: ByteArray, cohorts: IntArray, totals: IntArray, bits: tuple[int, int]
) -> IntArray:
    """Reports in which each pair of bits is set: matrix products, cohort by cohort."""
    table = np.zeros((len(totals), *bits), np.int64)
    order = np.argsort(cohorts, kind="stable")
    buffers = [np.empty((_AT_ONCE, k), np.float32) for k in bits]
    start = 0
    for cohort, sent in enumerate(totals.tolist()):
        for low in range(start, start + sent, _AT_ONCE):
            chosen = order[low : min(low + _AT_ONCE, start + sent)]
            one, two = (
                _unpacked(packed[chosen], buffer)
                for packed, buffer in zip((first, second), buffers, strict=True)
            )
            table[cohort] += np.rint(one.T @ two).astype(np.int64)
        start += sent
    return table


def _unpacked(packed: ByteArray, buffer: NDArray[np.float32]) -> NDArray[np.float32]:
    """The bits as 32-bit floats, in a buffer that is used again."""
    made = buffer[: len(packed)]
    made[...] = np.unpackbits(packed, axis=1, count=buffer.shape[1], bitorder="little")
    return made
