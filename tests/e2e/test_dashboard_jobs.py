"""The dashboard's worker as a real process: stopped, killed, and never with a result in it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.jobs import Job, Jobs
from rappor.dashboard.jobs.worker_process import WorkerProcess
from support.dashboard import week
from support.dashboard_context import entered, made_context, until_over
from support.waiting import wait_for

OWN_SCORE = Path("/proc/self/oom_score_adj")


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """One queue for all tests here: each leaves it able to go on."""
    with made_context(tmp_path_factory.mktemp("work"), at_work=WorkerProcess) as context:
        yield context


def decode(context: Context, key: str) -> Job:
    """Start the decode of a small collection."""
    arguments: dict[str, Any] = {
        "data": str(context.settings.data),
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
    return context.jobs.start("decode", arguments, key)


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


def stopped(context: Context, key: str) -> tuple[Job, int]:
    """A job whose worker is stopped before it begins, and that worker: it never ends by itself."""
    number = worker_id(context.jobs)
    os.kill(number, signal.SIGSTOP)
    held = decode(context, key)
    wait_for(lambda: (context.jobs.get(held.id) or held).state == "running")
    return held, number


def test_a_decode_in_another_process_is_kept(context: Context) -> None:
    ended = until_over(context.jobs, decode(context, "kept"))
    assert (ended.state, ended.share, ended.error) == ("done", 1, "")
    kept = context.state.result("kept")
    assert kept is not None
    assert kept.meta["collection"] == "browser"


def test_cancelling_kills_a_worker_that_does_not_answer_and_the_next_job_runs(
    context: Context,
) -> None:
    held, old = stopped(context, "held")
    waiting = decode(context, "waiting")
    cancelled = context.jobs.cancel(held.id)
    assert cancelled is not None
    assert cancelled.state == "cancelled"
    assert until_over(context.jobs, waiting).state == "done"
    assert context.jobs.worker_id != old
    assert context.state.result("held") is None


def test_a_killed_worker_fails_its_job_and_no_other(context: Context) -> None:
    held, number = stopped(context, "killed")
    os.kill(number, signal.SIGKILL)
    ended = until_over(context.jobs, held)
    assert ended.state == "failed"
    assert "memory" in ended.error
    assert until_over(context.jobs, decode(context, "after")).state == "done"


def test_a_killed_worker_frees_the_queue_of_a_page(context: Context) -> None:
    """Killed wherever it is: at its start, at work, or just done."""
    entered(context, Role.ANALYST).get("/collections/start-time")
    wait_for(lambda: context.jobs.worker_id is not None)
    number = context.jobs.worker_id
    if number is not None:
        os.kill(number, signal.SIGKILL)
    wait_for(lambda: all(job.over for job in context.jobs.all()))


@pytest.mark.skipif(not OWN_SCORE.exists(), reason="Linux has it")
def test_where_memory_runs_out_the_worker_goes_first(context: Context) -> None:
    score = Path(f"/proc/{worker_id(context.jobs)}/oom_score_adj")
    assert int(score.read_text()) > int(OWN_SCORE.read_text())


def test_the_worker_ends_with_its_jobs(tmp_path: Path) -> None:
    with made_context(tmp_path, at_work=WorkerProcess) as context:
        number = worker_id(context.jobs)
        thread = context.jobs._thread
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
