"""A PostgreSQL server for benchmarks: on the disk, durable, with the server's own defaults."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.postgres import Server

OPTIONS = {
    "shared_buffers": "256MB",
    "max_wal_size": "2GB",
    "autovacuum": "on",
    "fsync": "on",
    "synchronous_commit": "on",
}


@contextmanager
def database_server() -> Iterator[Server]:
    """A server whose files are deleted at the end."""
    with tempfile.TemporaryDirectory(prefix="rappor-bench-") as root:
        Path(root).chmod(0o755)  # the server has a user of its own
        server = Server(Path(root) / "cluster")
        server.make()
        server.start(**OPTIONS)
        try:
            yield server
        finally:
            server.stop()
