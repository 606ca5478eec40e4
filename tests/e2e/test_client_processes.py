"""A client in several processes: one opts out for all, limits are shared, no lock stays behind."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.client.outbox import parse_batch
from support.client import LIMIT, Collector, be_patient, finish, homepage, start
from support.waiting import wait_for


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch.setattr)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def test_opting_out_in_one_process_ends_the_uploads_of_another(
    tmp_path: Path, collector: Collector
) -> None:
    collector.release.clear()
    code = """
    consent.AT_EXIT = float(sys.argv[3])
    client = Client.open(sys.argv[1], [homepage()], consent=True, upload_to=sys.argv[2])
    print(json.dumps([client.opt_out(), client.status().waiting]))
    """
    made = homepage(reports_per_period=5)
    client = Client.open(tmp_path, [made], consent=True, upload_to=collector.url, jitter=0)
    try:
        for _ in range(5):
            client.report("homepage", "a.org")
        assert collector.arrived.wait(LIMIT)  # one is on its way, and the others wait
        wait_for(lambda: client.status().waiting == 5)
        done, waiting = finish(start(code, tmp_path, collector.url, 0.0))
        assert (done, waiting) == (False, 0)  # the truth: that one may still arrive
        collector.release.set()
        assert finish(start(code, tmp_path, collector.url, LIMIT)) == [True, 0]
        client._workers.flush(LIMIT)  # whatever this process had still to do
        assert len(collector.headers) == 1
    finally:
        client.close()


def test_the_limits_of_a_collection_hold_over_forks(tmp_path: Path) -> None:
    """Four children and their parent report at once: three reports a period, two values."""
    code = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: it is the test
    made = [
        homepage(reports_per_period=3),
        homepage(name="values", reports_per_period=99, max_values=2),
    ]
    client = Client.open(sys.argv[1], made, consent=True, clock=FakeClock())
    children = []
    for number in range(5):
        child = os.fork() if number else 0
        if child:
            children.append(child)
            continue
        for each in range(6):
            client.report("homepage", "a.org")
            client.report("values", f"{number}{each}.org")
        if number:
            os._exit(0 if client.flush(LIMIT) else 7)
    codes = [os.waitpid(child, 0)[1] for child in children]
    done = client.flush(LIMIT)
    values = [each.values for each in client.status().collections]
    print(json.dumps([codes, done, values]))
    """
    assert finish(start(code, tmp_path)) == [[0] * 4, True, [1, 2]]
    waiting = [parse_batch(file.read_bytes()) for file in tmp_path.glob("outbox/*")]
    assert Counter(each[0].collection for each in waiting if each)["homepage"] == 3


def test_a_child_keeps_no_lock_of_a_parent_that_was_killed(tmp_path: Path) -> None:
    code = """
    client = Client.open(sys.argv[1], [homepage()], consent=True)
    held = threading.Event()
    def hold():
        with client._folder.lock("lock", LIMIT):
            held.set()
            time.sleep(600)
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    child = os.fork()
    if not child:
        time.sleep(600)  # it is killed long before
        os._exit(0)
    print(child, flush=True)
    time.sleep(600)
    """
    parent = start(code, tmp_path)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        given: dict[str, Any] = {"consent": True}
        with Client.open(tmp_path, [homepage(name="other")], **given) as client:
            client.report("other", "a.org")
            assert client.flush(LIMIT)
            assert client.status().calls == {"made": 1}
    finally:
        os.kill(child, signal.SIGKILL)
        parent.communicate()


def test_what_a_directory_holds_names_no_value_and_no_exact_time(
    tmp_path: Path, collector: Collector
) -> None:
    given: dict[str, Any] = {"consent": True, "upload_to": collector.url, "jitter": 0}
    with Client.open(tmp_path, [homepage()], **given) as client:
        before = time.time()
        client.report("homepage", "www.private.example")
        client.report("homepage", "www.other.example")
        assert client.flush(LIMIT)
    everything = b"\n".join(
        path.name.encode() + path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()
    )
    assert b"private" not in everything
    assert b"other" not in everything
    assert str(int(before))[:8].encode() not in everything  # seconds since 1970, to a minute or two
