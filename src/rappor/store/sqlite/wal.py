"""What SQLite would pass over in silence: damage in the write-ahead log.

At the first frame whose checksum is wrong, recovery stops and drops all that follows: right after a
power cut, where nothing that follows was acknowledged, and wrong where a disk has damaged
transactions that were. Two witnesses tell: commits that others followed had been synced, and the
log's index (-shm) says how far the log was valid. Format: sqlite.org/fileformat2.html, section 4.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.errors import StoreError

Words = NDArray[np.uint32]

_HEADER, _FRAME = 32, 24
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
    """

    committed: int
    later: int
    left: int
    salt: bytes


def inspect(path: Path) -> str | None:
    """Look at the log of a file that nobody has open.

    Returns:
        What is to be noted about it, or None.

    Raises:
        StoreError: transactions that were acknowledged are damaged.
    """
    wal, shm = Path(f"{path}-wal"), Path(f"{path}-shm")
    witness = _index(shm.read_bytes()[:96]) if shm.exists() else None
    data = wal.read_bytes() if wal.exists() else b""
    if not data:
        if witness is not None and witness[0]:
            return "the write-ahead log is gone, though its index is there"
        return None
    log = read_log(data)
    promised = witness[0] if witness is not None and witness[1] == log.salt else 0
    if log.later > 1 or promised > log.committed:
        raise StoreError(
            f"{wal}: damaged after frame {log.committed}: transactions that were acknowledged "
            "cannot be read; restore a backup, or move the file away to go on without them"
        )
    if log.left:
        return f"the write-ahead log ended with {log.left} bytes of an unfinished transaction"
    return None


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
    if not valid:
        size = size if size in {2**n for n in range(9, 17)} else 4096
    salt = data[16:24] if valid else data[_HEADER + 8 : _HEADER + 16]
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
    return Log(committed, later, (last - committed) * (_FRAME + size) + torn, salt)


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


def _index(data: bytes) -> tuple[int, bytes] | None:
    """How many frames were valid, and their salt, as the index of the log says; None if unsure."""
    if len(data) < 96 or data[:48] != data[48:96] or data[12] != 1:
        return None
    native = np.frombuffer(data[:40], np.uint32)
    if _checksum(native) != struct.unpack("=II", data[40:48]):
        return None
    return int(native[4]), data[32:40]
