"""One-time reports: one per collection, kept before it can leave, whatever happens (R11)."""

import os
import subprocess
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

import pytest

from rappor import Encoder, OneTime, Params, Report
from rappor.errors import EncodeError, LedgerError, ParamsError
from support.slots import FileSlot

TEXT_READING = Params(64, 2, 8, 0.5, 0, 1)  # p = 0, q = 1: the permanent response is the report
EXPERIMENTS_READING = Params(64, 2, 8, 0, 0.5, 0.75)  # f = 0: drawn afresh
READINGS = pytest.mark.parametrize(
    "params", [TEXT_READING, EXPERIMENTS_READING], ids=["p=0,q=1", "f=0"]
)
SECRET = bytes(range(32))


class CountedEntropy:
    """The operating system's randomness, and how often it was asked."""

    def __init__(self) -> None:
        self.draws = 0

    def __call__(self, count: int, /) -> bytes:
        self.draws += 1
        return os.urandom(count)


def no_entropy(_count: int, /) -> bytes:
    raise AssertionError("a second draw was made")


def encoder(params: Params, **options: Any) -> Encoder:
    return Encoder(params, **({"secret": SECRET, "collection": "once"} | options))


@READINGS
def test_the_first_report_is_the_only_one_whatever_comes_later(
    params: Params, tmp_path: Path
) -> None:
    slot = FileSlot(tmp_path / "report")
    first = OneTime(encoder(params), slot).report("first")
    assert slot.load() == first
    for value in ("first", "second", "third"):
        assert OneTime(encoder(params, entropy=no_entropy), slot).report(value) == first


def test_without_the_instantaneous_step_the_report_is_the_permanent_response(
    tmp_path: Path,
) -> None:
    made = encoder(TEXT_READING)
    report = OneTime(made, FileSlot(tmp_path / "report")).report("value")
    assert report == Report(made.cohort, made.trace("value").permanent)


def test_without_the_permanent_step_every_client_draws_afresh(tmp_path: Path) -> None:
    drawn = {
        OneTime(encoder(EXPERIMENTS_READING), FileSlot(tmp_path / str(number))).report("value")
        for number in range(4)
    }
    assert len(drawn) > 1  # four times the same 64 coins: below 2^-100


@READINGS
def test_a_report_that_could_not_be_kept_is_not_returned(params: Params, tmp_path: Path) -> None:
    class FullDisk(FileSlot):
        def keep(self, report: Report) -> None:
            raise OSError(28, "No space left on device")

    entropy = CountedEntropy()
    one_time = OneTime(encoder(params, entropy=entropy), FullDisk(tmp_path / "report"))
    with pytest.raises(OSError, match="No space left"):
        one_time.report("value")
    assert entropy.draws <= 1
    assert list(tmp_path.iterdir()) == []


@READINGS
def test_after_a_failed_keep_the_next_call_returns_only_what_it_kept(
    params: Params, tmp_path: Path
) -> None:
    class FailsOnce(FileSlot):
        failed = False

        def keep(self, report: Report) -> None:
            if not self.failed:
                self.failed = True
                raise OSError(28, "No space left on device")
            super().keep(report)

    slot = FailsOnce(tmp_path / "report")
    one_time = OneTime(encoder(params), slot)
    with pytest.raises(OSError, match="No space left"):
        one_time.report("value")
    assert one_time.report("value") == slot.load()
    assert one_time.report("other") == slot.load()


@READINGS
def test_a_keep_that_fails_after_it_was_durable_costs_no_second_draw(
    params: Params, tmp_path: Path
) -> None:
    class FailsLate(FileSlot):
        def keep(self, report: Report) -> None:
            super().keep(report)
            raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        OneTime(encoder(params), FailsLate(tmp_path / "report")).report("value")
    slot = FileSlot(tmp_path / "report")
    kept = slot.load()
    assert kept is not None
    assert OneTime(encoder(params, entropy=no_entropy), slot).report("value") == kept


CRASH = """
import os, sys
from pathlib import Path
from support.slots import FileSlot
from rappor import Encoder, OneTime, Params

class PowerCut(FileSlot):
    def keep(self, report):
        super().keep(report)
        os._exit(9)  # kept, not sent

params = Params.from_json(sys.argv[2])
encoder = Encoder(params, secret=bytes(range(32)), collection="once")
OneTime(encoder, PowerCut(Path(sys.argv[1]))).report("value")
print("sent")
"""


@pytest.mark.slow
@READINGS
def test_a_crash_between_draw_and_send_leaves_the_one_report_to_be_sent(
    params: Params, tmp_path: Path
) -> None:
    tests = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, str(tmp_path / "report"), params.to_json()],
        env=os.environ | {"PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (9, "", "")
    slot = FileSlot(tmp_path / "report")
    kept = slot.load()
    assert kept is not None
    assert OneTime(encoder(params, entropy=no_entropy), slot).report("value") == kept


@READINGS
def test_a_value_that_cannot_be_encoded_keeps_nothing(params: Params, tmp_path: Path) -> None:
    one_time = OneTime(encoder(params), FileSlot(tmp_path / "report"))
    value = "hunter2-marker" + "\ud800"
    with pytest.raises(EncodeError) as caught:
        one_time.report(value)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert list(tmp_path.iterdir()) == []


@READINGS
@pytest.mark.parametrize(
    "kept", [Report(3, 0), Report(2, 1 << 64), Report(2, -1)], ids=["cohort", "length", "negative"]
)
def test_a_kept_report_of_another_client_is_refused(
    params: Params, kept: Report, tmp_path: Path
) -> None:
    slot = FileSlot(tmp_path / "report")
    slot.keep(kept)
    one_time = OneTime(encoder(params, cohort=2, entropy=no_entropy), slot)
    with pytest.raises(LedgerError, match="belongs to another collection or client"):
        one_time.report("value")
    assert slot.load() == kept


@pytest.mark.parametrize(
    ("f", "p", "q"),
    [(0.5, 0.5, 0.75), (0.5, 0, 0.75), (0.5, 0.25, 1), (5e-324, 0.5, 0.75), (0.5, 5e-324, 1)],
)
def test_two_randomizations_are_not_one_time(f: float, p: float, q: float, tmp_path: Path) -> None:
    made = encoder(Params(64, 2, 8, f, p, q))
    with pytest.raises(ParamsError, match="one-time reports need f = 0, or p = 0 with q = 1"):
        OneTime(made, FileSlot(tmp_path / "report"))


def test_other_kinds_report_once_too(tmp_path: Path) -> None:
    params = Params(3, 1, 1, 0, 0.25, 0.75)
    made = encoder(params, kind="category", categories=["a", "b", "c"])
    slot = FileSlot(tmp_path / "report")
    assert OneTime(made, slot).report("b") == slot.load() == OneTime(made, slot).report("c")


# Races, and slots that do not do what a slot does.

ONE_TIME = [Params(64, 2, 1, 0.0, 0.25, 0.75), Params(64, 2, 1, 0.5, 0.0, 1.0)]


@pytest.mark.slow
@pytest.mark.parametrize("params", ONE_TIME)
def test_threads_that_race_end_with_one_report(params, tmp_path):
    for attempt in range(10):
        slot = FileSlot(tmp_path / str(attempt))
        start, found = threading.Barrier(8), []

        def race(number, slot=slot, start=start, found=found):
            encoder = Encoder(params, secret=SECRET, collection="c")
            start.wait()
            found.append(OneTime(encoder, slot).report(f"value {number}"))

        threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert set(found) == {slot.load()}
        assert len(found) == 8


RACER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from support.slots import FileSlot
from rappor import Encoder, OneTime, Params
params = Params(64, 2, 1, 0.0, 0.25, 0.75)
encoder = Encoder(params, secret=bytes(range(32)), collection="c")
sys.stdin.readline()
print(OneTime(encoder, FileSlot(Path(sys.argv[2]))).report(sys.argv[3]).bits)
"""


@pytest.mark.slow
def test_processes_that_race_end_with_one_report(tmp_path, request):
    tests = str(request.config.rootpath / "tests")
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, tests, str(tmp_path / "slot"), f"value {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    found = {racer.communicate(timeout=300)[0] for racer in racers}
    assert len(found) == 1
    assert "" not in found


def test_a_slot_that_keeps_nothing_gives_nothing():
    class Forgetful:
        def load(self):
            return None

        def keep(self, report: Report) -> None:
            pass

    encoder = Encoder(ONE_TIME[0], secret=SECRET, collection="c")
    with pytest.raises(LedgerError, match="lost"):
        OneTime(encoder, Forgetful()).report("value")


@pytest.mark.parametrize("kept", [(0, 1), {"bits": 1}, Report(0, 1 << 64), Report(5, 1), 7])
def test_a_kept_thing_that_is_not_ours_is_refused(kept):
    class Odd:
        def load(self):
            return kept

        def keep(self, report: Report) -> None:
            pass

    encoder = Encoder(ONE_TIME[0], secret=SECRET, collection="c")
    with pytest.raises(LedgerError, match="another collection or client"):
        OneTime(encoder, Odd()).report("value")
