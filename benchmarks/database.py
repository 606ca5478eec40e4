"""A PostgreSQL server for benchmarks: on the disk, durable, with the server's own defaults."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rappor.collection import Collection
from rappor.store import open_store
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


def store_for_collectors(server: Server, *collections: Collection) -> str:
    """A new store with these definitions; its URL with the role that collectors have."""
    url = server.new_store()
    with closing(open_store(url)) as store:
        for collection in collections:
            store.save_definition(collection.to_toml(), actor="benchmark")
    return server.as_ingest(url)
