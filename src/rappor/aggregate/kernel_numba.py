"""The counting kernel as machine code: positional popcount by carry-save adders.

16 blocks of reports are added bit by bit in registers (Harley-Seal); what they carry goes into
vertical counters, one bit plane for each power of two, so that single bits are unpacked only once
in a thousand steps. Reports that do not come in runs of one cohort are first collected in a small
buffer for each cohort.

The sizes are constants because LLVM turns the loop over lanes into vector instructions only when
it can see that sources and planes do not overlap.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate._engine import compiled
from rappor.aggregate.kernel_numpy import AnyInts
from rappor.typing import ByteArray, IntArray

Word = np.uint64
Int = int | np.int64
Words = NDArray[np.uint64]

LANES = 16  # words side by side: 16 blocks of them are one read of 2 KiB, which prefetches well
STEP = 16 * LANES  # words in one step
_TREE = 4  # planes of weight 1, 2, 4, 8: what the adders keep from step to step
_DEPTH = 10  # planes of weight 16 and up
_FULL = 2**_DEPTH - 1  # steps until those could overflow
PLANES = _TREE + _DEPTH
_COPIED = 2**20  # bytes copied at once where rows are not whole words


class State(NamedTuple):
    """Arrays that change from call to call; each cohort, or slice of it, has one buffer."""

    buffers: Words  # (m · slices · STEP,): reports that are not counted yet
    next_free: Words  # (m,): where a cohort's next report goes, in its first buffer
    planes: Words  # (m · slices, PLANES · LANES): vertical counters
    steps: IntArray  # (m · slices,): steps since the planes were emptied
    totals: IntArray  # (m,): N_j
    ones: IntArray  # (m, bits): c_ij, padded to whole words


@compiled
def _add_pair(kept: Word, one: Word, other: Word) -> tuple[Word, Word]:
    """A carry-save adder: three bits of one weight to a sum and a carry."""
    half = kept ^ one
    return half ^ other, (kept & one) | (half & other)


@compiled
def _step(source: Words, planes: Words) -> None:
    """Add 16 blocks of LANES words to the planes of one cohort."""
    for j in range(LANES):
        ones, twos = planes[j], planes[LANES + j]
        fours, eights = planes[2 * LANES + j], planes[3 * LANES + j]
        ones, a = _add_pair(ones, source[j], source[LANES + j])
        ones, b = _add_pair(ones, source[2 * LANES + j], source[3 * LANES + j])
        twos, c = _add_pair(twos, a, b)
        ones, a = _add_pair(ones, source[4 * LANES + j], source[5 * LANES + j])
        ones, b = _add_pair(ones, source[6 * LANES + j], source[7 * LANES + j])
        twos, d = _add_pair(twos, a, b)
        fours, e = _add_pair(fours, c, d)
        ones, a = _add_pair(ones, source[8 * LANES + j], source[9 * LANES + j])
        ones, b = _add_pair(ones, source[10 * LANES + j], source[11 * LANES + j])
        twos, c = _add_pair(twos, a, b)
        ones, a = _add_pair(ones, source[12 * LANES + j], source[13 * LANES + j])
        ones, b = _add_pair(ones, source[14 * LANES + j], source[15 * LANES + j])
        twos, d = _add_pair(twos, a, b)
        fours, f = _add_pair(fours, c, d)
        eights, carry = _add_pair(eights, e, f)
        planes[j], planes[LANES + j] = ones, twos
        planes[2 * LANES + j], planes[3 * LANES + j] = fours, eights
        for plane in range(_TREE, PLANES):  # unrolled: the bounds are constants
            old = planes[plane * LANES + j]
            planes[plane * LANES + j] = old ^ carry
            carry &= old


@compiled
def _spread(word: Word, weight: Int, row: IntArray, first: Int) -> None:
    """Add the 64 bits of a word, each worth `weight`, to row[first : first + 64]."""
    for bit in range(64):
        row[first + bit] += np.int64((word >> np.uint64(bit)) & np.uint64(1)) * weight


@compiled
def _empty(planes: Words, lowest: Int, width: Int, row: IntArray, first: Int) -> None:
    """Add the planes from `lowest` on to the counts, and clear them."""
    for plane in range(lowest, PLANES):
        for lane in range(LANES):
            word = planes[plane * LANES + lane]
            if word != 0:
                _spread(word, np.int64(1) << plane, row, first + lane % width * 64)
                planes[plane * LANES + lane] = 0


@compiled
def _take(
    source: Words, planes: Words, steps: IntArray, index: Int, width: Int, row: IntArray, first: Int
) -> None:
    """One step for a buffer; its planes are emptied before they could overflow."""
    if steps[index] == _FULL:
        _empty(planes[index], _TREE, width, row, first)
        steps[index] = 0
    _step(source, planes[index])
    steps[index] += 1


@compiled
def _fill(
    flat: Words,
    cohorts: AnyInts,
    start: Int,
    row_words: Int,
    width: Int,
    buffers: Words,
    next_free: Words,
) -> Int:
    """Put reports into their cohorts' buffers, until one is full or a cohort is out of range.

    Returns the index of that report, or the number of reports. Nothing else happens here, so that
    the loop stays in registers; indices are unsigned, so that numba leaves out its tests for
    negative ones.
    """
    m, span, mask = np.uint64(next_free.size), np.uint64(width), np.uint64(STEP - 1)
    two, one = np.uint64(2), np.uint64(1)
    # Rows of two words (k from 65 to 128, as in the paper's collections) are copied without the
    # inner loop: mixed cohorts are then counted 1.4 times as fast.
    if row_words == 2:
        for i in range(np.uint64(start), np.uint64(cohorts.size)):
            cohort = np.uint64(cohorts[i])
            if cohort >= m:
                return np.int64(i)
            at = next_free[cohort]
            buffers[at] = flat[two * i]
            buffers[at + one] = flat[two * i + one]
            next_free[cohort] = at + two
            if (at + two) & mask == 0:
                return np.int64(i)
        return np.int64(cohorts.size)
    for i in range(np.uint64(start), np.uint64(cohorts.size)):
        cohort = np.uint64(cohorts[i])
        if cohort >= m:
            return np.int64(i)
        at = next_free[cohort]
        base = i * np.uint64(row_words)
        for word in range(np.uint64(row_words)):
            buffers[at + word // LANES * STEP + word % LANES] = flat[base + word]
        next_free[cohort] = at + span
        if (at + span) & mask == 0:
            return np.int64(i)
    return np.int64(cohorts.size)


@compiled
def _gather(
    flat: Words, cohorts: AnyInts, row_words: Int, width: Int, slices: Int, state: State
) -> Int:
    """Count reports of any cohorts by way of the buffers; the first bad index, or -1."""
    buffers, next_free, planes, steps, totals, ones = state
    start: Int = 0
    stop = cohorts.size
    while start < stop:
        i = _fill(flat, cohorts, start, row_words, width, buffers, next_free)
        if i == stop:
            break
        cohort = np.int64(cohorts[i])
        if cohort < 0 or cohort >= totals.shape[0]:
            return i
        for part in range(slices):
            index = cohort * slices + part
            source = buffers[index * STEP : (index + 1) * STEP]
            _take(source, planes, steps, index, width, ones[cohort], part * LANES * 64)
        totals[cohort] += STEP // width
        next_free[cohort] -= np.uint64(STEP)
        start = i + 1
    return np.int64(-1)


@compiled
def _all_same(cohorts: AnyInts) -> bool:
    """Whether all cohorts of a stretch are the same."""
    first = cohorts[0]
    if cohorts[cohorts.size - 1] != first:  # decides almost every mixed stretch
        return False
    others = 0
    for i in range(cohorts.size):  # no early exit, so that LLVM makes vector instructions of it
        others += cohorts[i] != first
    return others == 0


@compiled
def add(words: Words, cohorts: AnyInts, only: Int, width: Int, slices: Int, state: State) -> Int:
    """Add reports to the counts; return the index of the first bad cohort, or -1.

    Rows of more than LANES words are cut into slices, each with a buffer and planes of its own.

    Args:
        words: the reports, shape (N, W).
        cohorts: shape (N,); when `only` is 0 or more, that number STEP times.
        only: the cohort of all reports, or -1.
        width: words that a report takes in a buffer: a power of two, at most LANES.
        slices: buffers that a report is spread over.
        state: the arrays of `State`.
    """
    _, _, planes, steps, totals, ones = state
    count, row_words = words.shape
    per_step = STEP // width
    straight = slices == 1 and width == row_words
    flat = words.reshape(-1)
    for start in range(0, count, per_step):
        stop = min(start + per_step, count)
        whole = straight and stop - start == per_step
        if whole and (only >= 0 or _all_same(cohorts[start:stop])):
            cohort = only if only >= 0 else np.int64(cohorts[start])
            if cohort < 0 or cohort >= totals.shape[0]:
                return np.int64(start)
            source = flat[start * width : stop * width]
            _take(source, planes, steps, cohort, width, ones[cohort], 0)
            totals[cohort] += per_step
        else:
            rows = flat[start * row_words : stop * row_words]
            mine = cohorts[: stop - start] if only >= 0 else cohorts[start:stop]
            bad = _gather(rows, mine, row_words, width, slices, state)
            if bad >= 0:
                return start + bad
    return np.int64(-1)


@compiled
def finish(width: Int, slices: Int, state: State) -> None:
    """Add what is left in buffers and planes to the counts."""
    buffers, next_free, planes, _, totals, ones = state
    for cohort in range(totals.shape[0]):
        row = ones[cohort]
        waiting = np.int64(next_free[cohort]) - cohort * slices * STEP
        totals[cohort] += waiting // width
        for part in range(slices):
            index, first = cohort * slices + part, part * LANES * 64
            for word in range(waiting):
                bits = buffers[index * STEP + word]
                _spread(bits, np.int64(1), row, first + word % width * 64)
            _empty(planes[index], 0, width, row, first)


def count_rows(
    packed: ByteArray, cohorts: AnyInts, only: int, m: int
) -> tuple[IntArray, IntArray, int]:
    """Counts of packed reports; see `kernel_numpy.count_rows`, which gives the same numbers."""
    row_words = -(-packed.shape[1] // 8)
    slices = -(-row_words // LANES)
    width = 1 << (min(row_words, LANES) - 1).bit_length()
    state = State(
        buffers=np.zeros(m * slices * STEP, np.uint64),
        next_free=np.arange(m, dtype=np.uint64) * np.uint64(slices * STEP),
        planes=np.zeros((m * slices, PLANES * LANES), np.uint64),
        steps=np.zeros(m * slices, np.int64),
        totals=np.zeros(m, np.int64),
        ones=np.zeros((m, slices * width * 64), np.int64),
    )
    if only >= 0:
        cohorts = np.full(STEP, only, np.int64)
    for start, words in _as_words(packed):
        part = cohorts if only >= 0 else cohorts[start : start + len(words)]
        bad = int(add(words, part, only, width, slices, state))
        if bad >= 0:
            return state.totals, state.ones, start + bad
    finish(width, slices, state)
    return state.totals, state.ones, -1


def _as_words(packed: ByteArray) -> Iterator[tuple[int, Words]]:
    """The reports as rows of 64-bit words: in place if aligned, else copied in pieces."""
    count, row_bytes = packed.shape
    if row_bytes % 8 == 0 and sys.byteorder == "little" and packed.ctypes.data % 8 == 0:
        yield 0, packed.view(np.uint64)
        return
    at_once = max(1, _COPIED // row_bytes)
    for start in range(0, count, at_once):
        piece = packed[start : start + at_once]
        padded = np.zeros((len(piece), -(-row_bytes // 8) * 8), np.uint8)
        padded[:, :row_bytes] = piece
        yield start, padded.view("<u8").astype(np.uint64, copy=False)
