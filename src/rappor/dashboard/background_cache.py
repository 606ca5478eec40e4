"""A cache of one value that takes long to make; a thread makes it again when its source changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, NamedTuple, TypeVar

PATIENCE_SECONDS = 0.1  # a value that was quick to make the last time is waited for this long
REST = 2.0  # pause after making a value, in multiples of the time it took
_NO_REST_SECONDS = 0.05  # a value that took less than this has no pause after it

Stamp = tuple[tuple[int, int, int] | None, ...]
Value = TypeVar("Value")


class _CachedValue(NamedTuple, Generic[Value]):
    stamp: Stamp
    value: Value


class BackgroundCache(Generic[Value]):
    """The last value, and a newer one in the making. Thread-safe.

    Callers get the last value while a newer one is made. They wait only for the first value, and
    after an error. While a value is made, the source's stamp is not read: each read gives up the
    interpreter and waits to get it back.

    Args:
        stamp: returns another stamp after every change of the source.
        make: makes the value; callers get what it raises.
    """

    def __init__(self, stamp: Callable[[], Stamp], make: Callable[[], Value]) -> None:
        """Make nothing before the first call."""
        self._stamp, self._make = stamp, make
        self._pool = ThreadPoolExecutor(1, "rappor-cache")
        self._guard = threading.Lock()
        self._kept: _CachedValue[Value] | None = None
        self._making: Future[Value] | None = None
        self._took = 0.0
        self._rest_until = 0.0

    def get(self) -> Value:
        """The present value, or the last one while a newer one is made."""
        with self._guard:
            kept = self._kept
            if kept is not None and time.monotonic() < self._rest_until:
                return kept.value
            if self._making is None:
                stamp = self._stamp()
                if kept is not None and kept.stamp == stamp:
                    return kept.value
                self._making = self._pool.submit(self._run, stamp)
            making, took = self._making, self._took
        if kept is None:
            return making.result()
        if took < PATIENCE_SECONDS:
            wait((making,), PATIENCE_SECONDS)
        return making.result() if making.done() else kept.value

    def begin(self) -> None:
        """Start to make the first value; the first caller gets its error."""
        with self._guard:
            if self._kept is None and self._making is None:
                self._making = self._pool.submit(self._run, self._stamp())

    def _run(self, stamp: Stamp) -> Value:
        began = time.monotonic()
        made: _CachedValue[Value] | None = None
        try:
            made = _CachedValue(stamp, self._make())
            return made.value
        finally:
            now = time.monotonic()
            with self._guard:
                self._making, self._kept, self._took = None, made, now - began
                rests = made is not None and self._took > _NO_REST_SECONDS
                self._rest_until = now + REST * self._took if rests else 0.0
