"""One report by a client of the base install alone, on any system: `python client_smoke.py`.

The standard library and rappor only: no pytest, no extra, nothing of POSIX.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from rappor import Client, Collection, Params
from rappor.testing import MemoryCollector

SECONDS = 60.0  # for an upload on a busy machine


def main() -> int:
    """Record a value, send its report to a collector in memory, and count it."""
    collection = Collection("homepage", 1, Params.preset("windows"), owner="test")
    with tempfile.TemporaryDirectory() as folder, MemoryCollector([collection]) as collector:
        client = Client.open(
            Path(folder) / "client",
            [collection],
            consent=True,
            upload_to=collector.url,
            jitter=0.0,
        )
        client.report("homepage", "example.com")
        client.close(SECONDS)
        counted = collector.count("homepage")
    print(f"{sys.platform}, Python {sys.version.split()[0]}: {counted} report counted")
    return 0 if counted == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
