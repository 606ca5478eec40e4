"""Answer: what a collector said to an upload, and when it wants to be asked again."""

from __future__ import annotations

import datetime
import email.utils
from typing import NamedTuple

from rappor.wire import PROBLEMS

LONGEST_WAIT = 86_400.0  # seconds
_ABOUT_COLLECTION = frozenset({"forbidden", "unknown-collection"})
_PERMANENT = frozenset({400, 410, 413, 414, 415, 422})  # where no listed problem says otherwise


class Answer(NamedTuple):
    """What a collector said.

    Attributes:
        status: of HTTP; 204 alone means that the batch is stored.
        code: of the problem, if it is one of the listed ones.
        retry_after: seconds that the collector asks to wait.
    """

    status: int
    code: str | None = None
    retry_after: float | None = None

    @property
    def stored(self) -> bool:
        """Whether the batch is durably stored, now or before."""
        return self.status == 204

    @property
    def permanent(self) -> bool:
        """Whether the same batch will never be taken."""
        if self.code is not None:
            return not PROBLEMS[self.code].retry
        return self.status in _PERMANENT

    @property
    def about_collection(self) -> bool:
        """Whether other collections' batches may well be taken while this one's is not."""
        return self.code in _ABOUT_COLLECTION


def retry_after(text: str | None, now: float) -> float | None:
    """Seconds to wait, from a number of seconds or a date; at most a day.

    >>> retry_after("120", 0.0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 0.0)
    (120.0, 60.0)
    """
    if text is None:
        return None
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), LONGEST_WAIT)
    try:
        when = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=datetime.UTC)
    return min(max(when.timestamp() - now, 0.0), LONGEST_WAIT)
