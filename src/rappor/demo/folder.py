"""The folder of a demo: a temporary one, or one that is kept."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """The folder in which a demo keeps its files."""

    folder: Path

    @property
    def collections(self) -> Path:
        """The collection definitions and the list of candidates."""
        return self.folder / "collections"

    @property
    def data(self) -> Path:
        """The server's data folder."""
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
        """The collector's keys: the crowd sends with a gateway key."""
        return self.folder / "keys.json"

    @property
    def truth(self) -> Path:
        """The true homepages of the day in the first table.

        Written only if the folder is kept, and read by no server.
        """
        return self.folder / "truth.csv"

    @property
    def whole_truth(self) -> Path:
        """The true homepages of all days."""
        return self.folder / "truth-all.csv"


@contextmanager
def demo_folder(keep: Path | None) -> Iterator[DemoFolder]:
    """The folder `keep`, which stays; or a temporary folder that is removed at the end."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield DemoFolder(keep)
        return
    folder = Path(tempfile.mkdtemp(prefix="rappor-demo-"))
    try:
        yield DemoFolder(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
