"""Jobs: what waits, what runs, what gives way, and what is said when something goes wrong.

The worker is not a process here: tests/e2e/test_dashboard_jobs.py kills real ones.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.dashboard.jobs import Jobs, tasks, worker_process
from rappor.dashboard.jobs.queue import MAX_PER_VISITOR, TooManyJobs
from rappor.errors import StoreError, StoreFull
from support.dashboard import PAGES, Sample, sample_folder, week
from support.dashboard_context import WorkerInThread, made_jobs, until_over
from support.waiting import wait_for


class Memory:
    """A state that forgets with the test."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}
        self.ended: list[tuple[str, str]] = []
        self.error: Exception | None = None

    def save_result(self, key: str, kind: str, meta: dict[str, Any], table: bytes | None) -> None:
        if self.error is not None:
            raise self.error
        self.results[key] = (kind, meta, table)

    def save_job(
        self, number: str, _kind: str, _key: str, status: str, _document: dict[str, Any]
    ) -> None:
        self.ended.append((number, status))


class Held:
    """A worker that has nothing to say until it is let go."""

    reason = "a reason of its own"

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.alive, self._go = True, threading.Event()

    def run(self, _kind: str, arguments: Any) -> Iterator[worker_process.Message]:
        self.sent.append(arguments)
        assert self._go.wait(300)
        if self.alive:
            yield "done", {}, b""

    def let_go(self) -> None:
        self._go.set()

    def kill(self) -> None:
        self.alive = False
        self._go.set()


class Workers(list[Held]):
    """Every held worker that a queue started."""

    def start(self) -> Held:
        self.append(Held())
        return self[-1]


@pytest.fixture
def workers() -> Workers:
    return Workers()


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def jobs(memory: Memory, workers: Workers) -> Iterator[Jobs]:
    """A queue whose workers are held."""
    with made_jobs(memory, workers.start) as made:
        yield made


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return sample_folder(tmp_path_factory.mktemp("jobs"))


@pytest.fixture
def working(memory: Memory) -> Iterator[Jobs]:
    """A queue whose worker does what it is told."""
    with made_jobs(memory, WorkerInThread) as made:
        yield made


def arguments(sample: Sample, **changed: Any) -> dict[str, Any]:
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


def state(jobs: Jobs, number: str) -> str:
    found = jobs.get(number)
    assert found is not None
    return found.state


def begun(jobs: Jobs, workers: Workers, key: str = "held", **more: Any) -> str:
    """The id of a job that its worker has."""
    job = jobs.start("decode", {"key": key}, key, **more)
    wait_for(lambda: workers and {"key": key} in workers[-1].sent)
    return job.id


# The queue.


def test_two_of_one_key_are_one(jobs: Jobs, workers: Workers) -> None:
    held = begun(jobs, workers)
    assert jobs.start("decode", {}, "held").id == held
    assert jobs.start("decode", {}, "other").id != held


def test_what_is_cancelled_loses_its_worker_and_the_next_one_gets_another(
    jobs: Jobs, workers: Workers, memory: Memory
) -> None:
    held = begun(jobs, workers)
    jobs.start("decode", {"key": "next"}, "next")
    cancelled = jobs.cancel(held)
    assert cancelled is not None
    assert cancelled.state == "cancelled"
    assert not workers[0].alive
    wait_for(lambda: len(workers) == 2 and workers[1].sent == [{"key": "next"}])
    assert "held" not in memory.results
    assert jobs.cancel(held) == cancelled  # once is enough
    assert jobs.cancel("nonsense") is None


def test_one_that_waits_is_cancelled_without_a_trace(
    jobs: Jobs, workers: Workers, memory: Memory
) -> None:
    held = begun(jobs, workers)
    waiting = jobs.start("decode", {}, "waiting")
    cancelled = jobs.cancel(waiting.id)
    assert cancelled is not None
    assert cancelled.state == "cancelled"
    assert state(jobs, held) == "running"
    workers[0].let_go()
    wait_for(lambda: state(jobs, held) == "done")
    last = jobs.start("decode", {}, "last")  # by its end, the one before would have been done
    assert until_over(jobs, last).state == "done"
    assert set(memory.results) == {"held", "last"}


def test_what_nobody_asked_for_comes_last(jobs: Jobs, workers: Workers) -> None:
    begun(jobs, workers)
    unasked = jobs.start("decode", {"key": "unasked"}, "unasked", unasked=True)
    jobs.start("decode", {"key": "asked"}, "asked")
    workers[0].let_go()
    assert until_over(jobs, unasked).state == "done"
    assert [each["key"] for each in workers[0].sent] == ["held", "asked", "unasked"]


def test_a_long_job_that_nobody_asked_for_gives_way_and_is_done_later(
    jobs: Jobs, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rappor.dashboard.jobs.queue._GRACE_SECONDS", -1.0)
    unasked = begun(jobs, workers, "unasked", unasked=True)
    asked = begun(jobs, workers, "asked")
    assert state(jobs, unasked) == "waiting"  # neither cancelled nor failed
    assert not workers[0].alive
    workers[1].let_go()
    wait_for(lambda: state(jobs, asked) == "done")
    wait_for(lambda: state(jobs, unasked) == "done")
    assert [each["key"] for each in workers[1].sent] == ["asked", "unasked"]


def test_a_short_job_that_nobody_asked_for_is_let_come_to_its_end(
    jobs: Jobs, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rappor.dashboard.jobs.queue._GRACE_SECONDS", 1e9)
    unasked = begun(jobs, workers, "unasked", unasked=True)
    jobs.start("decode", {"key": "asked"}, "asked")
    assert (state(jobs, unasked), workers[0].alive) == ("running", True)


def test_an_unasked_job_that_somebody_asks_for_gives_way_no_more(
    jobs: Jobs, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rappor.dashboard.jobs.queue._GRACE_SECONDS", -1.0)
    unasked = begun(jobs, workers, "same", unasked=True)
    assert jobs.start("decode", {}, "same").id == unasked
    jobs.start("decode", {}, "other")
    assert state(jobs, unasked) == "running"


def test_the_queue_has_an_end(jobs: Jobs, workers: Workers) -> None:
    begun(jobs, workers)
    for number in range(50):
        jobs.start("decode", {}, f"key {number}")
    with pytest.raises(TooManyJobs, match="50"):
        jobs.start("decode", {}, "one more")


def test_one_visitor_cannot_fill_the_queue(jobs: Jobs, workers: Workers) -> None:
    begun(jobs, workers, "a0", actor="analyst ada")
    for number in range(1, MAX_PER_VISITOR + 1):
        jobs.start("decode", {}, f"a{number}", actor="analyst ada")
    with pytest.raises(TooManyJobs, match="yours"):
        jobs.start("decode", {}, "one more", actor="analyst ada")
    assert jobs.start("decode", {}, "other", actor="analyst bob").state == "waiting"
    again = jobs.start("decode", {}, "a1", actor="analyst ada")
    assert again.key == "a1", "what waits already is found"


def test_what_a_job_needs_is_not_held_while_it_waits(jobs: Jobs, workers: Workers) -> None:
    made: list[int] = []

    def large(number: int) -> Callable[[], dict[str, Any]]:
        def make() -> dict[str, Any]:
            made.append(number)
            return {"strings": ["x"] * 10}

        return make

    for number in range(5):
        jobs.start("decode", large(number), f"k{number}")
    wait_for(lambda: workers and workers[0].sent)  # the queue's thread is with the first one
    assert made == [0]


# What goes wrong.


def test_arguments_that_cannot_be_made_fail_their_job_and_no_other(jobs: Jobs) -> None:
    def gone() -> dict[str, Any]:
        raise StoreError("/somewhere/data/dashboard.sqlite: gone")

    job = until_over(jobs, jobs.start("decode", gone, "k"))
    assert job.state == "failed"
    assert "/somewhere" not in job.error
    assert jobs.start("decode", {}, "next").state in ("waiting", "running")


def test_a_worker_that_ends_by_itself_fails_its_job_and_no_other(
    jobs: Jobs, workers: Workers
) -> None:
    held = begun(jobs, workers)
    workers[0].kill()
    wait_for(lambda: state(jobs, held) == "failed")
    found = jobs.get(held)
    assert found is not None
    assert Held.reason in found.error
    begun(jobs, workers, "after")
    assert len(workers) == 2


def test_a_worker_that_cannot_be_started_fails_one_job_and_the_queue_goes_on(
    memory: Memory, workers: Workers
) -> None:
    tries: list[int] = []

    def start() -> Held:
        tries.append(1)
        if len(tries) == 1:
            raise OSError(12, "Cannot allocate memory")
        return workers.start()

    with made_jobs(memory, start) as jobs:
        first = until_over(jobs, jobs.start("decode", {}, "first"))
        assert (first.state, "memory" in first.error) == ("failed", True)
        assert state(jobs, begun(jobs, workers, "second")) == "running"


@pytest.mark.parametrize(
    "error",
    [OSError(28, "No space left on device"), StoreFull("/srv/dashboard.sqlite: No space left")],
)
def test_a_result_that_cannot_be_kept_is_a_failure_that_names_no_folder(
    jobs: Jobs, workers: Workers, memory: Memory, error: Exception
) -> None:
    memory.error = error
    held = begun(jobs, workers)
    workers[0].let_go()
    wait_for(lambda: state(jobs, held) == "failed")
    found = jobs.get(held)
    assert found is not None
    assert "No space left" in found.error
    assert "/srv" not in found.error


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
def test_what_goes_wrong_is_said_and_the_worker_lives_on(
    working: Jobs, sample: Sample, changed: dict[str, Any], about: str
) -> None:
    job = until_over(working, working.start("decode", arguments(sample, **changed), "k"))
    assert job.state == "failed"
    assert about in job.error
    again = working.start("decode", arguments(sample, collection="browser"), "k")
    assert until_over(working, again).state == "done"


def test_a_fault_of_the_program_is_no_traceback_on_a_page(working: Jobs) -> None:
    job = until_over(working, working.start("no such task", {}, "k"))
    assert (job.state, job.error) == ("failed", "A fault of the program (KeyError).")


def test_an_error_of_a_job_names_no_folder(
    working: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(arguments: dict[str, Any], _progress: object) -> None:
        raise StoreError(f"{arguments['data']}/store.sqlite: damaged")

    monkeypatch.setitem(tasks.TASKS, "damaged", damaged)
    job = until_over(working, working.start("damaged", {"data": str(tmp_path)}, "k"))
    assert (job.state, job.error) == ("failed", "store.sqlite: damaged")


# How far it is.


@pytest.mark.slow
def test_a_decode_is_followed_to_its_end_and_kept(
    working: Jobs, memory: Memory, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every share that the job is told is recorded: they begin at 0, only go up, and end at 1."""
    seen, put = [], working._put
    monkeypatch.setattr(working, "_put", lambda job: (seen.append(job), put(job))[1])
    job = working.start("decode", arguments(sample), "k", label="Decoding", actor="ada")
    ended = until_over(working, job)
    assert (ended.state, ended.share) == ("done", 1)
    kind, meta, table = memory.results["k"]
    assert (kind, meta["collection"], meta["candidates"]) == ("decode", "homepage", len(PAGES))
    assert table
    shares = [round(each.share, 9) for each in seen if each.share is not None]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert len(set(shares)) > 3
    texts = [each.text for each in seen]
    assert texts.index("reading counts") < texts.index("placing candidates") < len(texts)
    assert (job.id, "done") in memory.ended


def test_linear_algebra_leaves_a_core_to_the_pages() -> None:
    assert [worker_process.threads(cores) for cores in (None, 1, 2, 4, 64)] == [1, 1, 1, 3, 4]
