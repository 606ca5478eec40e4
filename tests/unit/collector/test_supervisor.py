"""The supervisor: restarts what fails, leaves what cannot work, stops all together."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rappor.collector.supervisor import (
    FIRST_PAUSE,
    MAX_PAUSE,
    STEADY_SECONDS,
    Child,
    Supervisor,
)
from support.collecting import PATIENCE
from support.command import environment
from support.waiting import wait_for

# Pauses, under a clock that the test sets.


class Clocked:
    """A supervisor of one child, whose turns and clock are the test's."""

    def __init__(self, command: str) -> None:
        self.now = 0.0
        self.supervisor = Supervisor([Child("c", ("sh", "-c", command))], lambda: self.now)
        (self.running,) = self.supervisor._all

    def turn(self, seconds: float = 0.0) -> bool:
        """Let time pass and have it look at its child; whether this runs."""
        self.now += seconds
        self.supervisor._turn()
        return self.running.process is not None

    def wait_for_the_end(self) -> None:
        """Until the child has ended, and this was noticed."""
        assert self.running.process is not None
        self.running.process.wait(PATIENCE)
        assert not self.turn()


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["exit 1", "kill -9 $$"])
def test_a_child_that_fails_is_started_again_after_growing_pauses(failure: str) -> None:
    clocked = Clocked(failure)
    assert clocked.turn()
    pause = FIRST_PAUSE
    for _ in range(10):
        clocked.wait_for_the_end()
        assert not clocked.turn(pause - 0.01)
        assert clocked.turn(0.011)
        pause = min(2 * pause, MAX_PAUSE)
    assert pause == MAX_PAUSE
    clocked.wait_for_the_end()


@pytest.mark.slow
def test_the_pauses_are_short_again_after_a_child_that_ran_for_long() -> None:
    clocked = Clocked("exit 1")
    assert clocked.turn()
    for _ in range(5):
        clocked.wait_for_the_end()
        assert clocked.turn(MAX_PAUSE)
    clocked.now += STEADY_SECONDS
    clocked.wait_for_the_end()
    assert clocked.turn(FIRST_PAUSE)
    clocked.wait_for_the_end()


class Recorded:
    """A process that runs on; it records the signals that it is sent."""

    def __init__(self, on_poll: Callable[[], None] = lambda: None) -> None:
        self.signals: list[int] = []
        self.poll = on_poll
        self.send_signal = self.signals.append


def test_a_reload_asked_for_in_the_middle_of_a_turn_reaches_every_child() -> None:
    supervisor = Supervisor([Child(name, ("true",)) for name in ("a", "b")], lambda: 0.0)
    asked: list[None] = []

    def ask_once() -> None:  # the signal comes when the first child has had its turn
        if not asked:
            asked.append(supervisor._pass_on())

    children = [Recorded(), Recorded(ask_once)]
    for running, child in zip(supervisor._all, children, strict=True):
        running.process = child  # type: ignore[assignment]
    for _ in range(3):
        supervisor._turn()
    assert [child.signals for child in children] == [[signal.SIGHUP], [signal.SIGHUP]]


# The whole of it, in a process with its signals.

SCRIPT = """
import sys
from rappor.collector import log, supervisor
log.set_up("info")
commands = [("sh", "-c", code) for code in sys.argv[1:]]
children = [supervisor.Child(f"c{i}", command) for i, command in enumerate(commands)]
sys.exit(supervisor.Supervisor(children).run())
"""


@contextlib.contextmanager
def supervise(*codes: str) -> Iterator[subprocess.Popen[str]]:
    """A supervisor in a process of its own, which is gone afterwards whatever happens."""
    command = [sys.executable, "-c", SCRIPT, *codes]
    with subprocess.Popen(command, env=environment(), text=True) as process:
        try:
            yield process
        finally:
            process.kill()  # its children end with it


WAIT = "while :; do sleep 0.02; done"


def marked(file: Path, then: str) -> str:
    """A child that leaves a mark each time that it runs."""
    return f"printf x >> '{file}'; {then}"


def wait_for_marks(file: Path, marks: int) -> None:
    wait_for(lambda: file.exists() and len(file.read_text()) >= marks)


@pytest.mark.slow
def test_a_child_that_fails_is_started_again(tmp_path: Path) -> None:
    with supervise(marked(tmp_path / "marks", "exit 1")) as process:
        wait_for_marks(tmp_path / "marks", 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) in (0, 1)  # whether or not the second had failed by then


@pytest.mark.slow
def test_a_child_that_ends_well_is_not_started_again(tmp_path: Path) -> None:
    with supervise(marked(tmp_path / "marks", "exit 0")) as process:
        assert process.wait(PATIENCE) == 0
    assert (tmp_path / "marks").read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize("code", [2, 3])
def test_a_child_that_cannot_work_ends_all_with_its_code(tmp_path: Path, code: int) -> None:
    file = tmp_path / "other"
    hopeless = f"until [ -s '{file}' ]; do sleep 0.02; done; exit {code}"
    with supervise(marked(file, WAIT), hopeless) as process:
        assert process.wait(PATIENCE) == code
    assert file.read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 7)])
def test_a_stop_reaches_all_children_and_a_bad_end_is_told(
    tmp_path: Path, number: int, code: int
) -> None:
    one = "trap 'exit 0' TERM; " + marked(tmp_path / "a", WAIT)
    other = f"trap 'exit {code}' TERM; " + marked(tmp_path / "b", WAIT)
    with supervise(one, other) as process:
        for name in ("a", "b"):
            wait_for_marks(tmp_path / name, 1)
        process.send_signal(number)
        assert process.wait(PATIENCE) == (1 if code else 0)


@pytest.mark.slow
def test_sighup_is_passed_on(tmp_path: Path) -> None:
    file = tmp_path / "marks"
    listening = f"trap \"printf h >> '{file}'\" HUP; trap 'exit 0' TERM; "
    with supervise(listening + marked(file, WAIT)) as process:
        wait_for_marks(file, 1)
        process.send_signal(signal.SIGHUP)
        wait_for_marks(file, 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert file.read_text() == "xh"
