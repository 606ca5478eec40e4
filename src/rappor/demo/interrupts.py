"""Ctrl-C, SIGTERM and a closed terminal: one of them ends the demo, and what it started, in order.

The first one raises KeyboardInterrupt; later ones are not heard, so that the ending gets done.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


class Interrupts:
    """A context in which the first of these signals raises KeyboardInterrupt, and no other does."""

    def __init__(self) -> None:
        """Nothing is heard before the context begins."""
        self.came = False
        self._held = False
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, action in self._before.items():
            signal.signal(number, action)

    @contextmanager
    def held(self) -> Iterator[None]:
        """A signal waits: what is started here is known to whoever has to end it."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def check(self) -> None:
        """KeyboardInterrupt where a signal came: one that is raised in a destructor gets lost."""
        if self.came:
            raise KeyboardInterrupt

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        first, self.came = not self.came, True
        if first and not self._held:
            raise KeyboardInterrupt
