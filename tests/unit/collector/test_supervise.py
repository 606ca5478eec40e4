"""The supervisor: restarts what fails, leaves what cannot work, stops all together."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.command import environment

SCRIPT = """
import sys
from rappor.collector import log, supervise
log.set_up("info")
commands = [(sys.executable, "-c", code) for code in sys.argv[1:]]
children = [supervise.Child(f"c{i}", command) for i, command in enumerate(commands)]
sys.exit(supervise.Supervisor(children).run())
"""


def supervise(*codes: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *codes], stderr=subprocess.PIPE, text=True, env=environment()
    )


def counted(file: Path, then: str) -> str:
    """Code of a child that leaves a mark each time that it runs."""
    return f"import sys, time; open({str(file)!r}, 'a').write('x'); {then}"


def wait_for_marks(file: Path, marks: int) -> None:
    deadline = time.monotonic() + 20
    while not file.exists() or len(file.read_text()) < marks:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("failure", ["sys.exit(1)", "import os; os.kill(os.getpid(), 9)"])
def test_a_child_that_fails_is_started_again_after_growing_pauses(
    tmp_path: Path, failure: str
) -> None:
    started = time.monotonic()
    with supervise(counted(tmp_path / "marks", failure)) as process:
        wait_for_marks(tmp_path / "marks", 4)
        assert time.monotonic() - started > 0.2 + 0.4 + 0.8
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) in (0, 1)  # whether or not the fourth had failed by then


def test_a_child_that_ends_well_is_not_started_again(tmp_path: Path) -> None:
    with supervise(counted(tmp_path / "marks", "pass")) as process:
        assert process.wait(15) == 0
    assert (tmp_path / "marks").read_text() == "x"


@pytest.mark.parametrize("code", [2, 3])
def test_a_child_that_cannot_work_ends_all_with_its_code(tmp_path: Path, code: int) -> None:
    other = counted(tmp_path / "other", "time.sleep(60)")
    hopeless = f"import time; time.sleep(0.5); raise SystemExit({code})"
    with supervise(other, hopeless) as process:
        assert process.wait(15) == code
    assert (tmp_path / "other").read_text() == "x"


def test_a_stop_reaches_all_children_and_a_bad_end_is_told(tmp_path: Path) -> None:
    calm = "import signal, sys, time; signal.signal(15, lambda *_: sys.exit(0)); "
    codes = [calm + counted(tmp_path / name, "time.sleep(60)") for name in ("a", "b")]
    with supervise(*codes) as process:
        for name in ("a", "b"):
            wait_for_marks(tmp_path / name, 1)
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    with supervise(codes[0], codes[1].replace("sys.exit(0)", "sys.exit(7)")) as process:
        for name in ("a", "b"):
            wait_for_marks(tmp_path / name, 2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 1


def test_sighup_is_passed_on(tmp_path: Path) -> None:
    file = tmp_path / "marks"
    listening = f"import signal; signal.signal(1, lambda *_: open({str(file)!r}, 'a').write('h')); "
    with supervise(listening + counted(file, "time.sleep(60)")) as process:
        wait_for_marks(file, 1)
        process.send_signal(signal.SIGHUP)
        wait_for_marks(file, 2)
        process.send_signal(signal.SIGTERM)
        process.wait(15)
    assert file.read_text() == "xh"
