"""One collector for a data folder: a lock that the kernel frees with the process, however it ends.

Other verbs use the store next to a collector. Two collectors would each believe that they know what
is in it, and that the folder is theirs to restart in.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rappor.errors import StoreError

fcntl: Any
try:
    import fcntl
except ImportError:  # not a POSIX system: nobody is refused there
    fcntl = None

NAME = "collector.lock"


class Claim:
    """What one process holds for as long as it collects into a folder.

    Args:
        folder: the data folder, made if missing; `~` is expanded.

    Raises:
        StoreError: another process has it.
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
            raise StoreError(
                f"{path}: another collector has this data folder; each needs one of its own"
            ) from None

    def close(self) -> None:
        """Let another one collect."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
