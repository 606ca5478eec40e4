"""A durable slot for a one-time report, as a client would keep it: a file."""

import contextlib
import json
import os
import threading
from pathlib import Path

from rappor import Report


class FileSlot:
    """One report in one file: written beside it, synced, then linked, which only one can do."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def load(self) -> Report | None:
        try:
            return Report(*json.loads(self.file.read_text(encoding="ascii")))
        except FileNotFoundError:
            return None

    def keep(self, report: Report) -> None:
        draft = self.file.with_name(f"{self.file.name}.{os.getpid()}.{threading.get_ident()}")
        with draft.open("w", encoding="ascii") as handle:
            json.dump(report, handle)
            handle.flush()
            os.fsync(handle.fileno())
        with contextlib.suppress(FileExistsError):  # another was first: its report is the one
            os.link(draft, self.file)
        draft.unlink()
