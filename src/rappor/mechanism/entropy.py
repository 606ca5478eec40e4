"""Where randomness comes from: the operating system, and a stream keyed by a client's secret.

The paper memoizes B' (§2, step 2). Here the memo is not stored: it is derived again, each time,
from a keyed pseudo-random stream. So it cannot be lost, and nothing about a value is on disk.
docs/protocol.md fixes the derivation; docs/theory/prf.md tells what it costs.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Protocol

from rappor.errors import EntropyError

NO_ENTROPY = "the operating system gave no randomness, and there is no safe substitute"
BLOCK_BYTES = 64  # BLAKE2b-512
_KEPT_STATES = 8  # enough for 128 bits at any f
_EXTRACT_KEY = b"rappor-v1 secret"


class Entropy(Protocol):
    """Gives `count` uniformly random bytes, new in every call; fails as os.urandom does."""

    def __call__(self, count: int, /) -> bytes:
        """Return exactly `count` random bytes."""


def checked(entropy: Entropy) -> Entropy:
    """The same source, with a check: too few bytes would leave bits without noise."""
    if entropy is os.urandom:
        return entropy

    def read(count: int, /) -> bytes:
        data = entropy(count)
        if not isinstance(data, bytes) or len(data) != count:
            raise EntropyError("the source of randomness gave the wrong number of bytes")
        return data

    return read


def new_secret() -> bytes:
    """A new client's secret: 32 bytes from the operating system. Draw it once and keep it."""
    try:
        return os.urandom(32)
    except (OSError, NotImplementedError) as error:
        raise EntropyError(NO_ENTROPY) from error


def frame(*parts: bytes) -> bytes:
    """Join parts, each after BE32(length): two different lists never give the same bytes."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def derive_key(secret: bytes, *labels: bytes) -> bytes:
    """A 64-byte key for one purpose: BLAKE2b-512 keyed with the extracted secret, of the labels."""
    root = hmac.digest(_EXTRACT_KEY, secret, "sha512")
    return hashlib.blake2b(frame(*labels), key=root).digest()


class KeyedStream:
    """An endless stream of pseudo-random bytes for each message, under one key.

    Block b of a message is BLAKE2b-512(key, BE32(b) || message); the stream is the blocks in order.
    """

    __slots__ = ("_key", "_starts")

    def __init__(self, key: bytes) -> None:
        """Prepare the keyed state that a first block starts from."""
        self._starts = [hashlib.blake2b(b"\0\0\0\0", key=key)]
        self._key = key

    @property
    def start(self) -> hashlib.blake2b:
        """The state before the message of the first block."""
        return self._starts[0]

    def reader(self, message: bytes) -> Callable[[int], bytes]:
        """A function that reads the stream of a message: each call gives the next `count` bytes."""
        pending = b""
        block = 0

        def read(count: int) -> bytes:
            nonlocal pending, block
            made = [pending]
            length = len(pending)
            while length < count:
                state = self._state(block)
                state.update(message)
                made.append(state.digest())
                length += BLOCK_BYTES
                block += 1
            joined = b"".join(made)
            pending = joined[count:]
            return joined[:count]

        return read

    def _state(self, block: int) -> hashlib.blake2b:
        """A new state before the message of a block; those of the first blocks are cached."""
        while len(self._starts) <= min(block, _KEPT_STATES - 1):
            number = len(self._starts)
            self._starts.append(hashlib.blake2b(number.to_bytes(4, "big"), key=self._key))
        if block < _KEPT_STATES:
            return self._starts[block].copy()
        return hashlib.blake2b(block.to_bytes(4, "big"), key=self._key)


def below(limit: int, read: Callable[[int], bytes]) -> int:
    """A uniform whole number in [0, limit) from 64-bit words, by rejection: no modulo bias."""
    accepted = (1 << 64) - (1 << 64) % limit
    while True:
        word = int.from_bytes(read(8), "big")
        if word < accepted:
            return word % limit
