"""Randomness for all but the coins: tokens, times of upload, the order of uploads.

It comes from the operating system. If that fails, EntropyError: there is no weaker fallback.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from rappor.errors import EntropyError
from rappor.mechanism.entropy import NO_ENTROPY


def random_bytes(count: int) -> bytes:
    """Random bytes; EntropyError if the operating system gives none."""
    try:
        return os.urandom(count)
    except (OSError, NotImplementedError) as error:  # no source of randomness here
        raise EntropyError(NO_ENTROPY) from error


def uniform() -> float:
    """A number in [0, 1)."""
    return int.from_bytes(random_bytes(6), "big") / 2**48


def shuffled(names: Iterable[str]) -> list[str]:
    """The names in random order."""
    return [name for _, name in sorted((random_bytes(8), name) for name in names)]
