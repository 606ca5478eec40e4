"""The mechanism for arrays of reports: B -> B' -> S, with B' shared as in a real client (§2).

Reports are rows of packed bytes; a piece of work is processed as words of 64 lanes, so that narrow
reports (k = 8) waste nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.params import Params
from rappor.simulate import coins
from rappor.simulate.coins import Read, Words
from rappor.typing import ByteArray

Places = NDArray[np.int64]


class Steps(NamedTuple):
    """B, B' and S of each report, shape (N, ceil(k/8)); B and B' are None unless kept."""

    bloom: ByteArray | None
    prr: ByteArray | None
    irr: ByteArray


def memos_of(values: NDArray[np.int32]) -> tuple[NDArray[np.int32], Places]:
    """The memos behind reports: one for each client and value.

    Args:
        values: the values of each client's reports, shape (clients, reports each).

    Returns:
        The value of each memo, and the memo of each report, in the order of `values.ravel()`.

    >>> memos_of(np.array([[5, 7, 5], [7, 7, 7]], np.int32))[1].tolist()
    [0, 1, 0, 2, 2, 2]
    """
    order = np.argsort(values, axis=1, kind="stable")
    ranked = np.take_along_axis(values, order, axis=1)
    new = np.ones(values.shape, np.bool_)
    np.not_equal(ranked[:, 1:], ranked[:, :-1], out=new[:, 1:])
    numbers = np.cumsum(new.ravel()).reshape(values.shape) - 1
    memo = np.empty_like(numbers)
    np.put_along_axis(memo, order, numbers, axis=1)
    return ranked[new], memo.ravel()


def respond(
    bloom: ByteArray, memo: Places | None, params: Params, read: Read, *, keep: bool = False
) -> Steps:
    """The permanent and the instantaneous response.

    Args:
        bloom: the true filter of each memo, shape (memos, ceil(k/8)).
        memo: the memo of each report; None if each report has its own.
        params: the parameters.
        read: the source of random words.
        keep: whether to keep B and B'.
    """
    width = bloom.shape[1]
    spare = (0xFF >> (-params.k % 8)) if params.k % 8 else None
    permanent = _words(bloom)
    turned = coins.flips(params, len(permanent), read)
    if turned is not None:
        permanent ^= turned
    rows = _rows(permanent, len(bloom), width, spare)
    if memo is not None:
        rows = rows[memo]
        permanent = _words(rows)
    said = coins.responses(params, permanent, read)
    irr = _rows(said, len(rows), width, spare)
    if not keep:
        return Steps(None, None, irr)
    return Steps(bloom if memo is None else bloom[memo], rows, irr)


def _words(rows: ByteArray) -> Words:
    """A copy of packed rows as words; the rest of the last word is 0."""
    flat = np.zeros((rows.size + 7) // 8 * 8, np.uint8)
    flat[: rows.size] = rows.ravel()
    return flat.view(np.uint64)


def _rows(words: Words, number: int, width: int, spare: int | None) -> ByteArray:
    """Words as packed rows, without a copy; the unused bits of each row's last byte become 0."""
    rows: ByteArray = words.view(np.uint8)[: number * width].reshape(number, width)
    if spare is not None:
        rows[:, -1] &= np.uint8(spare)
    return rows
