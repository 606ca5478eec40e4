"""Whether anybody else has the store open: only then may its log be looked at by itself."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system: the log is not inspected there
    fcntl = None


class FolderLock:
    """A lock file that everybody who has the store open shares."""

    def __init__(self, path: Path, read_only: bool) -> None:
        self._descriptor: int | None = None
        if fcntl is None:
            return
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:  # a folder that is not ours to write into: then there is no log to recover
            if not read_only:
                raise

    @property
    def works(self) -> bool:
        """Whether this system has such locks."""
        return self._descriptor is not None

    def alone(self) -> bool:
        """Take the lock for oneself, if nobody has it."""
        if self._descriptor is None:
            return False
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def share(self) -> None:
        """Let others in; waits for whoever is just looking at the log."""
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def close(self) -> None:
        """Let go."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
