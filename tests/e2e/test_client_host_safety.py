"""A client in real processes, on real files and sockets: whatever breaks, the host does not notice.

No exception, no output, at most the agreed reports leave, one secret, one cohort. How long
`report()` and the end of a process take is measured by `benchmarks/client.py`.
"""

import contextlib
import os
import shutil
import signal
import socket
import tempfile
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rappor.client import Client
from rappor.client.outbox import parse_batch
from rappor.client.transport import HttpTransport
from rappor.wire import Batch
from support.client import (
    LIMIT,
    MONDAY,
    Collector,
    FakeClock,
    be_patient,
    finish,
    go,
    homepage,
    start,
)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch.setattr)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture
def directory() -> Iterator[Path]:
    """A directory that every user of the machine can reach."""
    made = Path(tempfile.mkdtemp(prefix="rappor-client-"))
    made.chmod(0o755)
    yield made / "client"
    shutil.rmtree(made)


def batches(directory: Path) -> list[Batch]:
    found = [parse_batch(path.read_bytes()) for path in sorted(directory.glob("outbox/*"))]
    return [each[0] for each in found if each is not None]


def test_collector_down(directory: Path) -> None:
    many = [homepage(name=f"c{number}") for number in range(10)]
    with socket.socket() as taken:  # bound, so that nobody else listens there; it does not either
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with Client.open(directory, many, consent=True, upload_to=url) as client:
            for each in many * 10:
                client.report(each.name, "a.org")
            assert not client.flush(LIMIT)
            status = client.status()
            assert (status.state, status.waiting) == ("on", 10)
            assert (status.upload or "").startswith(
                "no answer (ConnectionRefusedError): 10 reports wait (c0, c1, c2 and 7 more)"
            )
            assert status.next_attempt > 0


def test_disk_full_and_recovery(directory: Path) -> None:
    code = """
    import resource
    client = Client.open(sys.argv[1], [homepage(reports_per_period=9)], consent=True)
    client.report("homepage", "a.org")
    client.flush(LIMIT)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    for _ in range(30):
        client.report("homepage", "a.org")
    flushed = client.flush(LIMIT)
    full = client.status()
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    client.report("homepage", "a.org")
    again = client.flush(LIMIT)
    print(json.dumps([flushed, full.state, full.problem, again, client.status().state]))
    """
    flushed, state, problem, again, after = finish(start(code, directory))
    assert (flushed, state, problem) == (False, "stopped", "disk-full")
    assert (again, after) == (True, "on")
    assert len(batches(directory)) == 2


@pytest.mark.parametrize("where", ["read-only", "a file", "no way in"])
def test_directory_that_cannot_be_used(directory: Path, where: str) -> None:
    target = directory
    if where == "a file":
        directory.write_text("in the way")
    elif where == "read-only":
        directory.mkdir(mode=0o555)
    else:
        directory.mkdir(mode=0o000)
        target = directory / "inside"
    code = """
    if os.getuid() == 0:  # for whom nothing is read-only
        os.setgid(65534), os.setuid(65534)
    client = Client.open(sys.argv[1], [homepage()], consent=True, upload_to="http://localhost:1")
    for _ in range(30):
        client.report("homepage", "a.org")
    client.flush(LIMIT)
    status = client.status()
    print(json.dumps([status.state, status.problem, client.opt_out(), client.close()]))
    """
    state, problem, opted, closed = finish(start(code, target))
    assert (state, problem) == ("stopped", "directory-unusable")
    assert (opted, closed) == (False, True)


FLOODS = {
    "go on, go on": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
    "drop by drop": b"H",
    "silence": b"",
}


@pytest.fixture
def hostile() -> Iterator[Callable[[bytes], str]]:
    """A server that answers every connection with the same bytes for ever."""
    made: list[socket.socket] = []
    threads: list[threading.Thread] = []
    over = threading.Event()

    def serve(flood: bytes) -> str:
        listening = socket.create_server(("127.0.0.1", 0))
        made.append(listening)

        def answer(accepted: socket.socket) -> None:
            with accepted, contextlib.suppress(OSError):  # the client has had enough
                while not over.wait(0.0 if len(flood) > 1 else 0.1):
                    accepted.sendall(flood)

        def accept() -> None:
            with contextlib.suppress(OSError):  # the test is over
                while True:
                    accepted, _ = listening.accept()
                    threads.append(threading.Thread(target=answer, args=(accepted,)))
                    threads[-1].start()

        threads.append(threading.Thread(target=accept))
        threads[-1].start()
        return f"http://127.0.0.1:{listening.getsockname()[1]}"

    yield serve
    over.set()
    for each in made:
        each.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for connections
    for thread in threads:
        thread.join(LIMIT)
    for each in made:
        each.close()


@pytest.mark.parametrize("flood", FLOODS)
def test_a_hostile_collector_does_not_keep_a_process_from_ending(
    directory: Path, hostile: Callable[[bytes], str], flood: str
) -> None:
    """The end waits for uploads as long as `AT_EXIT` says: a tenth of a second here."""
    code = """
    many = [homepage(name=f"c{number}") for number in range(10)]
    client = Client.open(sys.argv[1], many, consent=True, upload_to=sys.argv[2], jitter=0)
    for each in many * 4:
        client.report(each.name, "a.org")
    wait_for(lambda: client.status().waiting == len(many))
    wait_for(lambda: client._sender.busy_since or client._sender.error)  # an upload has begun
    processes.AT_EXIT = 0.1
    """
    finish(start(code, directory, hostile(FLOODS[flood])))
    assert len(batches(directory)) == 10


def test_damaged_outbox(directory: Path, collector: Collector) -> None:
    client = Client.open(directory, [homepage(reports_per_period=3)], consent=True)
    for _ in range(3):
        client.report("homepage", "a.org")
    client.close()
    first, second, _ = sorted(directory.glob("outbox/*"))
    first.write_bytes(b"\0" * 50)
    second.write_bytes(second.read_bytes()[:40])
    (directory / "outbox/0000000000.batch").write_bytes(os.urandom(100))
    (directory / "outbox/9999999999.batch").mkdir()
    with Client.open(directory, [homepage()], consent=True, upload_to=collector.url) as again:
        assert again.flush(LIMIT)
        assert again.status().batches == {"dropped: damaged": 3, "sent": 1}
    assert len(collector.batches) == 1


def test_clock_jump(directory: Path) -> None:
    clock = FakeClock()
    with Client.open(directory, [homepage()], consent=True, clock=clock) as client:
        for days in (0, 3650, -3650, -3650, 3650, 1, -1, 0, -30_000, 30_000, 1):
            clock.forward(days)
            for _ in range(20):
                client.report("homepage", "a.org")
            assert client.flush(LIMIT)
    periods = Counter(batch.period for batch in batches(directory))
    assert set(periods.values()) == {1}
    assert len(periods) == 5  # today, in ten years, ten years ago, tomorrow, 1970


def test_fork(directory: Path) -> None:
    code = """
    import warnings
    warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads: it is the test
    client = Client.open(sys.argv[1], [homepage(reports_per_period=20)], consent=True)
    for round in range(4):
        client.report("homepage", "a.org")
        if not round % 2:
            client.flush(LIMIT)  # half of the forks happen while the thread is at work
        child = os.fork()
        if not child:
            for _ in range(2):
                client.report("homepage", "a.org")
            os._exit(0 if client.flush(LIMIT) and client.status().state == "on" else 7)
        assert os.waitpid(child, 0)[1] == 0
    done = client.close()
    print(json.dumps([done, client.status().calls["made"]]))
    """
    done, made = finish(start(code, directory))
    assert (done, made) == (True, 4)
    left = batches(directory)
    assert len(left) == len({each.token for each in left}) == 12  # 4 of ours, 2 of each child
    assert len({each.cohorts for each in left}) == 1


def test_fifty_threads(directory: Path, collector: Collector) -> None:
    many = [homepage(name=f"c{number}") for number in range(10)]
    clock = FakeClock()
    client = Client.open(
        directory, many, consent=True, upload_to=collector.url, jitter=0.5, clock=clock
    )
    failures: list[BaseException] = []
    begin = threading.Barrier(50)

    def calls(thread: int) -> None:
        try:
            begin.wait(LIMIT)
            for number in range(20):  # with those of the others no more than the queue takes
                client.report(f"c{number % 10}", f"value {thread % 3}")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=calls, args=(number,)) for number in range(50)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    assert client.flush(LIMIT)
    status = client.status()
    assert sum(status.calls.values()) == 50 * 20
    assert status.calls["made"] == 10
    client.close()
    assert Counter(batch.collection for batch in collector.batches) == Counter(
        each.name for each in many
    )


def test_four_processes_on_one_directory(directory: Path, collector: Collector) -> None:
    code = """
    many = [homepage(name=f"c{number}", reports_per_period=3) for number in range(8)]
    given = {"consent": True, "upload_to": sys.argv[2], "jitter": 0.2, "clock": FakeClock()}
    client = Client.open(sys.argv[1], many, **given)
    together()
    for number in range(80):
        client.report(f"c{number % 8}", "a.org")
    client.flush(LIMIT)
    client.close()
    print(json.dumps([client.status().problem, dict(client.status().calls)]))
    """
    running = [start(code, directory, collector.url) for _ in range(4)]
    go(running)
    found = [finish(each) for each in running]
    assert [problem for problem, _ in found] == [None] * 4
    with Client.open(
        directory, [homepage()], consent=True, upload_to=collector.url, clock=FakeClock()
    ) as client:
        client.flush(LIMIT)
    tokens = {batch.token: batch.collection for batch in collector.batches}
    assert Counter(tokens.values()) == {f"c{number}": 3 for number in range(8)}
    cohorts = {(batch.collection, batch.cohorts) for batch in collector.batches}
    assert len(cohorts) == 8
    assert {len(batch.cohorts) for batch in collector.batches} == {2}  # each report travels alone
    assert sum(calls.get("made", 0) for _, calls in found) == 24
    assert sum(sum(calls.values()) for _, calls in found) == 4 * 80


def test_four_processes_draw_one_secret(directory: Path) -> None:
    code = """
    client = Client.open(sys.argv[1], [homepage(params=ECHO, reports_per_period=9)], consent=True)
    together()
    client.report("homepage", "a.org")
    client.close()
    print(json.dumps([client.status().problem]))
    """
    running = [start(code, directory) for _ in range(4)]
    go(running)
    for each in running:
        assert finish(each) == [None]
    left = batches(directory)
    assert len(left) == 4
    assert len({(each.cohorts, each.reports) for each in left}) == 1


OPERATIONS = 'OPERATIONS = {"open", "os.link", "os.rename", "os.remove", "os.mkdir"}\n'


@pytest.mark.parametrize("kills", [20, pytest.param(300, marks=pytest.mark.long)])
def test_killed_at_any_moment(directory: Path, kills: int) -> None:
    """kill -9: the ledger is never damaged, a period never has two reports, B' stays the same.

    A child says each file operation through a pipe. It is killed a moment after a random one,
    which is before, within or after a report, however slow the disk is.
    """
    code = """
    import datetime, random
    draw = random.Random(7)
    for cycle in range(int(sys.argv[2])):
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            sys.addaudithook(lambda event, _: event in OPERATIONS and os.write(writing, b"."))
            clock = FakeClock(MONDAY + datetime.timedelta(days=cycle))
            made = homepage(params=ECHO, max_values=9)
            client = Client.open(sys.argv[1], [made], consent=True, clock=clock, outbox_limit=9999)
            while True:
                client.report("homepage", "a.org")
                time.sleep(0.001)
                clock.forward(0.25)
        os.close(writing)
        for _ in range(draw.randrange(1, 80)):
            assert os.read(reading, 1)
        time.sleep(draw.uniform(0.0, 0.003))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
    client = Client.open(sys.argv[1], [homepage(params=ECHO)], consent=True)
    print(json.dumps([client.status().problem]))
    """
    assert finish(start(OPERATIONS + textwrap.dedent(code), directory, kills)) == [None]
    left = batches(directory)
    assert len(left) >= 10
    assert set(Counter(batch.period for batch in left).values()) == {1}
    assert len({(batch.cohorts, batch.reports) for batch in left}) == 1


@pytest.mark.parametrize("days", [2, pytest.param(3, marks=pytest.mark.long)])
def test_a_crash_at_every_file_operation(directory: Path, days: int) -> None:
    """The process is gone at the n-th open, link, rename or removal, for every n there is.

    The first day makes secret and ledger; each later one does the same as the second.
    """
    code = """
    import datetime, shutil
    countdown = None
    def crash(event, arguments):
        global countdown
        if countdown and event in OPERATIONS:
            countdown -= 1
            if not countdown:
                os._exit(9)
    sys.addaudithook(crash)
    made = homepage(params=ECHO, max_values=9)
    def days(first, last):
        clock = FakeClock()
        for day in range(first, last):
            clock.set(MONDAY + datetime.timedelta(days=day))
            recorder = recorder_on(folder, clock, made)
            for _ in range(2):
                recorder.record("homepage", "a.org", clock.now)
        return recorder
    from rappor.client.folder import Folder
    found = []
    for number in range(1, 1000):
        folder = Folder(f"{sys.argv[1]}/{number}")
        child = os.fork()
        if not child:
            countdown = number
            days(0, int(sys.argv[2]))
            os._exit(0)
        crashed = os.waitpid(child, 0)[1] != 0
        before = len(folder.names("outbox"))
        recorder = days(0, int(sys.argv[2]) + 1)
        found.append([crashed, before, recorder.problem])
        if not crashed:
            break
    print(json.dumps(found))
    """
    found = finish(start(OPERATIONS + textwrap.dedent(code), directory, days))
    assert len(found) > 13 * days
    assert [crashed for crashed, _, _ in found] == [True] * (len(found) - 1) + [False]
    assert {before for _, before, _ in found} == set(range(days + 1))
    assert {problem for _, _, problem in found} == {None}
    for number in range(1, len(found) + 1):
        left = batches(directory / str(number))
        assert set(Counter(batch.period for batch in left).values()) == {1}
        assert len({(batch.cohorts, batch.reports) for batch in left}) == 1
        assert days <= len(left) <= days + 1  # a crash loses one report at most


def test_the_end_of_a_process_does_not_wait_for_a_silent_collector_and_loses_nothing(
    directory: Path,
) -> None:
    """The end waits as long as `AT_EXIT` says, and no longer: here, a tenth of a second."""
    code = """
    client = Client.open(sys.argv[1], [homepage()], consent=True, upload_to=sys.argv[2])
    client.report("homepage", "a.org")
    wait_for(lambda: client.status().waiting == 1)
    processes.AT_EXIT = 0.1
    """
    with socket.socket() as silent:  # takes connections and never answers
        silent.bind(("127.0.0.1", 0))
        silent.listen(50)
        finish(start(code, directory, f"http://127.0.0.1:{silent.getsockname()[1]}"))
    assert len(batches(directory)) == 1


def test_what_is_reported_by_a_short_process_is_sent_by_it(
    directory: Path, collector: Collector
) -> None:
    code = """
    client = Client.open(sys.argv[1], [homepage()], consent=True, upload_to=sys.argv[2])
    client.report("homepage", "a.org")
    """
    finish(start(code, directory, collector.url))
    assert len(collector.batches) == 1


def test_reports_in_signal_handlers_destructors_and_at_exit(directory: Path) -> None:
    code = """
    import atexit
    client = Client.open(sys.argv[1], [homepage(reports_per_period=99)], consent=True)
    calls = 0
    def handler(*_):
        global calls
        calls += 1
        client.report("homepage", "a.org")
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    while calls < 200:
        client.report("homepage", "b.org")
        threading.Thread(target=int).start()
    signal.setitimer(signal.ITIMER_REAL, 0)
    class Late:
        def __del__(self):
            client.report("homepage", "c.org")
    late = sys.late = Late()
    atexit.register(client.report, "homepage", "d.org")
    print(calls)
    """
    assert finish(start(code, directory)) >= 200


def test_opting_out_in_the_middle_of_an_upload(directory: Path, collector: Collector) -> None:
    collector.release.clear()
    client = Client.open(
        directory, [homepage(reports_per_period=5)], consent=True, upload_to=collector.url, jitter=0
    )
    for _ in range(5):
        client.report("homepage", "a.org")
    assert collector.arrived.wait(LIMIT)
    assert client.opt_out()
    begun = len(collector.headers)
    collector.release.set()
    client.report("homepage", "a.org")
    assert not client.flush(LIMIT)
    client._workers.flush(LIMIT)  # whatever the threads had still to do, and would send if asked
    assert len(collector.headers) <= begun + 1  # the one that had been sent already
    assert client.status().waiting == 0
    assert client.preview().waiting == ()
    client.close()
    with Client.open(directory, [homepage()], consent=True, upload_to=collector.url) as again:
        again.flush(LIMIT)
        assert again.status().state == "opted out"
    assert len(collector.headers) <= begun + 1


def test_what_was_not_yet_on_the_wire_when_opting_out_never_is() -> None:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        transport = HttpTransport(f"http://127.0.0.1:{server.getsockname()[1]}", clock=FakeClock())
        failures: list[OSError] = []

        def upload() -> None:
            try:
                transport.post(b"x" * 1_000_000, LIMIT)
            except OSError as error:
                failures.append(error)

        thread = threading.Thread(target=upload)
        thread.start()
        accepted, _ = server.accept()
        with accepted:
            got = len(accepted.recv(1000))
            transport.abort()
            thread.join(LIMIT)
            assert len(failures) == 1
            try:
                while part := accepted.recv(100_000):
                    got += len(part)
            except ConnectionResetError:
                pass
        assert got < 1_000_000


def test_one_report_survives_restart_and_is_counted_once(
    directory: Path, collector: Collector
) -> None:
    """An answer that is lost: the batch is sent again, with the same token."""
    collector.status = 503
    with Client.open(directory, [homepage()], consent=True, upload_to=collector.url) as client:
        client.report("homepage", "a.org")
        client.flush(LIMIT)
    (waiting,) = batches(directory)
    (directory / "retry").unlink()
    collector.status = 204
    with Client.open(directory, [homepage()], consent=True, upload_to=collector.url) as again:
        assert again.flush(LIMIT)
    assert [batch.token for batch in collector.batches] == [waiting.token]


def test_the_secret_is_never_sent_nor_any_value(directory: Path, collector: Collector) -> None:
    before = signal.getsignal(signal.SIGINT)
    clock = FakeClock(MONDAY)
    client = Client.open(
        directory,
        [homepage(null_reports=True)],
        consent=True,
        upload_to=collector.url,
        clock=clock,
    )
    client.report("homepage", "www.private.example")
    client.flush(LIMIT)
    assert collector.batches == []  # held until the day is over
    clock.forward(1)
    client.flush(LIMIT)
    secret = (directory / "secret").read_bytes().split()[-1].decode()
    (shown,) = client.preview().sent
    client.close()
    assert b"private" not in bytes.fromhex(shown.body)
    assert secret not in shown.body
    assert all("private" not in str(headers) for headers in collector.headers)
    assert signal.getsignal(signal.SIGINT) is before
