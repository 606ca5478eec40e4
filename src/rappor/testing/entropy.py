"""Repeatable randomness, for tests and simulation only; no client imports it."""

from __future__ import annotations

import hashlib


class SeededEntropy:
    """Bytes derived from a seed: SHAKE-256 of the seed and the number of the call.

    >>> SeededEntropy(7)(4) == SeededEntropy(7)(4)
    True
    """

    def __init__(self, seed: int | str) -> None:
        """Start the sequence of this seed."""
        self._seed = f"rappor test entropy {seed} ".encode()
        self._calls = 0

    def __call__(self, count: int, /) -> bytes:
        """The next `count` bytes."""
        self._calls += 1
        return hashlib.shake_256(self._seed + str(self._calls).encode()).digest(count)


class ScriptedEntropy:
    """Exactly the given bytes, in order, to enumerate every outcome; EOFError when they end."""

    def __init__(self, script: bytes) -> None:
        """Take the whole script."""
        self._left = script

    def __call__(self, count: int, /) -> bytes:
        """The next `count` bytes of the script."""
        if count > len(self._left):
            raise EOFError(f"asked for {count} bytes, {len(self._left)} left in the script")
        taken, self._left = self._left[:count], self._left[count:]
        return taken
