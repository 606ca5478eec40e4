"""A collector that is stopped by a signal under load and goes on: no report is lost or doubled."""

import os
import signal
import time
from pathlib import Path

import pytest

from support.collecting import Client
from support.killing import Crowd, Victim, reckon
from support.waiting import wait_for


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@pytest.mark.parametrize(
    ("pauses", "seconds"),
    [
        (3, 0.2),
        pytest.param(3, 12.0, marks=pytest.mark.long),  # longer than a header or a body may take
        pytest.param(30, 12.0, marks=pytest.mark.soak),
    ],
)
def test_a_pause_loses_nothing_and_ends_nothing(
    tmp_path: Path, pauses: int, seconds: float
) -> None:
    victim = Victim(tmp_path, "none")
    try:
        victim.start()
        crowd = Crowd(victim.port, seed=1)
        pid = victim.pid
        for _ in range(pauses):
            crowd.wait_for_more(20)
            os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: is_stopped(pid))
            until = time.monotonic() + seconds
            wait_for(lambda until=until: time.monotonic() >= until)
            os.kill(pid, signal.SIGCONT)
        crowd.wait_for_more(20)
        client = Client(victim.port)
        wait_for(lambda: client.get("/readyz").status == 200)
        assert client.get("/healthz").status == 200
        client.close()
        crowd.finish()
        found = reckon(tmp_path / "data", crowd)
        assert found.clean, found
        assert found.stored >= found.acknowledged >= 20 * pauses
        assert victim.pid == pid
    finally:
        victim.close()
