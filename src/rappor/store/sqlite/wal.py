"""Finds damage in the write-ahead log that SQLite ignores without a message.

SQLite's recovery stops at the first frame with a wrong checksum and drops everything after it. This
is right after a power cut, when nothing after it was acknowledged. It is wrong if the disk has
damaged acknowledged transactions. Two things tell them apart: a commit with a later commit was
synced, and the log's index (-shm) says how far the log was valid. `commits.py` adds a third.
Format: sqlite.org/fileformat2.html, section 4.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.errors import StoreLost

Words = NDArray[np.uint32]

_HEADER, _FRAME = 32, 24
_INDEX_BYTES = 100  # two copies of its header, and the number of frames that are in the file
_MAGIC = 0x377F0682  # with the last bit set, checksums are over big-endian words
_MASK = 2**32 - 1
_ROUNDS = 2**16  # each time the log is written from its start it gets a new salt


class WalContent(NamedTuple):
    """The content of a log.

    Attributes:
        committed: the number of frames up to the last valid commit.
        later: the number of frames after that which look like commits.
        left: the bytes after the last valid commit, without those of an earlier round.
        salt: the mark of the frames of this round.
        is_valid: whether the header is valid.
    """

    committed: int
    later: int
    left: int
    salt: bytes
    is_valid: bool = False


class WalIndex(NamedTuple):
    """The index of a log: the valid frames, those that are in the file too, and the salt."""

    frames: int
    folded: int
    salt: bytes


class WalFinding(NamedTuple):
    """What the inspection of a log has found.

    Attributes:
        note: what an unfinished transaction has left in it, or None.
        lost: what the log's index promises and the log does not have, or None. After a power cut
            the index may be out of date: the record of commits is better evidence.
    """

    note: str | None = None
    lost: str | None = None


def inspect(path: Path) -> WalFinding:
    """Inspect the log of a file that nobody has open.

    Raises:
        StoreLost: acknowledged transactions are damaged.
    """
    wal, shm = Path(f"{path}-wal"), Path(f"{path}-shm")
    index = _index(shm.read_bytes()[:_INDEX_BYTES]) if shm.exists() else None
    data = wal.read_bytes() if wal.exists() else b""
    log = read_log(data) if data else WalContent(0, 0, 0, b"")
    promised = 0 if index is None else index.frames
    same_round = index is not None and index.salt == log.salt
    if log.later > 1 or (same_round and promised > log.committed):
        raise StoreLost(
            f"{wal}: damaged after frame {log.committed}: transactions that were acknowledged "
            "cannot be read"
        )
    # The index names frames of a round only after they were synced: a power cut
    # cannot leave a log of an earlier round.
    if promised and log.is_valid and index is not None and _is_older(log.salt, index.salt):
        raise StoreLost(
            f"{wal}: older than its index: transactions that were acknowledged are missing"
        )
    note = lost = None
    if (
        index is not None
        and promised > index.folded
        and not same_round
        # After a power cut, the log may be of a later round than the index.
        and not (log.is_valid and _is_older(index.salt, log.salt))
    ):
        lost = (
            f"{wal}: transactions that were acknowledged are missing: its index names {promised} "
            "frames of them"
        )
    if log.left:
        note = f"the write-ahead log ended with {log.left} bytes of an unfinished transaction"
    return WalFinding(note, lost)


def read_log(data: bytes) -> WalContent:
    """Parse a log, valid or not."""
    size = int.from_bytes(data[8:12], "big")
    big = bool(data[3] & 1) if len(data) > 3 else False
    state = _checksum(_words(data[:24], big)) if len(data) >= _HEADER else (0, 0)
    valid = (
        len(data) >= _HEADER
        and int.from_bytes(data[:4], "big") | 1 == _MAGIC | 1
        and state == struct.unpack(">II", data[24:32])
    )
    is_valid = valid
    if not valid:
        size = size if size in {2**n for n in range(9, 17)} else 4096
    salt = data[16:24] if valid else _usual_salt(data, size)
    committed = later = number = last = 0
    for number, (frame, page) in enumerate(_frames(data, size), 1):
        ours = frame[8:16] == salt
        commits = ours and frame[4:8] != bytes(4)
        if valid:
            state = _checksum(_words(frame[:8] + page, big), state)
            valid = ours and state == struct.unpack(">II", frame[16:24])
        if valid and commits:
            committed = number
        later += commits and not valid
        if not _is_older(frame[8:16], salt):
            last = number
    torn = max(len(data) - _HEADER - number * (_FRAME + size), 0) if last == number else 0
    return WalContent(committed, later, (last - committed) * (_FRAME + size) + torn, salt, is_valid)


def _usual_salt(data: bytes, size: int) -> bytes:
    """The salt of most frames, for a log whose header is damaged."""
    salts = Counter(frame[8:16] for frame, _ in _frames(data, size))
    salts.pop(bytes(8), None)
    return salts.most_common(1)[0][0] if salts else bytes(8)


def _is_older(salt: bytes, than: bytes) -> bool:
    """Whether a frame is of an earlier round: each round adds one to the salt's first half."""
    rounds = int.from_bytes(than[:4], "big") - int.from_bytes(salt[:4], "big")
    return 0 < rounds & _MASK <= _ROUNDS


def _frames(data: bytes, size: int) -> Iterator[tuple[bytes, bytes]]:
    for start in range(_HEADER, len(data) - _FRAME - size + 1, _FRAME + size):
        yield data[start : start + _FRAME], data[start + _FRAME : start + _FRAME + size]


def _words(data: bytes, big: bool) -> Words:
    return np.frombuffer(data, ">u4" if big else "<u4").astype(np.uint32)


def _checksum(words: Words, state: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """s0 += x0 + s1; s1 += x1 + s0 over all pairs, mod 2^32. It is linear: a weighted sum."""
    weights, power = _weights(len(words) // 2)
    sums = (weights * words).sum(axis=1, dtype=np.uint32)
    first = power[0] * state[0] + power[1] * state[1] + int(sums[0])
    second = power[2] * state[0] + power[3] * state[1] + int(sums[1])
    return first & _MASK, second & _MASK


@lru_cache(maxsize=8)
def _weights(pairs: int) -> tuple[Words, tuple[int, int, int, int]]:
    """A^(n-1-i) B for each pair i, and A^n, where A = (1 1; 1 2), B = (1 0; 1 1)."""
    table = np.empty((2, 2 * pairs), np.uint32)
    a, b, c, d = 1, 0, 0, 1
    for pair in reversed(range(pairs)):
        table[:, 2 * pair] = (a + b) & _MASK, (c + d) & _MASK
        table[:, 2 * pair + 1] = b, d
        a, b, c, d = (a + b) & _MASK, (a + 2 * b) & _MASK, (c + d) & _MASK, (c + 2 * d) & _MASK
    return table, (a, b, c, d)


def _index(data: bytes) -> WalIndex | None:
    """Parse the index of a log; None if it is not valid."""
    if len(data) < _INDEX_BYTES or data[:48] != data[48:96] or data[12] != 1:
        return None
    native = np.frombuffer(data[:_INDEX_BYTES], np.uint32)
    if _checksum(native[:10]) != struct.unpack("=II", data[40:48]):
        return None
    return WalIndex(int(native[4]), int(native[24]), data[32:40])
