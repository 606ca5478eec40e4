"""Fresh: a thing that takes long to make, made anew in the background when its source changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, NamedTuple, TypeVar

PATIENCE_SECONDS = 0.1  # what was quick to make the last time is waited for this long
REST = 2.0  # between two makings, in multiples of the time that the last one took
_NO_REST_SECONDS = 0.05  # after one that was over so soon

Stamp = tuple[tuple[int, int, int] | None, ...]
Thing = TypeVar("Thing")


class _CachedValue(NamedTuple, Generic[Thing]):
    stamp: Stamp
    thing: Thing


class BackgroundCache(Generic[Thing]):
    """The last thing that was made, and a newer one on its way. Thread-safe.

    Only before the first one, and after a making that failed, is there nothing to show meanwhile:
    then whoever asks waits. While one is being made nobody looks at the source: each look lets go
    of the interpreter, and would wait to get it back.

    Args:
        stamp: another one after every change of the source.
        make: makes the thing; what it raises is raised to those who ask.
    """

    def __init__(self, stamp: Callable[[], Stamp], make: Callable[[], Thing]) -> None:
        """Nothing is made before it is asked for."""
        self._stamp, self._make = stamp, make
        self._pool = ThreadPoolExecutor(1, "rappor-fresh")
        self._guard = threading.Lock()
        self._kept: _CachedValue[Thing] | None = None
        self._making: Future[Thing] | None = None
        self._took = 0.0
        self._rest_until = 0.0

    def get(self) -> Thing:
        """The thing as it is now, or as it was a moment ago."""
        with self._guard:
            kept = self._kept
            if kept is not None and time.monotonic() < self._rest_until:
                return kept.thing
            if self._making is None:
                stamp = self._stamp()
                if kept is not None and kept.stamp == stamp:
                    return kept.thing
                self._making = self._pool.submit(self._run, stamp)
            making, took = self._making, self._took
        if kept is None:
            return making.result()
        if took < PATIENCE_SECONDS:
            wait((making,), PATIENCE_SECONDS)
        return making.result() if making.done() else kept.thing

    def begin(self) -> None:
        """Begin to make the first one; what goes wrong is told to the first who asks."""
        with self._guard:
            if self._kept is None and self._making is None:
                self._making = self._pool.submit(self._run, self._stamp())

    def _run(self, stamp: Stamp) -> Thing:
        began = time.monotonic()
        made: _CachedValue[Thing] | None = None
        try:
            made = _CachedValue(stamp, self._make())
            return made.thing
        finally:
            now = time.monotonic()
            with self._guard:
                self._making, self._kept, self._took = None, made, now - began
                rests = made is not None and self._took > _NO_REST_SECONDS
                self._rest_until = now + REST * self._took if rests else 0.0
