"""The dashboard's worker as a real process: stopped, killed, and never with a result in it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Desk
from rappor.dashboard.jobs import Job, Jobs
from rappor.dashboard.jobs.worker_process import Worker
from support.dashboard import week
from support.dashboard_desk import entered, made_desk, until_over
from support.waiting import wait_for

OWN_SCORE = Path("/proc/self/oom_score_adj")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """One queue for all tests here: each leaves it able to go on."""
    with made_desk(tmp_path_factory.mktemp("work"), at_work=Worker) as desk:
        yield desk


def decode(desk: Desk, key: str) -> Job:
    """Start the decode of a small collection."""
    arguments: dict[str, Any] = {
        "data": str(desk.settings.data),
        "collection": "browser",
        "version": 1,
        "periods": [week(0)],
        "dimensions": [],
        "against": None,
        "correction": "fdr",
        "alpha": 0.05,
        "method": "auto",
        "list": None,
        "strings": None,
    }
    return desk.jobs.start("decode", arguments, key)


def worker_id(jobs: Jobs) -> int:
    """The process id of a worker that has answered.

    It is asked for a task that there is not; one that a test killed may be asked before it is
    known to be gone, which fails with another reason.
    """
    while True:
        ended = until_over(jobs, jobs.start("no such task", {}, os.urandom(8).hex()))
        number = jobs.worker_id
        if "KeyError" in ended.error and number is not None:
            return number


def stopped(desk: Desk, key: str) -> tuple[Job, int]:
    """A job whose worker is stopped before it begins, and that worker: it never ends by itself."""
    number = worker_id(desk.jobs)
    os.kill(number, signal.SIGSTOP)
    held = decode(desk, key)
    wait_for(lambda: (desk.jobs.get(held.id) or held).state == "running")
    return held, number


def test_a_decode_in_another_process_is_kept(desk: Desk) -> None:
    ended = until_over(desk.jobs, decode(desk, "kept"))
    assert (ended.state, ended.share, ended.error) == ("done", 1, "")
    kept = desk.state.result("kept")
    assert kept is not None
    assert kept.meta["collection"] == "browser"


def test_cancelling_kills_a_worker_that_does_not_answer_and_the_next_job_runs(desk: Desk) -> None:
    held, old = stopped(desk, "held")
    waiting = decode(desk, "waiting")
    cancelled = desk.jobs.cancel(held.id)
    assert cancelled is not None
    assert cancelled.state == "cancelled"
    assert until_over(desk.jobs, waiting).state == "done"
    assert desk.jobs.worker_id != old
    assert desk.state.result("held") is None


def test_a_killed_worker_fails_its_job_and_no_other(desk: Desk) -> None:
    held, number = stopped(desk, "killed")
    os.kill(number, signal.SIGKILL)
    ended = until_over(desk.jobs, held)
    assert ended.state == "failed"
    assert "memory" in ended.error
    assert until_over(desk.jobs, decode(desk, "after")).state == "done"


def test_a_killed_worker_frees_the_queue_of_a_page(desk: Desk) -> None:
    """Killed wherever it is: at its start, at work, or just done."""
    entered(desk, Role.ANALYST).get("/collections/start-time")
    wait_for(lambda: desk.jobs.worker_id is not None)
    number = desk.jobs.worker_id
    if number is not None:
        os.kill(number, signal.SIGKILL)
    wait_for(lambda: all(job.over for job in desk.jobs.all()))


@pytest.mark.skipif(not OWN_SCORE.exists(), reason="Linux has it")
def test_where_memory_runs_out_the_worker_goes_first(desk: Desk) -> None:
    score = Path(f"/proc/{worker_id(desk.jobs)}/oom_score_adj")
    assert int(score.read_text()) > int(OWN_SCORE.read_text())


def test_the_worker_ends_with_its_jobs(tmp_path: Path) -> None:
    with made_desk(tmp_path, at_work=Worker) as desk:
        number = worker_id(desk.jobs)
        thread = desk.jobs._thread
    wait_for(lambda: gone(number))
    thread.join(300)
    assert not thread.is_alive()


def gone(number: int) -> bool:
    """Whether a process has ended; a zombie has."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"
