"""Where a demo keeps its files: a folder that is gone afterwards, or one that stays."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """Where a demo keeps its files."""

    folder: Path

    @property
    def collections(self) -> Path:
        """Definitions and the list of candidates."""
        return self.folder / "collections"

    @property
    def data(self) -> Path:
        """What the server stores."""
        return self.folder / "data"

    @property
    def clients(self) -> Path:
        """The directories of the ten clients."""
        return self.folder / "clients"

    @property
    def log(self) -> Path:
        """The server's log."""
        return self.folder / "server.log"

    @property
    def keys(self) -> Path:
        """The collector's keys: the crowd sends with one of a gateway."""
        return self.folder / "keys.json"

    @property
    def truth(self) -> Path:
        """What the homepages really were: written where the folder is kept, read by no server."""
        return self.folder / "truth.csv"


@contextmanager
def place(keep: Path | None) -> Iterator[DemoFolder]:
    """A folder for a demo: one that stays, or one that is gone afterwards."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield DemoFolder(keep)
        return
    folder = Path(tempfile.mkdtemp(prefix="rappor-demo-"))
    try:
        yield DemoFolder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
