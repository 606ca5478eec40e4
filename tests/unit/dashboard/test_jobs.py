"""Jobs: one worker process that can be killed at any time, and never takes a result with it."""

import os
import signal
import time

import pytest

from rappor.dashboard.jobs import Jobs, worker
from rappor.dashboard.jobs.jobs import TooManyJobs
from support.dashboard import PAGES, sample_folder, week


class Memory:
    """A state that forgets with the test."""

    def __init__(self):
        self.results, self.ended = {}, []
        self.full = False

    def save_result(self, key, kind, meta, table):
        if self.full:
            raise OSError(28, "No space left on device")
        self.results[key] = (kind, meta, table)

    def save_job(self, number, kind, key, status, document):
        self.ended.append((number, status))


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return sample_folder(tmp_path_factory.mktemp("jobs"))


@pytest.fixture
def jobs():
    made = Jobs(Memory())
    yield made
    made.close()


@pytest.fixture(scope="module")
def lasting():
    """Jobs for tests that leave the worker alone: starting one takes a second."""
    made = Jobs(Memory())
    yield made
    made.close()


def arguments(sample, **changed):
    return {
        "data": str(sample.data),
        "collection": "homepage",
        "version": 1,
        "periods": [week(0)],
        "dimensions": [],
        "against": None,
        "correction": "fdr",
        "alpha": 0.05,
        "method": "auto",
        "list": 1,
        "strings": PAGES,
    } | changed


def stopped(jobs, sample, key="held"):
    """A job whose worker is stopped in the middle of it."""
    first = jobs.start("decode", arguments(sample), "first")
    assert jobs.wait(first.id, 60).state == "done"
    os.kill(jobs.worker_id, signal.SIGSTOP)
    held = jobs.start("decode", arguments(sample), key)
    while jobs.get(held.id).state != "running":
        time.sleep(0.001)
    return held


def test_a_decode_is_followed_to_its_end_and_kept(lasting, sample):
    seen = set()
    job = lasting.start("decode", arguments(sample), "k", label="Decoding", actor="ada")
    while not (now := lasting.get(job.id)).over:
        seen.add((now.text, now.share))
        time.sleep(0.001)
    assert now.state == "done"
    assert now.share == 1
    assert now.seconds > 0
    kind, meta, table = lasting._state.results["k"]
    assert (kind, meta["collection"], meta["candidates"]) == ("decode", "homepage", len(PAGES))
    assert table
    shares = [share for _, share in seen if share is not None]
    assert shares
    assert all(0 <= share <= 1 for share in shares)
    assert (job.id, "done") in lasting._state.ended


def test_two_of_one_key_are_one(jobs, sample):
    held = stopped(jobs, sample)
    assert jobs.start("decode", arguments(sample), "held").id == held.id
    assert jobs.start("decode", arguments(sample), "other").id != held.id


def test_cancelling_kills_at_once_and_the_next_one_runs(jobs, sample):
    held = stopped(jobs, sample)
    waiting = jobs.start("decode", arguments(sample), "waiting")
    old = jobs.worker_id
    began = time.monotonic()
    assert jobs.cancel(held.id).state == "cancelled"
    assert time.monotonic() - began < 1
    assert jobs.wait(waiting.id, 60).state == "done"
    assert jobs.worker_id != old
    assert "held" not in jobs._state.results
    assert jobs.cancel(held.id).state == "cancelled"  # once is enough
    assert jobs.cancel("nonsense") is None


def test_one_that_waits_is_cancelled_without_a_trace(jobs, sample):
    held = stopped(jobs, sample)
    waiting = jobs.start("decode", arguments(sample), "waiting")
    assert jobs.cancel(waiting.id).state == "cancelled"
    assert jobs.get(held.id).state == "running"
    os.kill(jobs.worker_id, signal.SIGCONT)
    assert jobs.wait(held.id, 60).state == "done"
    assert "waiting" not in jobs._state.results


def test_a_killed_worker_fails_its_job_and_no_other(jobs, sample):
    held = stopped(jobs, sample)
    os.kill(jobs.worker_id, signal.SIGKILL)
    ended = jobs.wait(held.id, 30)
    assert ended.state == "failed"
    assert "memory" in ended.error
    after = jobs.start("decode", arguments(sample), "after")
    assert jobs.wait(after.id, 60).state == "done"


def test_what_nobody_asked_for_comes_last(jobs, sample):
    held = stopped(jobs, sample)
    unasked = jobs.start("decode", arguments(sample), "unasked", unasked=True)
    asked = jobs.start("decode", arguments(sample), "asked")
    os.kill(jobs.worker_id, signal.SIGCONT)
    assert jobs.wait(unasked.id, 60).state == "done"
    assert jobs.get(held.id).ended <= jobs.get(asked.id).began
    assert jobs.get(asked.id).ended <= jobs.get(unasked.id).began


def test_a_long_job_that_nobody_asked_for_gives_way_and_is_done_later(jobs, sample, monkeypatch):
    monkeypatch.setattr("rappor.dashboard.jobs.jobs._GRACE_SECONDS", 0.0)
    first = jobs.start("decode", arguments(sample), "first")
    assert jobs.wait(first.id, 60).state == "done"
    os.kill(jobs.worker_id, signal.SIGSTOP)
    unasked = jobs.start("decode", arguments(sample), "unasked", unasked=True)
    while jobs.get(unasked.id).state != "running":
        time.sleep(0.001)
    asked = jobs.start("decode", arguments(sample), "asked")
    assert jobs.get(unasked.id).state == "waiting"  # neither cancelled nor failed
    assert jobs.wait(asked.id, 60).state == "done"
    assert jobs.wait(unasked.id, 60).state == "done"
    assert jobs.get(asked.id).ended <= jobs.get(unasked.id).began


def test_an_unasked_job_that_somebody_asks_for_gives_way_no_more(jobs, sample, monkeypatch):
    monkeypatch.setattr("rappor.dashboard.jobs.jobs._GRACE_SECONDS", 0.0)
    first = jobs.start("decode", arguments(sample), "first")
    assert jobs.wait(first.id, 60).state == "done"
    os.kill(jobs.worker_id, signal.SIGSTOP)
    unasked = jobs.start("decode", arguments(sample), "same", unasked=True)
    while jobs.get(unasked.id).state != "running":
        time.sleep(0.001)
    assert jobs.start("decode", arguments(sample), "same").id == unasked.id
    jobs.start("decode", arguments(sample), "other")
    assert jobs.get(unasked.id).state == "running"


@pytest.mark.parametrize(
    ("changed", "about"),
    [
        ({"periods": ["2020-W01"]}, "no reports left"),
        ({"collection": "nowhere"}, "no collection"),
        ({"strings": []}, "no candidates"),
        ({"alpha": 7.0}, "alpha"),
        ({"strings": 5}, "list of strings"),
        ({"correction": object}, "correction"),
    ],
)
def test_what_goes_wrong_is_said_and_the_worker_lives_on(lasting, sample, changed, about):
    job = lasting.wait(lasting.start("decode", arguments(sample, **changed), "k").id, 60)
    assert job.state == "failed"
    assert about in job.error
    assert lasting.wait(lasting.start("decode", arguments(sample), "k").id, 60).state == "done"


def test_a_fault_of_the_program_is_no_traceback_on_a_page(lasting, sample):
    job = lasting.wait(lasting.start("no such task", {}, "k").id, 60)
    assert (job.state, job.error) == ("failed", "A fault of the program (KeyError).")


def test_a_result_that_cannot_be_kept_is_a_failure(jobs, sample):
    jobs._state.full = True
    job = jobs.wait(jobs.start("decode", arguments(sample), "k").id, 60)
    assert job.state == "failed"
    assert "No space left" in job.error


def test_the_queue_has_an_end(jobs, sample):
    stopped(jobs, sample)
    for number in range(50):
        jobs.start("decode", arguments(sample), f"key {number}")
    with pytest.raises(TooManyJobs, match="50"):
        jobs.start("decode", arguments(sample), "one more")


def test_the_worker_ends_with_its_jobs(sample):
    jobs = Jobs(Memory())
    assert jobs.wait(jobs.start("decode", arguments(sample), "k").id, 60).state == "done"
    number = jobs.worker_id
    jobs.close()
    for _ in range(100):
        try:
            os.kill(number, 0)
            with open(f"/proc/{number}/stat", encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    break
        except (ProcessLookupError, FileNotFoundError):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the worker is still there")
    assert not jobs._thread.is_alive()


def test_linear_algebra_leaves_a_core_to_the_pages():
    assert [worker.threads(cores) for cores in (None, 1, 2, 4, 64)] == [1, 1, 1, 3, 4]
