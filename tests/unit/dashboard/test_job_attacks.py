"""Attacks by work: many jobs, large ones, downloads that wait, and a worker that cannot start."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.dashboard.access.roles import Role
from rappor.dashboard.desk import Desk
from rappor.dashboard.jobs import Jobs, worker
from rappor.dashboard.jobs import jobs as jobs_module
from rappor.dashboard.jobs.job import Job
from rappor.dashboard.jobs.jobs import MOST_OF_ONE, TooManyJobs
from rappor.dashboard.pages.results import MOST_DOWNLOADS
from rappor.errors import StoreError, StoreFull
from support.dashboard_desk import Browser, made_desk


class Memory:
    """A state that forgets with the test."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def save_result(self, *_: object) -> None:
        if self.error is not None:
            raise self.error

    def save_job(self, *_: object) -> None:
        pass


class Held:
    """A worker that never comes to an end, and counts what it is sent."""

    sent: list[object]
    alive, reason = True, "held"

    def __init__(self) -> None:
        self.sent, self.done = [], threading.Event()

    def run(self, _kind: str, arguments: object) -> Iterator[worker.Message]:
        self.sent.append(arguments)
        self.done.wait(30)
        yield from ()

    def kill(self) -> None:
        self.done.set()


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    monkeypatch.setattr(jobs_module, "Worker", Held)
    made = Jobs(Memory())
    yield made
    made.close()


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with made_desk(tmp_path_factory.mktemp("work")) as desk:
        yield desk


def test_one_visitor_cannot_fill_the_queue(jobs: Jobs) -> None:
    for number in range(MOST_OF_ONE + 1):  # one of them runs
        jobs.start("decode", {}, f"a{number}", actor="analyst ada")
        while number == 0 and not any(job.state == "running" for job in jobs.all()):
            time.sleep(0.001)
    with pytest.raises(TooManyJobs, match="yours"):
        jobs.start("decode", {}, "one more", actor="analyst ada")
    assert jobs.start("decode", {}, "other", actor="analyst bob").state == "waiting"
    again = jobs.start("decode", {}, "a1", actor="analyst ada")
    assert again.key == "a1", "what waits already is found"


def test_what_a_job_needs_is_not_held_while_it_waits(jobs: Jobs) -> None:
    made: list[int] = []

    def large(number: int) -> dict[str, object]:
        made.append(number)
        return {"strings": ["x"] * 10}

    for number in range(5):
        jobs.start("decode", lambda number=number: large(number), f"k{number}")
    until = time.monotonic() + 5
    while not made and time.monotonic() < until:
        time.sleep(0.001)
    time.sleep(0.05)
    assert made == [0]


def test_arguments_that_cannot_be_made_fail_their_job_and_no_other(jobs: Jobs) -> None:
    def gone() -> dict[str, object]:
        raise StoreError("/somewhere/data/dashboard.sqlite: gone")

    job = jobs.wait(jobs.start("decode", gone, "k").id, 5)
    assert job is not None
    assert job.state == "failed"
    assert "/somewhere" not in job.error
    assert jobs.start("decode", {}, "next").state in ("waiting", "running")


def test_a_worker_that_cannot_be_started_fails_one_job_and_the_queue_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = []

    def none() -> Held:
        tries.append(1)
        if len(tries) == 1:
            raise OSError(12, "Cannot allocate memory")
        return Held()

    monkeypatch.setattr(jobs_module, "Worker", none)
    jobs = Jobs(Memory())
    try:
        first = jobs.wait(jobs.start("decode", {}, "first").id, 5)
        assert first is not None
        assert (first.state, "memory" in first.error) == ("failed", True)
        second = jobs.start("decode", {}, "second")
        until = time.monotonic() + 5
        while (found := jobs.get(second.id)) and found.state != "running":
            assert time.monotonic() < until
            time.sleep(0.001)
    finally:
        jobs.close()


def test_an_error_of_a_job_names_no_folder(tmp_path: Path) -> None:
    class Sending:
        def send(self, _said: object) -> None:
            pass

    def damaged(arguments: dict[str, object], _progress: object) -> None:
        raise StoreError(f"{arguments['data']}/store.sqlite: damaged")

    from rappor.dashboard.jobs import tasks

    known = dict(tasks.TASKS)
    tasks.TASKS["damaged"] = damaged  # type: ignore[assignment]
    try:
        what, said, _ = worker._run("damaged", {"data": str(tmp_path)}, Sending())  # type: ignore[arg-type]
    finally:
        tasks.TASKS.clear()
        tasks.TASKS.update(known)
    assert (what, said) == ("failed", "store.sqlite: damaged")


def test_a_result_that_finds_no_room_names_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Done(Held):
        def run(self, _kind: str, _arguments: object) -> Iterator[worker.Message]:
            yield "done", {}, b""

    monkeypatch.setattr(jobs_module, "Worker", Done)
    jobs = Jobs(Memory(StoreFull(f"{tmp_path}/dashboard.sqlite: no room on the disk")))
    try:
        job = jobs.wait(jobs.start("decode", {"data": str(tmp_path)}, "k").id, 5)
    finally:
        jobs.close()
    assert job is not None
    assert "no room" in job.error
    assert str(tmp_path) not in job.error


@pytest.mark.skipif(not Path("/proc/self/oom_score_adj").exists(), reason="Linux has it")
def test_where_memory_runs_out_the_worker_goes_first(desk: Desk) -> None:
    browser = Browser(desk)
    browser.log_in(Role.ANALYST)
    browser.get("/collections/browser")
    until = time.monotonic() + 30
    while desk.jobs.worker_id is None and time.monotonic() < until:
        time.sleep(0.01)
    own = int(Path("/proc/self/oom_score_adj").read_text())
    file = Path(f"/proc/{desk.jobs.worker_id}/oom_score_adj")
    while int(file.read_text()) == own and time.monotonic() < until:
        time.sleep(0.01)
    assert int(file.read_text()) > own


def test_downloads_that_wait_do_not_hold_up_the_pages(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = Browser(desk)
    browser.log_in(Role.ANALYST)
    free, waiting = threading.Event(), []

    def start(*_: object, **__: object) -> Job:
        return Job("x", "google", "k", "held")

    def wait(_number: str, _seconds: float) -> None:
        waiting.append(1)
        free.wait(20)

    monkeypatch.setattr(desk.jobs, "start", start)
    monkeypatch.setattr(desk.jobs, "wait", wait)
    found: list[str] = []

    def load(number: int) -> None:
        path = f"/collections/homepage.google.zip?alpha=0.1{number:02}"
        found.append(browser.get(path).text)

    threads = [threading.Thread(target=load, args=(number,)) for number in range(12)]
    for each in threads:
        each.start()
    until = time.monotonic() + 10
    while len(found) < 12 - MOST_DOWNLOADS and time.monotonic() < until:
        time.sleep(0.01)
    refused = len(found)
    free.set()
    for each in threads:
        each.join()
    assert (len(waiting), refused) == (MOST_DOWNLOADS, 12 - MOST_DOWNLOADS)
    assert sum("Too much at once" in text for text in found) == refused


@pytest.mark.parametrize("alpha", ["1e-320", "1e-300", "1e-17", "5e-324", "1e-400", "0.5e-9"])
@pytest.mark.parametrize("page", ["", "/trends", "/diagnostics", ".json", "/trends.csv"])
def test_an_error_rate_that_nothing_can_reach_is_refused(desk: Desk, alpha: str, page: str) -> None:
    browser = Browser(desk)
    browser.log_in(Role.VIEWER)
    answer = browser.get(f"/collections/homepage{page}?alpha={alpha}")
    assert answer.status_code == 400
    assert "alpha must be" in answer.text.lower() or "Alpha must be" in answer.text


def test_a_killed_worker_frees_the_queue_whoever_it_was(desk: Desk) -> None:
    browser = Browser(desk)
    browser.log_in(Role.ANALYST)
    browser.get("/collections/start-time")
    until = time.monotonic() + 30
    while desk.jobs.worker_id is None and time.monotonic() < until:
        time.sleep(0.01)
    if desk.jobs.worker_id is not None:
        os.kill(desk.jobs.worker_id, signal.SIGKILL)
    while any(not job.over for job in desk.jobs.all()) and time.monotonic() < until:
        time.sleep(0.01)
    assert all(job.over for job in desk.jobs.all())
