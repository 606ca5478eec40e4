"""The design matrix X: which bits of which cohorts each candidate sets (§4).

X has m * k rows and M columns of zeros and ones, at most m * h ones in each: what is kept is the
positions of the ones, 2 bytes each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.decoding.candidates import Candidates
from rappor.decoding.placement import CHUNK, Positions, Progress, place_all
from rappor.errors import DecodeError
from rappor.params import Params

if TYPE_CHECKING:
    from scipy.sparse import csc_array


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """The bits of M candidates.

    Attributes:
        params: k, h and m are used.
        strings: the candidates; column i of X is `strings.strings[i]`.
        index: shape (m * h, M); row j * h + l is the bit of hash l in cohort j, or k where that bit
            is already set by an earlier hash of the same cohort.
        repeated: the bits that those k stand for, in the order of `index` row by row.
        dialect: how the candidates were placed; None where that came from a map.
    """

    params: Params
    strings: Candidates
    index: Positions = field(repr=False)
    repeated: Positions = field(repr=False)
    dialect: str | None = None

    def __len__(self) -> int:
        """M, the number of candidates."""
        return len(self.strings)

    @property
    def collisions(self) -> int:
        """How many times two hashes of one cohort set the same bit, over all candidates."""
        return len(self.repeated)

    def positions(self) -> Positions:
        """The bits in hash order, repeated ones in full: what `place_all` gave; entries below k."""
        found = self.index.copy()
        found[found == self.params.k] = self.repeated
        return found

    def subset(self, which: NDArray[np.intp]) -> Design:
        """The design of some candidates, ascending."""
        strings = Candidates(tuple(self.strings.strings[number] for number in which))
        index = np.ascontiguousarray(self.index[:, which])
        repeated = np.empty(0, np.uint16)  # only a map needs them
        return Design(self.params, strings, index, repeated, self.dialect)

    def columns(self, which: ArrayLike, *, ordered: bool = True) -> csc_array:
        """Some columns of X, of shape (m * k, len(which)); row j * k + i is bit i of cohort j.

        Unless `ordered`, the rows of a column may be in any order, which takes half the time.

        >>> build_design(["V_1"], Params(8, 2, 2, 0.5, 0.5, 0.75), "google").columns([0]).indices
        array([ 0,  7, 12, 15], dtype=int32)
        """
        from scipy.sparse import csc_array  # takes a while to load, and only decoding needs it

        k, h = self.params.k, self.params.h
        found = self.index[:, np.asarray(which, np.intp)].T
        first_rows = np.repeat(np.arange(self.params.m, dtype=np.int32) * k, h)
        here = found < k
        starts = np.zeros(len(found) + 1, np.int32)
        np.cumsum(here.sum(axis=1), out=starts[1:])
        rows = (found + first_rows)[here]
        shape = (self.params.m * k, len(found))
        matrix = csc_array((np.ones(len(rows)), rows, starts), shape=shape)
        if ordered:
            matrix.sort_indices()
        return matrix

    def gather(self, table: ArrayLike) -> NDArray[np.float64]:
        """X^T times a table: for each candidate the sum of the entries at its bits.

        Summed over cohorts, then hashes, in 64-bit floats: the same bits on every machine.

        Args:
            table: shape (m, k + 1); column k, which repeated bits point to, must be 0.

        Returns:
            Shape (M,).

        >>> design = build_design(["V_1"], Params(8, 2, 2, 0.5, 0.5, 0.75), "google")
        >>> table = np.zeros((2, 9))
        >>> table[0, 7], table[1, 4] = 1.5, 2.0
        >>> design.gather(table)
        array([3.5])
        """
        numbers = np.asarray(table, np.float64)
        shape = (self.params.m, self.params.k + 1)
        if numbers.shape != shape:
            raise DecodeError(f"the table must have the shape {shape}, got {numbers.shape}")
        if numbers[:, -1].any():
            raise DecodeError("the last column of the table must be 0: it stands for no bit")
        return gather_sums(numbers, self.index, self.params.h)

    def scatter(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """X times a vector: what these shares of candidates put on the bits, shape (m * k,).

        >>> build_design(["V_1"], Params(8, 2, 2, 0.5, 0.5, 0.75), "google").scatter(np.ones(1))
        array([1., 0., 0., 0., 0., 0., 0., 1., 0., 0., 0., 0., 1., 0., 0., 1.])
        """
        k, h, m = self.params.k, self.params.h, self.params.m
        which = np.flatnonzero(share)
        first = np.repeat(np.arange(m) * (k + 1), h)[:, None]
        rows = (self.index[:, which] + first).ravel()
        table = np.bincount(rows, np.tile(share[which], m * h), minlength=m * (k + 1))
        return np.asarray(table.reshape(m, k + 1)[:, :k].ravel(), np.float64)

    def groups(self) -> list[NDArray[np.intp]]:
        """Candidates that no report can tell apart: the same bits are set in every cohort.

        Each group is two or more column numbers, ascending; groups are in the order of their first.
        """
        keys = gather_sums(_random_words(self.params), self.index, self.params.h)
        order = np.argsort(keys, kind="stable")
        same = keys[order[1:]] == keys[order[:-1]]
        later = np.flatnonzero(same) + 1
        for start in range(0, len(later), CHUNK):
            here = later[start : start + CHUNK]
            one, other = self._sorted(order[here]), self._sorted(order[here - 1])
            if (one != other).any():  # two keys of 64 bits met by chance, or by design
                return self._groups_by_bits(order, same)
        return _runs(order, same)

    def _groups_by_bits(
        self, order: NDArray[np.intp], same: NDArray[np.bool_]
    ) -> list[NDArray[np.intp]]:
        """Groups of equal keys, split by what their bits really are."""
        found = []
        for alike in _runs(order, same):
            members: dict[bytes, list[int]] = {}
            for number in alike:
                members.setdefault(self._sorted(number[None]).tobytes(), []).append(int(number))
            found += [np.array(columns) for columns in members.values() if len(columns) > 1]
        return sorted(found, key=lambda group: int(group[0]))

    def _sorted(self, which: NDArray[np.intp]) -> Positions:
        """The bits of some candidates as sets: ascending in each cohort; shape (m, h, n)."""
        shape = (self.params.m, self.params.h, len(which))
        return np.sort(self.index[:, which].reshape(shape), axis=1)


def build_design(
    candidates: Candidates | Iterable[str | bytes],
    params: Params,
    dialect: str,
    progress: Progress | None = None,
) -> Design:
    """The bits of candidates in a dialect.

    Args:
        candidates: distinct or not, in any order.
        params: k, h and m are used.
        dialect: one of `rappor.mechanism.DIALECTS`.
        progress: called with the placements made since the last call; they add up to M * m.

    >>> build_design(["V_2", "V_1"], Params(8, 2, 2, 0.5, 0.5, 0.75), "google").index.tolist()
    [[0, 0], [7, 5], [7, 5], [4, 1]]
    """
    listed = Candidates.of(candidates)
    return design_of(
        listed, place_all(listed.encoded(), params, dialect, progress), params, dialect
    )


def design_of(
    candidates: Candidates, placed: Positions, params: Params, dialect: str | None
) -> Design:
    """The design of candidates whose bits are known; `placed` becomes its index and is changed."""
    repeated = [np.empty(0, np.uint16)]
    if dialect != "rappor-v1":  # which places h distinct bits
        for row in range(len(placed)):
            earlier = placed[row - row % params.h : row]
            again = (earlier == placed[row]).any(axis=0)
            repeated.append(placed[row, again])
            placed[row, again] = params.k
    every = np.concatenate(repeated)
    placed.setflags(write=False)
    every.setflags(write=False)
    return Design(params, candidates, placed, every, dialect)


def _random_words(params: Params) -> NDArray[np.uint64]:
    """64 bits for each bit of each cohort, 0 for no bit: sums of them tell sets of bits apart.

    The finaliser of splitmix64 on the numbers 1, 2, ...: fixed, so that results repeat.
    """
    words = np.arange(1, params.m * (params.k + 1) + 1, dtype=np.uint64)
    words *= np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words ^= words >> np.uint64(shift)
        words *= np.uint64(factor)
    words ^= words >> np.uint64(31)
    table = words.reshape(params.m, params.k + 1)
    table[:, -1] = 0
    return table


def _runs(order: NDArray[np.intp], same: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Runs of `order` in which each entry is the `same` as the one before, two or more long."""
    edges = np.flatnonzero(np.diff(same, prepend=False, append=False))
    runs = [order[start : end + 1] for start, end in edges.reshape(-1, 2)]
    return sorted(runs, key=lambda run: int(run[0]))


# Sums of table entries at each candidate's bits: the one loop that runs over M × m × h. numpy and
# the compiled loop for large designs give the same result to the last bit, because both add up each
# candidate's entries in the same order, cohort by cohort and hash by hash.

# Index entries from which the compiled loop is used. It halves the time of a pass, but its first
# use in a process costs half a second (one and a half when nothing is cached yet).
COMPILE_FROM = 1 << 28

# Candidates at a time, so that their running sums stay in the processor's cache.
_BLOCK = 4096

Table = NDArray[Any]  # (m, k + 1) numbers of one type
Loop = Callable[[Table, Positions, int, Table], None]


def gather_sums(table: Table, index: Positions, h: int) -> Table:
    """Σ over cohorts j, then hashes l, of table[j, index[j * h + l, i]], for every column i.

    Args:
        table: shape (m, k + 1), of any numeric type; unsigned integers wrap around.
        index: shape (m * h, M), entries from 0 to k.
        h: hash functions, the rows of `index` for each cohort.

    Returns:
        Shape (M,), of the table's type.

    >>> gather_sums(np.array([[1.0, 2.0, 4.0]]), np.array([[0, 1], [2, 2]], np.uint16), 2).tolist()
    [5.0, 6.0]
    """
    table = np.ascontiguousarray(table)
    sums: Table = np.zeros(index.shape[1], table.dtype)
    loop = _compiled() if index.size >= COMPILE_FROM else None
    (loop or _numpy_loop)(table, index, h, sums)
    return sums


def _numpy_loop(table: Table, index: Positions, h: int, sums: Table) -> None:
    entries = np.empty(min(4 * _BLOCK, len(sums)), table.dtype)
    for start in range(0, len(sums), 4 * _BLOCK):
        block = sums[start : start + 4 * _BLOCK]
        here = entries[: len(block)]
        for row, positions in enumerate(index[:, start : start + 4 * _BLOCK]):
            # "clip" only because it is the mode that writes to `out` without a copy.
            np.take(table[row // h], positions, out=here, mode="clip")
            block += here


def _plain_loop(table: Table, index: Positions, h: int, sums: Table) -> None:
    """For the compiler only: the loop in the order of memory."""
    rows, size = index.shape
    for start in range(0, size, _BLOCK):
        end = min(start + _BLOCK, size)
        for row in range(rows):
            entries = table[row // h]
            positions = index[row]
            for i in range(start, end):
                sums[i] += entries[positions[i]]


@cache
def _compiled() -> Loop | None:
    """The loop compiled by numba; None if numba is not installed.

    No fast maths: re-ordered sums would make results depend on the processor.
    """
    try:
        import numba
    except ImportError:
        return None
    try:
        loop = numba.njit(nogil=True, cache=True)(_plain_loop)
    except RuntimeError:  # no directory that it may keep the compiled code in
        loop = numba.njit(nogil=True)(_plain_loop)
    return cast(Loop, loop)
