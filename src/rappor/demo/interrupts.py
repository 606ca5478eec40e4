"""Ctrl-C, SIGTERM or a closed terminal end the demo and the processes it started, in order.

The first signal raises KeyboardInterrupt. Later ones are ignored, so that the clean-up completes.
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
    """A context in which the first such signal raises KeyboardInterrupt and later ones nothing."""

    def __init__(self) -> None:
        """Change nothing before the context begins."""
        self.came = False
        self._held = False
        self._before: dict[signal.Signals, signal._HANDLER] = {}

    def __enter__(self) -> Interrupts:
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                self._before[number] = signal.signal(number, self._handle)
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
        """Delay signals, so that a process started here is registered before it must be ended."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal came: one raised in a destructor gets lost."""
        if self.came:
            raise KeyboardInterrupt

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        first, self.came = not self.came, True
        if first and not self._held:
            raise KeyboardInterrupt
