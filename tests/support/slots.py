"""A durable slot for a one-time report, as a client would keep it: a file."""

import json
import os
from pathlib import Path

from rappor import Report


class FileSlot:
    """One report in one file: written beside it, synced, then renamed."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def load(self) -> Report | None:
        try:
            return Report(*json.loads(self.file.read_text(encoding="ascii")))
        except FileNotFoundError:
            return None

    def keep(self, report: Report) -> None:
        draft = self.file.with_suffix(".draft")
        with draft.open("w", encoding="ascii") as handle:
            json.dump(report, handle)
            handle.flush()
            os.fsync(handle.fileno())
        draft.replace(self.file)
