"""Allows one collector for each data folder. The kernel frees the lock when the process ends.

Other commands may use the store while a collector runs. A second collector may not: each would
assume that it is the only one that adds reports.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rappor.errors import StoreBusy

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system: no lock there
    fcntl = None

NAME = "collector.lock"


class CollectorLock:
    """The lock that a collector holds on its data folder.

    Args:
        folder: the data folder, made if missing; `~` is expanded.

    Raises:
        StoreBusy: another collector holds it.
    """

    def __init__(self, folder: str | Path) -> None:
        path = Path(folder).expanduser()
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._descriptor: int | None = os.open(path / NAME, os.O_RDWR | os.O_CREAT, 0o600)
        if fcntl is None:
            return
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise StoreBusy(
                f"{path}: another collector uses this data folder; each needs its own"
            ) from None

    def close(self) -> None:
        """Release the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_locked(folder: Path) -> bool:
    """Whether a collector runs on a data folder. Makes no file."""
    if fcntl is None or not (folder / NAME).exists():
        return False
    try:
        descriptor = os.open(folder / NAME, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
