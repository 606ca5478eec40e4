"""Ctrl-C in `rappor reproduce`: it ends in a word, with nothing left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from rappor.cli.faults import INTERRUPTION
from support.command import COMMAND, environment
from support.waiting import wait_for

WORKERS = 2
ENDLESS = ("exponential", "--seeds", "2000")  # an hour of work, so that no worker ends on its own
LIMIT = 300  # seconds: ends a test that hangs, and says nothing about how fast anything is
AT_WORK = 2.0  # seconds of processor time of a worker, which spends less on its imports
pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")


def workers(parent: int) -> list[int]:
    """The processes at work under a parent."""
    children = Path(f"/proc/{parent}/task/{parent}/children")
    names = children.read_text().split() if children.exists() else []
    return [int(each) for each in names if b"spawn_main" in _command(int(each))]


def _command(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def processor_time(process: int) -> float:
    """Seconds that a process has computed for, however busy the machine is."""
    numbers = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(numbers[11]) + int(numbers[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("computed", "everyone"),
    [
        pytest.param(0.0, True, id="a terminal's while workers start"),
        pytest.param(0.0, False, id="the parent's alone while workers start"),
        pytest.param(AT_WORK, True, id="a terminal's while workers work", marks=pytest.mark.long),
        pytest.param(
            AT_WORK, False, id="the parent's alone while workers work", marks=pytest.mark.long
        ),
    ],
)
def test_an_interrupt_ends_all_processes(tmp_path: Path, computed: float, everyone: bool) -> None:
    """Whatever they are doing: a run that went on to its end would write files and return 0."""
    process = subprocess.Popen(
        [*COMMAND, "reproduce", *ENDLESS, "--output", tmp_path / "made" / "here"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    try:
        wait_for(lambda: len(workers(process.pid)) == WORKERS, "workers", process=process)
        started = workers(process.pid)
        wait_for(lambda: min(map(processor_time, started)) >= computed, "work", process=process)
        send = os.killpg if everyone else os.kill
        send(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (
        130,
        b"",
        f"rappor reproduce: {INTERRUPTION}\n".encode(),
    )
    wait_for(lambda: not any(_command(each) for each in started))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_that_another_thread_hears_waits_too() -> None:
    from rappor.experiments import seeds

    ended, done = threading.Event(), []
    heard, tell = socket.socketpair()
    heard.settimeout(LIMIT)
    tell.setblocking(False)

    def start_something() -> None:
        with seeds._interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            assert heard.recv(1)  # the signal has come
            done.append("all of it")

    listener = threading.Thread(target=ended.wait)  # does not block the signal
    listener.start()
    before = signal.set_wakeup_fd(tell.fileno())
    try:
        with pytest.raises(KeyboardInterrupt):
            start_something()
    finally:
        signal.set_wakeup_fd(before)
        ended.set()
        listener.join()
        heard.close()
        tell.close()
    assert done == ["all of it"]


def test_what_was_there_before_is_kept(tmp_path: Path) -> None:
    from rappor.experiments import reproduce

    made = tmp_path / "outer" / "inner"
    made.mkdir(parents=True)
    (tmp_path / "outer" / "file").touch()
    reproduce._remove_empty([made, made.parent, tmp_path])
    assert not made.exists()
    assert (tmp_path / "outer" / "file").exists()
