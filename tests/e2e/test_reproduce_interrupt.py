"""Ctrl-C in `rappor reproduce`: at once, in a word, with nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import COMMAND, environment

WORKERS = 2
SOON = 5.0  # seconds; it takes a fraction of one where nothing else runs
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


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("later", [0.0, 3.0], ids=["while workers start", "while workers work"])
@pytest.mark.parametrize("everyone", [True, False], ids=["a terminal's", "the parent's alone"])
def test_an_interrupt_ends_all_processes_at_once(
    tmp_path: Path, later: float, everyone: bool
) -> None:
    process = subprocess.Popen(
        [*COMMAND, "reproduce", "exponential", "--output", tmp_path / "made" / "here"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    try:
        assert wait_until(lambda: len(workers(process.pid)) == WORKERS, 60)
        started = workers(process.pid)
        time.sleep(later)
        assert process.poll() is None, "it ended before it could be interrupted"
        send = os.killpg if everyone else os.kill
        send(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=SOON)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")
    assert wait_until(lambda: not any(_command(each) for each in started), SOON)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_that_another_thread_hears_waits_too() -> None:
    from rappor.experiments import replicate

    ended, done = threading.Event(), []

    def start_something() -> None:
        with replicate._interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            done.append("all of it")

    listener = threading.Thread(target=ended.wait)  # does not block the signal
    listener.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            start_something()
    finally:
        ended.set()
        listener.join()
    assert done == ["all of it"]


def test_what_was_there_before_is_kept(tmp_path: Path) -> None:
    from rappor.experiments import reproduce

    made = tmp_path / "outer" / "inner"
    made.mkdir(parents=True)
    (tmp_path / "outer" / "file").touch()
    reproduce._remove_empty([made, made.parent, tmp_path])
    assert not made.exists()
    assert (tmp_path / "outer" / "file").exists()
