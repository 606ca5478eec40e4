"""`rappor demo` from end to end: real processes, real HTTP, a real store, real decoding."""

import contextlib
import io
import json
import os
import pty
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rappor.cli import demo as verb
from rappor.cli import demo_output
from rappor.cli.demo import REPORTS
from rappor.cli.faults import INTERRUPTION
from rappor.cli.main import build_parser, main
from rappor.decoding.result import Row
from rappor.demo.devices import DEVICES
from rappor.demo.folder import DemoFolder
from rappor.demo.population import HIJACKER, candidates
from rappor.demo.results import EstimateAndTruth
from rappor.demo.run import PROCESSES
from rappor.host import free_port
from rappor.store import open_store
from support.command import COMMAND, environment, rappor
from support.waiting import wait_for

SMALL = ("demo", "--reports", "3e3", "--no-serve")
SIZES = [  # of the demo whose results are looked at
    pytest.param(30_000, id="small"),
    pytest.param(REPORTS, id="default", marks=pytest.mark.long),
]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def family(pid: int) -> set[int]:
    """The processes that a process started, and theirs."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parents[int(entry.name)] = int(
                (entry / "stat").read_text().rpartition(")")[2].split()[1]
            )
    found: set[int] = set()
    while more := {each for each, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    return found


def children(pid: int, word: str) -> list[int]:
    """The children of a process whose command has this word."""
    found = []
    for each in family(pid):
        with contextlib.suppress(OSError):
            stat = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            words = Path(f"/proc/{each}/cmdline").read_text().split("\0")
            found += [each] if int(stat[1]) == pid and word in words else []
    return found


def alive(pids: set[int]) -> set[int]:
    """Those of them that still run; a zombie does not."""
    running = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
            running |= {pid} - ({pid} if state == "Z" else set())
    return running


@contextlib.contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A demo that is at work: its crowd is reporting."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [*COMMAND, "demo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment({"TMPDIR": str(folder)}),
    )
    try:
        crowd = "rappor.demo.crowd"
        wait_for(lambda: children(process.pid, crowd) or process.poll() is not None)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


class Whole(NamedTuple):
    """A demo that has run.

    Attributes:
        asked: how many reports were asked for.
        found: what it printed.
        folder: what it kept.
    """

    asked: int
    found: dict[str, Any]
    folder: Path


@pytest.fixture(scope="module", params=SIZES)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """One demo for every test of its results."""
    folder = tmp_path_factory.mktemp("demo") / "kept"
    done = subprocess.run(
        [*COMMAND, "demo", "--no-serve", "--json", "--keep", folder]
        + ([] if request.param == REPORTS else ["--reports", str(request.param)]),
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return Whole(request.param, json.loads(done.stdout), folder)


def test_json_has_no_lower_end_where_only_the_presence_is_known() -> None:
    about = (1.0, 1.0, 0.037, 0.01, 0.0, 0.055, 1e-4, 1e-3, 3.6)
    row = Row("there", *about, detected=True, interval=(0.0, 55.0), raw_estimate=40.0)
    facts = demo_output._facts(EstimateAndTruth("there", row, 0.04, "found"))
    assert (facts["low_95"], facts["high_95"]) == (None, 0.055)
    absent = row._replace(detected=False)
    assert demo_output._facts(EstimateAndTruth("not there", absent, 0.0, "absent"))["low_95"] == 0


@pytest.mark.long
@pytest.mark.parametrize("whole", [pytest.param(REPORTS, id="default")], indirect=True)
def test_the_hijacker_is_found(whole: Whole) -> None:
    """With the default number of reports: fewer do not show it with certainty."""
    found, hijacker = whole.found, whole.found["hijacker"]
    assert hijacker["verdict"] == "found"
    assert hijacker["low_95"] < hijacker["high_95"]
    # Its standard error on one day is about 1 %: six of them.
    assert hijacker["estimate"] == pytest.approx(hijacker["truth"], abs=0.06)
    verdicts = [day["verdict"] for day in found["by_day"]]
    assert verdicts[-1] == "found"
    assert verdicts[0] != "found"
    shares = {each["country"]: each["estimate"] for each in found["by_country"]}
    assert shares["NZ"] > shares["AU"]
    assert found["detected"] - found["false"] > 5
    every = found["all_periods"]
    assert every["detected"] - every["false"] > 10


def test_the_counts_of_the_json_are_those_of_its_rows(whole: Whole) -> None:
    found = whole.found
    verdicts = [row["verdict"] for row in found["rows"]]
    assert found["detected"] == sum(row["detected"] for row in found["rows"])
    assert found["false"] == verdicts.count("false")
    assert found["missed"] == verdicts.count("missed")
    assert found["detected"] - found["false"] == verdicts.count("found")
    assert {row["string"] for row in found["rows"]} <= set(candidates())
    assert found["devices"] == DEVICES
    assert found["reports"] == pytest.approx(whole.asked, rel=0.01)
    assert len(found["by_day"]) == len(found["periods"]) == 7
    assert sum(each["truth"] for each in found["theme"]) == pytest.approx(1)
    assert sum(each["truth"] for each in found["start_time"]) == pytest.approx(1)
    assert found["epsilon_one"] < 1.0743


def test_the_store_holds_what_was_sent_and_nothing_of_the_truth(whole: Whole) -> None:
    folder = whole.folder
    with contextlib.closing(open_store(folder / "data", read_only=True)) as store:
        stored = sum(each.reports for each in store.cells())
    assert stored == whole.found["reports"]
    for file in (folder / "data").rglob("*"):
        if file.is_file() and file.name.startswith("store"):
            assert HIJACKER.encode() not in file.read_bytes()
    assert len(list((folder / "clients").iterdir())) == DEVICES
    assert len(list(folder.glob("clients/*/sent/*"))) == 4 * DEVICES  # nobody was refused
    shown = rappor("client", "inspect", folder / "clients" / "01", "--json")
    assert shown.returncode == 0


def test_python_and_command_print_one_table_of_the_kept_folder(whole: Whole) -> None:
    """With the list that the demo's dashboard saved: neither is told where it is."""
    code = "import rappor; print(rappor.open('data').decode('homepage'))"
    asked = {"capture_output": True, "text": True, "cwd": whole.folder, "env": environment()}
    python = subprocess.run([sys.executable, "-c", code], check=True, **asked)
    command = subprocess.run(
        [*COMMAND, "decode", "homepage", "--data", "data"], check=True, **asked
    )
    assert python.stdout == command.stdout + command.stderr
    assert "note: the candidates are version 1 of the list of homepage: 200 strings" in (
        command.stderr
    )


def test_decode_on_the_kept_folder_gives_the_same_table(whole: Whole) -> None:
    found, folder = whole.found, whole.folder
    options = ("--truth", str(folder / "truth.csv"))
    again = decoded(folder, "homepage", *options)
    mine = {row["string"]: row["estimate"] for row in found["rows"] if row["detected"]}
    assert mine == {row["string"]: row["proportion"] for row in again["rows"]}
    assert again["judgement"]["false_positives"] == found["false"]
    assert again["judgement"]["missed"] == found["missed"]
    assert again["periods"] == [found["period"]] == found["periods"][-1:]
    assert all(row["truth"] >= 0 for row in again["rows"])
    options = ("--truth", str(folder / "truth-all.csv"))
    every = decoded(folder, "homepage", *options, "--period", "all")
    assert every["periods"] == found["periods"]
    assert every["detected"] == found["all_periods"]["detected"]
    assert every["judgement"]["missed"] == found["all_periods"]["missed"]
    for name, rows in (("theme", found["theme"]), ("start-time", found["start_time"])):
        other = decoded(folder, name, "--all")
        assert {row["estimate"] for row in rows} == {row["proportion"] for row in other["rows"]}


def test_associate_on_the_kept_folder_gives_the_same_channels(whole: Whole) -> None:
    """With the list that the demo's dashboard saved."""
    told = whole.found["association"]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["associate", "install", "--data", str(whole.folder / "data"), "--json"]) == 0
    found = json.loads(printed.getvalue())
    assert found["independence"]["p_value"] == told["p_value"]
    assert found["reports"] == told["reports"] == whole.found["people"] + DEVICES
    shares = {
        cell["second"]: [cell["share_given_first"], cell["given_first_low_95"]]
        for cell in found["rows"]
        if cell["first"] == HIJACKER
    }
    channels = told["hijacker_channels"]
    assert shares == {each["channel"]: [each["share"], each["low_95"]] for each in channels}
    assert sum(each["truth"] for each in channels) == pytest.approx(1)


@pytest.mark.long
@pytest.mark.parametrize("whole", [pytest.param(REPORTS, id="default")], indirect=True)
def test_the_channel_of_the_hijacker_is_found(whole: Whole) -> None:
    """Its share among the hijacked has a standard error of about 6 %: five of them."""
    told = whole.found["association"]
    assert told["associated"]
    bundle = next(each for each in told["hijacker_channels"] if each["channel"] == "bundle")
    assert bundle["truth"] == pytest.approx(0.72, abs=0.03)
    assert bundle["share"] == pytest.approx(bundle["truth"], abs=0.3)


def decoded(folder: Path, *arguments: str) -> dict[str, Any]:
    """What `rappor decode` prints about a kept folder."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main(["decode", *arguments, "--data", str(folder / "data"), "--json"]) == 0
    found: dict[str, Any] = json.loads(printed.getvalue())
    return found


@pytest.mark.long
def test_away_from_a_terminal_it_tells_its_story_and_ends(tmp_path: Path) -> None:
    done = rappor("demo", "--reports", "3e3", env={"TMPDIR": str(tmp_path)})
    assert (done.returncode, done.stderr) == (0, "")
    promise = [line for line in done.stdout.splitlines() if line.startswith("Privacy: ")]
    assert promise == ["Privacy: ε 1.075 for one report, ε 4.395 for all reports on one homepage."]
    assert re.search(r"^\d+ detected, \d+ false, \d+ missed\.", done.stdout, re.MULTILINE)
    assert "login" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_the_population_follows_the_seed_and_the_noise_does_not() -> None:
    runs = [json.loads(rappor(*SMALL, "--json", "--seed", "5").stdout) for _ in range(2)]
    truths = [{row["category"]: row["truth"] for row in run["theme"]} for run in runs]
    assert truths[0] == truths[1]
    # One share of some 60 reports is often the same twice; that of every string never is.
    estimates = [{row["string"]: row["estimate"] for row in run["rows"]} for run in runs]
    assert estimates[0] != estimates[1]


@pytest.mark.long
def test_letters_for_terminals_without_unicode(tmp_path: Path) -> None:
    done = rappor(*SMALL, env={"PYTHONIOENCODING": "ascii", "TMPDIR": str(tmp_path)})
    assert done.returncode == 0
    assert "Privacy: eps 1.075" in done.stdout
    assert re.findall(r".{8}[?]", done.stdout) == ["homepage?", "ome with?"]  # its two questions


@LINUX
def test_on_a_terminal_it_serves_until_ctrl_c_and_leaves_nothing(tmp_path: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        env = environment({"TMPDIR": str(tmp_path), "TERM": "xterm", "COLUMNS": "100"})
        os.execvpe(COMMAND[0], [*COMMAND, "demo", "--reports", "3e3"], env)
    said, ended = "", False

    def read_until(pattern: str, seconds: float = 300) -> re.Match[str]:
        nonlocal said
        until = time.monotonic() + seconds
        while (found := re.search(pattern, said)) is None:
            assert time.monotonic() < until, said
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    said += os.read(terminal, 65536).decode(errors="replace")
                except OSError:
                    pytest.fail(f"it ended before it said {pattern!r}: {said}")
        return found

    try:
        link = read_until(r"Dashboard: (http://127\.0\.0\.1:\d+/login\?link=\S+?)\x1b")[1]
        operator = read_until(r"For an operator, with the page Ingest: (http://\S+/login\?\S+)")[1]
        read_until("Ctrl-C to end the demo")
        assert re.search(r"Privacy: ε 1\.075 for one report, ε 4\.395 for all reports", said)
        assert re.search(r"\d+ detected, \d+ false, \d+ missed\.", said)
        for address, role in ((link, b"analyst"), (operator, b"operator")):
            with urllib.request.urlopen(address, timeout=300) as page:
                assert page.status == 200
                assert b"Log in as " + role in page.read()
        started = family(pid)
        assert len(started) >= 3
        os.write(terminal, b"\x03")
        read_until("stopping the server")
        wait_for(lambda: os.waitpid(pid, os.WNOHANG) != (0, 0))
        ended = True
        wait_for(lambda: not alive(started))
        assert list(tmp_path.iterdir()) == []
    finally:
        if not ended:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        os.close(terminal)


@pytest.mark.long
@LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_in_the_middle_leaves_nothing(tmp_path: Path, number: int) -> None:
    with started(tmp_path / "tmp", "--reports", "1e7") as process:
        pids = family(process.pid)
        process.send_signal(number)
        output = process.communicate(timeout=300)
        assert (process.returncode, output[1]) == (130, f"rappor demo: {INTERRUPTION}\n")
        wait_for(lambda: not alive(pids))
        assert list((tmp_path / "tmp").iterdir()) == []


@LINUX
@pytest.mark.long
def test_nothing_outlives_a_demo_that_was_killed(tmp_path: Path) -> None:
    with started(tmp_path / "tmp", "--reports", "1e7") as process:
        pids = family(process.pid)
        process.kill()
        wait_for(lambda: not alive(pids))


@LINUX
@pytest.mark.long
def test_a_server_that_dies_is_said_in_one_line(tmp_path: Path) -> None:
    with started(tmp_path / "tmp", "--reports", "1e7") as process:
        pids = family(process.pid)
        (serve,) = wait_for(lambda: children(process.pid, "serve"))
        os.kill(serve, signal.SIGKILL)
        _, error = process.communicate(timeout=300)
        assert (process.returncode, error.count("\n")) == (1, 1)
        assert error.startswith("rappor demo: ")
        wait_for(lambda: not alive(pids))
        assert list((tmp_path / "tmp").iterdir()) == []


@LINUX
@pytest.mark.long
def test_a_collector_that_dies_is_started_again_and_nothing_is_lost(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    options = ("--reports", "3e5", "--json", "--keep", str(kept))
    with started(tmp_path / "tmp", *options) as process:
        many = min(PROCESSES, os.cpu_count() or 1)
        wait_for(lambda: len(children(process.pid, "rappor.demo.crowd")) == many)
        crowd = children(process.pid, "rappor.demo.crowd")
        for each in crowd:
            os.kill(each, signal.SIGSTOP)
        # Then only the crowd reports: a client of its own would wait half a minute, as it should.
        wait_for(lambda: len(list(kept.glob("clients/*/sent/*"))) == 4 * DEVICES)
        (serve,) = wait_for(lambda: children(process.pid, "serve"))
        (collector,) = wait_for(lambda: children(serve, "collect"))
        for each in crowd:
            os.kill(each, signal.SIGCONT)
        os.kill(collector, signal.SIGKILL)
        output, error = process.communicate(timeout=300)
        assert process.returncode == 0, error
    with contextlib.closing(open_store(kept / "data", read_only=True)) as store:
        assert sum(each.reports for each in store.cells()) == json.loads(output)["reports"]
    assert '"code": -9' in (kept / "server.log").read_text()


@LINUX
@pytest.mark.long
def test_a_crowd_that_dies_is_said_in_one_line(tmp_path: Path) -> None:
    with started(tmp_path / "tmp", "--reports", "1e7") as process:
        os.kill(children(process.pid, "rappor.demo.crowd")[0], signal.SIGKILL)
        _, error = process.communicate(timeout=300)
        said = "rappor demo: a process of the crowd ended by SIGKILL\n"
        assert (process.returncode, error) == (1, said)


def test_a_port_that_is_taken_is_said_in_one_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = rappor(*SMALL, "--json", "--port", port)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "rappor demo: the server did not start: "
        f"rappor collect: 127.0.0.1:{port}: this address is in use; choose another port"
    ]


def test_a_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    done = rappor(*SMALL, "--keep", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert "is not empty; give a new or empty one" in done.stderr


@pytest.mark.long
def test_do_not_track_is_obeyed_by_the_clients_and_said() -> None:
    done = rappor(*SMALL, env={"DO_NOT_TRACK": "1"})
    assert done.returncode == 0
    assert "DO_NOT_TRACK is set" in done.stdout


def test_without_the_extras_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda package: None if package == "uvicorn" else 1)
    assert main(["demo"]) == 1
    assert capsys.readouterr().err == (
        "rappor demo: rappor.demo needs the 'analysis,server' extra: "
        "pip install 'rappor[analysis,server]'; in a clone of rappor, pip install --require-hashes "
        "-r constraints-demo.txt installs the releases that are tested\n"
    )


def test_free_ports_are_free() -> None:
    assert len({free_port() for _ in range(20)}) > 1


@pytest.mark.parametrize(
    ("found", "typed", "command"),
    [
        ("/usr/bin/rappor", ".venv/bin/rappor", "rappor"),
        (None, ".venv/bin/rappor", ".venv/bin/rappor"),
        (None, "src/rappor/__main__.py", f"{sys.executable} -m rappor"),
    ],
)
def test_the_commands_that_it_names_at_the_end_can_be_called(
    found: str | None, typed: str, command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(demo_output.shutil, "which", lambda _: found)
    monkeypatch.setattr(sys, "argv", [typed, "demo"])
    blank, _, *lines = demo_output.again(DemoFolder(tmp_path), "2026-11-12")
    assert blank == ""
    verbs = []
    for line in lines:
        assert line.startswith(f"  {command} ")
        verbs.append(
            build_parser().parse_args(shlex.split(line.removeprefix(f"  {command} "))).verb
        )
    assert verbs == ["decode", "decode", "compare", "associate", "serve", "access"]
