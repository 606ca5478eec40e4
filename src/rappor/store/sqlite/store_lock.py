"""A lock that tells whether anybody else has the store open.

Only when nobody has may the write-ahead log be inspected.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system: the log is not inspected there
    fcntl = None


class StoreLock:
    """A lock file that is shared by all processes that have the store open."""

    def __init__(self, path: Path, read_only: bool) -> None:
        self._descriptor: int | None = None
        if fcntl is None:
            return
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # a read-only folder: there is no log to recover
            if not read_only:
                raise

    @property
    def works(self) -> bool:
        """Whether the lock can be used."""
        return self._descriptor is not None

    def alone(self) -> bool:
        """Take the lock exclusively; return False if anybody has it."""
        if self._descriptor is None:
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def share(self) -> None:
        """Share the lock; waits while another process inspects the log."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
