"""Four collectors on one database, clients that never stop, and faults of every kind.

The collectors have the role of production, rappor_ingest, and row-level security.

Faults: kill -9 of a collector, of a backend, of the whole server; a backend that is told to end; a
connection that is cut at any byte, COMMIT included.
"""

import os
import random
import signal
import socket
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from rappor.collection import Collection
from rappor.errors import StoreUnavailable
from rappor.host import bound
from rappor.store import open_store
from support.collecting import Process, day, write_collections
from support.cutting_proxy import CuttingProxy, random_cut
from support.killing import BUSY, PARAMS, Crowd, Reckoning, reckon
from support.postgres import Server
from support.waiting import wait_for

COLLECTORS = 4
FAULTS = ("collector", "backend", "server", "terminate", "cut", "cut")
SCRIPT = Path(__file__).with_name("postgres_collectors.py")


@dataclass
class Collectors:
    """Collectors that share a port; each is a fork of one process."""

    process: Process
    port: int
    pids: list[int] = field(default_factory=list)

    def start(self, number: int = 1, days_off: int = 0) -> None:
        """Start some, and wait until they listen."""
        listening = self.process.events().count("listening")
        stdin = self.process.process.stdin
        assert stdin is not None
        stdin.write(f"{days_off}\n".encode() * number)
        stdin.flush()
        wait_for(
            lambda: self.process.events().count("listening") >= listening + number or self._dead(),
            "collectors that listen",
        )
        self.pids = [pid for pid in self._said("pid") if pid not in self._said("gone")]

    def _dead(self) -> bool:
        return self.process.process.poll() is not None

    def _said(self, word: str) -> list[int]:
        lines = list(self.process.text)
        return [int(line.split()[1]) for line in lines if line.startswith(f"{word} ")]

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.wait_gone(pid)

    def wait_gone(self, pid: int) -> None:
        wait_for(lambda: pid in self._said("gone"), "the end of a collector")
        self.pids = [each for each in self.pids if each != pid]

    def stop(self) -> None:
        """Let all of them end in order."""
        for pid in list(self.pids):
            os.kill(pid, signal.SIGTERM)
        for pid in list(self.pids):
            self.wait_gone(pid)


@dataclass
class FaultyCluster:
    """A server behind a proxy, and the collectors that use it."""

    server: Server
    database: str
    proxy: CuttingProxy
    collectors: Collectors
    _holder: socket.socket

    @classmethod
    def start(cls, server: Server, folder: Path, bug: str = "none") -> "FaultyCluster":
        definition = Collection("kill", 1, PARAMS)
        place = write_collections(folder, definition)
        url = server.new_store()
        with closing(open_store(url)) as store:  # by the owner: collectors may not
            store.save_definition(definition.to_toml(), actor="test")
        server.as_ingest(url)
        database = url.rpartition("/")[2]
        proxy = CuttingProxy(server.port)
        # Bound as long as the test lasts, without listening: nobody else is given the port.
        holder = bound("127.0.0.1", 0, shared=True)
        port = holder.getsockname()[1]
        command: list[str | Path] = [
            sys.executable,
            SCRIPT,
            bug,
            server.url(database, proxy.port, "rappor_ingest"),
            place,
        ]
        process = Process([*command, str(port), day()])
        collectors = Collectors(process, port)
        made = cls(server, database, proxy, collectors, holder)
        collectors.start(COLLECTORS)
        return made

    @property
    def url(self) -> str:
        """The database, not through the proxy."""
        return self.server.url(self.database)

    def backends(self) -> list[int]:
        """The server's processes for collectors."""
        query = f"SELECT pid FROM pg_stat_activity WHERE datname = '{self.database}'"
        try:
            return [int(str(row[0])) for row in self.server.sql(query)]
        except psycopg.OperationalError:
            return []

    def inject(self, fault: str, dice: random.Random) -> None:
        """Do one fault, and repair what does not repair itself."""
        if fault == "collector":
            self.collectors.kill(dice.choice(self.collectors.pids))
            self.collectors.start()
        elif fault == "server":
            self.server.kill()
            self.server.start()
        elif fault == "cut":
            cuts = self.proxy.cuts
            self.proxy.arm(random_cut(dice))
            wait_for(lambda: self.proxy.cuts > cuts, "a connection that is cut")
        else:
            pids = wait_for(self.backends, "a backend")
            number = signal.SIGKILL if fault == "backend" else signal.SIGTERM
            with suppress(ProcessLookupError):
                os.kill(dice.choice(pids), number)
            wait_for(self.server.answers, "the server to answer again")

    def close(self) -> None:
        self.collectors.process.close()
        for pid in self.collectors.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.proxy.close()
        self._holder.close()


@dataclass
class FaultsFound:
    """What was done, and what was found."""

    reckoning: Reckoning
    done: Counter[str]
    log: Counter[str]


def _look(url: str, crowd: Crowd) -> Reckoning:
    """Compare the store with what was acknowledged, when the database is back."""

    def attempt() -> Reckoning | None:
        with suppress(StoreUnavailable):
            return reckon(url, crowd)
        return None

    return wait_for(attempt, "the database")


def fault_cycles(
    server: Server,
    folder: Path,
    faults: int,
    *,
    seed: int = 1,
    bug: str = "none",
    look_every: int = 20,
) -> FaultsFound:
    """Inject `faults` faults under load, each after some acknowledgements; stop at a finding."""
    dice = random.Random(seed)
    cluster = FaultyCluster.start(server, folder, bug)
    crowd = Crowd(cluster.collectors.port, seed)
    done: Counter[str] = Counter()
    found = Reckoning()
    kinds = list(FAULTS)
    try:
        for number in range(faults):
            if number % len(kinds) == 0:
                dice.shuffle(kinds)
            crowd.wait_for_more(BUSY)
            time.sleep(dice.uniform(0, 0.1))
            kind = kinds[number % len(kinds)]
            cluster.inject(kind, dice)
            done[kind] += 1
            if crowd.unexpected:
                break
            if number % look_every == look_every - 1:
                found = _look(cluster.url, crowd)
                if not found.clean:
                    break
        crowd.wait_for_more(BUSY)
        crowd.finish()
        found = _look(cluster.url, crowd)
        cluster.collectors.stop()
    finally:
        crowd.stopping.set()
        cluster.close()
    return FaultsFound(found, done, Counter(cluster.collectors.process.events()))
