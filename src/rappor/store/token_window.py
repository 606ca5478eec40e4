"""Tokens: their form, and how long they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from rappor.errors import StoreError
from rappor.wire.protocol import ACCEPTANCE_DAYS, SKEW_DAYS, TOKEN_BYTES

WEEK_DAYS = 6  # a week is accepted until its last day is too old
CLOCK_DAYS = 3  # two for a clock that was ahead, one for a commit after midnight


def check_tokens(tokens: Sequence[bytes]) -> None:
    """StoreError unless each token is 16 bytes."""
    for token in tokens:
        if not isinstance(token, bytes) or len(token) != TOKEN_BYTES:
            raise StoreError(f"a token must be {TOKEN_BYTES} bytes")


def first_kept(today: date, weekly: bool) -> int:
    """The first day whose tokens are kept: batches of that day may still be sent again."""
    window = ACCEPTANCE_DAYS + SKEW_DAYS + (WEEK_DAYS if weekly else 0)
    return today.toordinal() - window - CLOCK_DAYS
