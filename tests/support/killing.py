"""B1: clients that never stop, a collector that is killed over and over, and the reckoning.

Each report is a cell of its own: one bit of one cohort of one period that no other report has. A
cell above 1 is a double count; an acknowledged cell at 0 is a loss.
"""

import http.client
import itertools
import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rappor import Params, Report
from rappor.collection import Collection
from rappor.store import open_store
from rappor.wire import Batch, encode_batch
from support.collecting import PATIENCE, Client, Process, day, planted_command, write_collections
from support.ports import HeldPort
from support.waiting import wait_for

PARAMS = Params(k=1024, h=1, m=64, f=0.5, p=0.5, q=0.75)
CELLS = PARAMS.k * PARAMS.m  # in one period
CLIENTS = 8
REPLAYS = 0.10
BUSY = 8  # acknowledgements since the start after which a collector counts as busy
EARLY = 5  # every fifth kill does not wait for them: it may hit the first commit after a start


@dataclass
class Reckoning:
    """What was found."""

    acknowledged: int = 0
    stored: int = 0
    kills: int = 0
    lost: int = 0
    double: int = 0
    unexpected: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not self.lost and not self.double and not self.unexpected


def message_of(number: int) -> bytes:
    """The one report with this number, in a batch with a token of its own."""
    period, cell = divmod(number, CELLS)
    cohort, bit = divmod(cell, PARAMS.k)
    batch = Batch.of(
        [Report(cohort, 1 << bit)],
        token=os.urandom(16),
        collection="kill",
        version=1,
        period=day(-period),
        k=PARAMS.k,
    )
    return encode_batch(batch)


class Crowd:
    """Clients that keep what was not acknowledged, and replay some of what was."""

    def __init__(self, port: int, seed: int) -> None:
        self.port = port
        self.numbers = itertools.count()
        self.acknowledged: set[int] = set()
        self.unexpected: list[str] = []
        self.stopping = threading.Event()
        self._threads = [
            threading.Thread(target=self._work, args=(random.Random(seed * 100 + i),))
            for i in range(CLIENTS)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self, dice: random.Random) -> None:
        client = Client(self.port)
        sent: list[bytes] = []
        pending: tuple[int, bytes] | None = None
        while pending is not None or not self.stopping.is_set():
            if pending is None:
                number = next(self.numbers)
                pending = (number, message_of(number))
            again = bool(sent) and dice.random() < REPLAYS
            message = dice.choice(sent) if again else pending[1]
            try:
                answer = client.send(message)
            except (OSError, http.client.HTTPException):
                client.close()
                time.sleep(0.005)
                continue
            if answer.status == 204:
                if not again:
                    self.acknowledged.add(pending[0])
                    sent = [*sent[-50:], pending[1]]
                    pending = None
            elif answer.status == 503:
                time.sleep(0.01)  # nobody is helped by asking at once
            else:
                self.unexpected.append(f"{answer.status} {answer.body!r}")
                break
        client.close()

    def wait_for_more(self, acknowledgements: int) -> None:
        """Wait until so many more are acknowledged, or something unexpected was said."""
        enough = len(self.acknowledged) + acknowledgements
        wait_for(lambda: len(self.acknowledged) >= enough or self.unexpected)

    def finish(self) -> None:
        """Let every client bring home what it has."""
        self.stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE)
            if thread.is_alive():
                self.unexpected.append("a client is still waiting")


class Victim:
    """A collector that comes back each time."""

    def __init__(self, folder: Path, bug: str) -> None:
        write_collections(folder, Collection("kill", 1, PARAMS))
        self._held = HeldPort()  # also while no collector has it
        self.port = self._held.number
        self._process = Process(planted_command(bug, folder, self.port, "forks"))
        self.pid = 0

    def start(self) -> None:
        self._process.listens_again()
        forks = self._process.process.stdin
        assert forks is not None
        forks.write(b"start\n")
        forks.flush()
        self._process.wait_until_listening()
        self.pid = int([line for line in self._process.text if line.startswith("pid ")][-1][4:])

    def kill(self) -> None:
        gone = self._process.text.count("gone\n")
        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: self._process.text.count("gone\n") > gone)

    def close(self) -> None:
        self._process.close()
        self._held.close()


def reckon(where: Path | str, crowd: Crowd) -> Reckoning:
    """Compare a store with what was acknowledged."""
    # Taken before the store is read, and in one step: more may come meanwhile.
    acknowledged = np.array(tuple(crowd.acknowledged), np.int64)
    found = Reckoning(len(acknowledged), unexpected=list(crowd.unexpected))
    store = open_store(where, read_only=True)
    try:
        counts = {each.cell.period: each for each in store.counts("kill")}
    finally:
        store.close()
    for period in range(15):
        mine = acknowledged[acknowledged // CELLS == period] % CELLS
        if day(-period) not in counts:
            found.lost += len(mine)
            continue
        cells = counts[day(-period)].ones.reshape(-1)
        found.stored += int(cells.sum())
        found.lost += int((cells[mine] == 0).sum())
        found.double += int((cells > 1).sum())
        if counts[day(-period)].reports != int(cells.sum()):
            found.unexpected.append("totals and bits differ")
    return found


def kill_cycles(
    folder: Path,
    cycles: int,
    *,
    bug: str = "none",
    seed: int = 1,
    look_every: int = 20,
    pause: float = 0.5,
) -> Reckoning:
    """Kill a collector under load `cycles` times at random moments of its work.

    Four kills of five come up to `pause` seconds after `BUSY` acknowledgements, so that it was at
    work however slow the machine is; the fifth comes up to `pause` seconds after it listens.

    Looks into the store now and then, and stops at the first fault that it finds.
    """
    dice = random.Random(seed)
    victim = Victim(folder, bug)
    crowd: Crowd | None = None
    found = Reckoning()
    cycle = 0
    try:
        for cycle in range(1, cycles + 1):
            victim.start()
            crowd = crowd or Crowd(victim.port, seed)
            if cycle % EARLY:
                crowd.wait_for_more(BUSY)
            time.sleep(dice.uniform(0, pause))
            victim.kill()
            if cycle % look_every == 0:
                found = reckon(folder / "data", crowd)
                if not found.clean:
                    break
        victim.start()
        if crowd is not None:
            crowd.finish()
            found = reckon(folder / "data", crowd)
    finally:
        if crowd is not None:
            crowd.stopping.set()
        victim.close()
    found.kills = cycle
    return found
