"""How far `rappor demo` is: a line with a bar on standard error, where that is a terminal."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

from rappor.cli.output import bar, showable

_BAR, _EVERY_SECONDS = 20, 0.1


class DemoProgress:
    """One line on standard error, with a bar while reports are sent; only on a terminal."""

    def __init__(self) -> None:
        """Nothing is drawn before it is called."""
        self._on = sys.stderr is not None and sys.stderr.isatty()
        self._next = 0.0
        self._began: dict[str, float] = {}

    def __call__(self, what: str, done: int, of: int) -> None:
        """Show this instead of what was shown before."""
        now = time.monotonic()
        if not self._on or (now < self._next and what in self._began):
            return
        began = self._began.setdefault(what, now)
        self._next = now + _EVERY_SECONDS
        text = f"  {what}"
        if of:
            share = min(done / of, 1.0)
            drawn = bar(share, _BAR).ljust(_BAR, "·")
            text += f"  {drawn} {share:4.0%}  {done:,} of {of:,} reports"
            if 0 < share < 1 and now - began > 1:
                text += f"  {(now - began) * (1 - share) / share:.0f} s left"
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write(showable(f"\r\x1b[K{text[:width]}", sys.stderr))
        sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self._on and self._began:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._began.clear()

    def __enter__(self) -> DemoProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
