"""What SQLite would pass over in silence: damage in the write-ahead log.

At the first frame whose checksum is wrong, recovery stops and drops all that follows: right after a
power cut, where nothing that follows was acknowledged, and wrong where a disk has damaged
transactions that were. Two witnesses tell: commits that others followed had been synced, and the
log's index (-shm) says how far the log was valid. A third does not need either (see `commits`).
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
_INDEX_BYTES = 100  # two copies of its header, and how many frames are folded into the file
_MAGIC = 0x377F0682  # the last bit: checksums over big-endian words
_MASK = 2**32 - 1
_ROUNDS = 2**16  # of a log that was written again from its start, each with a salt of its own


class Log(NamedTuple):
    """What a log holds.

    Attributes:
        committed: frames up to the last valid commit.
        later: commits after that, by the look of them.
        left: bytes after that, without what an earlier round has left at the end of the file.
        salt: what marks the frames of this log.
        is_valid: whether its header is what SQLite wrote.
    """

    committed: int
    later: int
    left: int
    salt: bytes
    is_valid: bool = False


class Index(NamedTuple):
    """What the index of a log says: valid frames, how many are in the file too, their salt."""

    frames: int
    folded: int
    salt: bytes


class LogFinding(NamedTuple):
    """What there is to say about a log.

    Attributes:
        note: what an unfinished transaction has left in it, or None.
        lost: what the log's index promises and the log does not have, or None. After a power cut
            the index may be out of date: whoever has a better witness need not believe it.
    """

    note: str | None = None
    lost: str | None = None


def inspect(path: Path) -> LogFinding:
    """Look at the log of a file that nobody has open.

    Raises:
        StoreLost: transactions that were acknowledged are damaged.
    """
    wal, shm = Path(f"{path}-wal"), Path(f"{path}-shm")
    index = _index(shm.read_bytes()[:_INDEX_BYTES]) if shm.exists() else None
    data = wal.read_bytes() if wal.exists() else b""
    log = read_log(data) if data else Log(0, 0, 0, b"")
    promised = 0 if index is None else index.frames
    same_round = index is not None and index.salt == log.salt
    if log.later > 1 or (same_round and promised > log.committed):
        raise StoreLost(
            f"{wal}: damaged after frame {log.committed}: transactions that were acknowledged "
            "cannot be read"
        )
    # The index names frames of a round only after they were synced: a log of a round before is none
    # that a power cut leaves.
    if promised and log.is_valid and index is not None and _is_older(log.salt, index.salt):
        raise StoreLost(
            f"{wal}: older than its index: transactions that were acknowledged are missing"
        )
    note = lost = None
    if (
        index is not None
        and promised > index.folded
        and not same_round
        # A log of a later round than the index knows is what a power cut leaves.
        and not (log.is_valid and _is_older(index.salt, log.salt))
    ):
        lost = (
            f"{wal}: transactions that were acknowledged are missing: its index names {promised} "
            "frames of them"
        )
    if log.left:
        note = f"the write-ahead log ended with {log.left} bytes of an unfinished transaction"
    return LogFinding(note, lost)


def read_log(data: bytes) -> Log:
    """The valid and the other frames of a log."""
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
    return Log(committed, later, (last - committed) * (_FRAME + size) + torn, salt, is_valid)


def _usual_salt(data: bytes, size: int) -> bytes:
    """What marks most frames of a log whose header is damaged."""
    salts = Counter(frame[8:16] for frame, _ in _frames(data, size))
    salts.pop(bytes(8), None)
    return salts.most_common(1)[0][0] if salts else bytes(8)


def _is_older(salt: bytes, than: bytes) -> bool:
    """Whether a frame is of an earlier round: each begins with a number one higher."""
    rounds = int.from_bytes(than[:4], "big") - int.from_bytes(salt[:4], "big")
    return 0 < rounds & _MASK <= _ROUNDS


def _frames(data: bytes, size: int) -> Iterator[tuple[bytes, bytes]]:
    for start in range(_HEADER, len(data) - _FRAME - size + 1, _FRAME + size):
        yield data[start : start + _FRAME], data[start + _FRAME : start + _FRAME + size]


def _words(data: bytes, big: bool) -> Words:
    return np.frombuffer(data, ">u4" if big else "<u4").astype(np.uint32)


def _checksum(words: Words, state: tuple[int, int] = (0, 0)) -> tuple[int, int]:
    """s0 += x0 + s1; s1 += x1 + s0 over all pairs, mod 2^32: linear, so a weighted sum."""
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


def _index(data: bytes) -> Index | None:
    """What the index of the log says; None if unsure."""
    if len(data) < _INDEX_BYTES or data[:48] != data[48:96] or data[12] != 1:
        return None
    native = np.frombuffer(data[:_INDEX_BYTES], np.uint32)
    if _checksum(native[:10]) != struct.unpack("=II", data[40:48]):
        return None
    return Index(int(native[4]), int(native[24]), data[32:40])
