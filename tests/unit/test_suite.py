"""The tests themselves: where they lie, and that none of them bets on time."""

from __future__ import annotations

import ast
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from rappor.host import LOOPBACK, bound
from support.ports import held_port
from support.waiting import wait_for

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "src" / "rappor"
IN_PROCESSES = {"cli"}  # packages whose tests are in tests/e2e
CLOCKS = {"monotonic", "now", "perf_counter", "process_time", "time", "utcnow"}
CLOCKS |= {"monotonic_ns", "perf_counter_ns", "process_time_ns", "time_ns"}
READS_A_CLOCK = re.compile(rf"\b({'|'.join(sorted(CLOCKS))})\(")
TIMEOUTS = {"connect_timeout", "seconds", "timeout"}
FILES = sorted(TESTS.rglob("*.py"))


DOCUMENTS = [
    *TESTS.parent.glob("*.md"),
    *TESTS.parent.glob("docs/**/*.md"),
    *TESTS.parent.glob("src/rappor/**/*.py"),
]


def packages(folder: Path) -> set[str]:
    return {place.name for place in folder.iterdir() if any(place.glob("*.py"))}


def test_unit_tests_mirror_the_packages() -> None:
    assert packages(TESTS / "unit") == packages(PACKAGE) - IN_PROCESSES


def imported(file: Path) -> set[str]:
    """The modules, and the names in them, that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


@pytest.mark.slow
def test_unit_tests_are_about_the_package_in_whose_folder_they_are() -> None:
    """Named after one of its modules; where several make a behaviour, they import from it."""
    for file in (TESTS / "unit").glob("*/test_*.py"):
        package = file.parent.name
        modules = (PACKAGE / package).rglob(f"{file.stem.removeprefix('test_')}.py")
        names = imported(file)
        assert any(modules) or any(f"{each}.".startswith(f"rappor.{package}.") for each in names), (
            file
        )


def test_documents_name_tests_that_are_there() -> None:
    named = {
        (document.name, path)
        for document in DOCUMENTS
        for path in re.findall(r"`(tests/[\w/*.-]+)", document.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert [each for each in sorted(named) if not any(TESTS.parent.glob(each[1]))] == []


# Time. A test must not depend on how busy the machine is: it measures nothing, it does not sleep
# for a fixed time, and its limits only end what hangs.


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def name_of(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def calls(name: str, node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) == name


def reads_a_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and name_of(node.func) in CLOCKS


def clock_names(scope: ast.AST) -> set[str]:
    """The variables that a reading of a clock is assigned to."""
    assignments = [
        (target, node.value)
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return {
        target.id
        for target, value in assignments
        if isinstance(target, ast.Name) and value is not None and reads_a_clock(value)
    }


def scopes(tree: ast.Module) -> Iterator[ast.AST]:
    """Functions with those inside of them, and what is outside of functions."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    yield from (node for node in ast.walk(tree) if isinstance(node, functions))
    yield ast.Module([node for node in tree.body if not isinstance(node, functions)], [])


def measurements(source: str) -> list[int]:
    """The lines that take the difference of two readings of a clock."""
    found = set()
    for scope in scopes(parsed(source)) if READS_A_CLOCK.search(source) else ():
        names = clock_names(scope)

        def is_reading(node: ast.AST, names: set[str] = names) -> bool:
            return reads_a_clock(node) or (isinstance(node, ast.Name) and node.id in names)

        found |= {
            node.lineno
            for node in ast.walk(scope)
            if isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Sub)
            and is_reading(node.left)
            and not isinstance(node.right, ast.Constant)
            and not calls("timedelta", node.right)
        }
    return sorted(found)


@pytest.mark.parametrize(
    "code",
    [
        "assert time.monotonic() - began < 2",
        "took.append(perf_counter() - began)",
        "assert loop.time() - began < 2",
        "assert datetime.now(UTC) - began < limit",
        "end = monotonic(); assert end - began < 2",
        "assert (end := monotonic()) and end - began < 2",
    ],
)
def test_a_measured_duration_is_recognised(code: str) -> None:
    assert measurements(f"def test():\n    {code}\n") == [2]


@pytest.mark.parametrize(
    "code",
    [
        "sender.send(until=clock.monotonic() + 60)",
        "assert time.monotonic() < limit",
        "yesterday = datetime.now(UTC) - timedelta(days=1)",
    ],
)
def test_a_limit_or_a_date_is_no_measured_duration(code: str) -> None:
    assert measurements(f"def test():\n    {code}\n") == []


SLEEPS = {
    ("browser/conftest.py", "wait_for"): "lets events of the page happen, then asks again",
    ("e2e/test_collector_overload.py", "test_slow_senders_are_cut_off_while_others_are_served"): (
        "sends no faster than anybody may"
    ),
    ("spark/test_cluster.py", "work"): "waits for a file, in a process without `support`",
    ("support/code_blocks.py", "_start"): "asks again; only the standard library is there",
    ("support/killing.py", "_work"): "a client that was refused waits, then asks again",
    ("support/killing.py", "kill_cycles"): "a random moment of the kill, after work was seen",
    ("support/planted_collector.py", "add"): "is a slow disk",
    ("support/planted_collector.py", "follow"): "leaves time for a kill; fewer hits, no failure",
    ("support/postgres_faults.py", "fault_cycles"): "a random moment of the fault, as in killing",
    ("support/waiting.py", "wait_for"): "asks again",
    ("support/writing.py", "main"): "sets the pace of a writer that is stopped from outside",
    ("unit/client/test_hostile_collector.py", "behave"): "is a slow collector",
    (
        "unit/client/test_workers.py",
        "test_a_host_that_never_stops_calling_does_not_keep_the_calendar_from_being_looked_at",
    ): "asks again",
    ("unit/collector/test_whole_requests.py", "until"): "asks again, in an event loop",
    ("unit/collector/test_writer.py", "until"): "asks again, in an event loop",
}


def in_functions(source: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call with the name of the innermost function around it."""
    left: list[tuple[ast.AST, str]] = [(parsed(source), "")]
    while left:
        node, function = left.pop()
        if isinstance(node, ast.Call):
            yield function, node
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        left += [(child, function) for child in ast.iter_child_nodes(node)]


def number(node: ast.AST) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    return None


def sleeps(source: str) -> set[str]:
    """The functions that sleep; `sleep(0)` only lets others run."""
    if "sleep" not in source and "wait_for_timeout" not in source:
        return set()
    return {
        function
        for function, call in in_functions(source)
        if name_of(call.func) in ("sleep", "wait_for_timeout")
        and not (call.args and number(call.args[0]) == 0)
    }


def test_a_sleep_is_recognised() -> None:
    code = "def test():\n    time.sleep({0})\n    async def inner():\n        await sleep({1})\n"
    assert sleeps(code.format("0.1", "pause")) == {"test", "inner"}
    assert sleeps(code.format("0", "0.0")) == set()


# Seconds; less may be too little on a busy machine.
MIN_LIMIT = 30
LIMITED = {"acquire", "close", "communicate", "connect", "create_connection", "drain", "end"}
LIMITED |= {"flush", "get", "join", "result", "run", "settimeout", "urlopen", "wait", "wait_for"}
LIMITED |= {"Client", "HTTPConnection", "HTTPSConnection", "request", "wait_until_listening"}
ONLY_SECONDS = {"communicate", "flush", "join", "settimeout", "wait", "wait_until_listening"}
SHORT_LIMITS = {
    ("e2e/test_client_consent.py", "one_round"): "asks again",
    (
        "unit/dashboard/test_jobs_page.py",
        "test_a_page_shows_how_far_a_decode_is_until_it_is_done",
    ): "asks again",
}


def short_limits(source: str) -> set[str]:
    """The functions with calls that fail when something takes less than MIN_LIMIT."""
    found = set()
    for function, call in in_functions(source):
        name = name_of(call.func)
        given = [each.value for each in call.keywords if each.arg in TIMEOUTS]
        given += call.args if name in ONLY_SECONDS else []
        limits = [number(value) for value in given] if name in LIMITED else []
        if any(limit is not None and 0 < limit < MIN_LIMIT for limit in limits):
            found.add(function)
    return found


@pytest.mark.parametrize(
    "code",
    [
        "wait_for(done, seconds=20)",
        "subprocess.run(command, timeout=5)",
        "thread.join(1)",
        "psycopg.connect(url, connect_timeout=5)",
    ],
)
def test_a_short_limit_is_recognised(code: str) -> None:
    assert short_limits(f"def test():\n    {code}\n") == {"test"}


@pytest.mark.parametrize(
    "code", ["wait_for(done)", "thread.join(300)", "events.poll(0)", '", ".join(names)']
)
def test_a_long_limit_is_not_taken_for_a_short_one(code: str) -> None:
    assert short_limits(f"def test():\n    {code}\n") == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "allowed"),
    [(measurements, {}), (sleeps, SLEEPS), (short_limits, SHORT_LIMITS)],
    ids=["measures", "sleeps", "short limits"],
)
def test_no_test_bets_on_time(
    search: Callable[[str], Iterable[object]], allowed: dict[tuple[str, str], str]
) -> None:
    found = {
        (file.relative_to(TESTS).as_posix(), place)
        for file in FILES
        for place in search(file.read_text(encoding="utf-8"))
    }
    assert found == allowed.keys()


def test_a_wait_ends_with_the_process_that_it_waits_for() -> None:
    with subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        with pytest.raises(AssertionError, match="a sign, but the process ended with exit code 3"):
            wait_for(lambda: False, "a sign", process=process)
        assert wait_for(lambda: True, "a sign", process=process)


def test_a_held_port_belongs_to_nobody_until_its_server_listens() -> None:
    with held_port() as port:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((LOOPBACK, port))
        for _ in range(2):  # also after a restart
            with bound(LOOPBACK, port) as server:
                server.listen()
                socket.create_connection((LOOPBACK, port)).close()


def test_single_limits_are_shorter_than_that_of_a_whole_test() -> None:
    """The longer one ends the test process, and says less."""
    settings = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    whole = settings["tool"]["pytest"]["ini_options"]["faulthandler_timeout"]
    (spark,) = re.findall(
        r"^SPARK_PYTEST.* -o faulthandler_timeout=(\d+)",
        (TESTS.parent / "Makefile").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    limit = re.compile(r"(?:^(?:LIMIT|SECONDS) = |\btimeout=)(\d+)", re.MULTILINE)
    for file in FILES:
        found = map(float, limit.findall(file.read_text(encoding="utf-8")))
        in_spark = file.parent.name == "spark" or file.name == "spark_cluster.py"
        assert max(found, default=0) < float(spark if in_spark else whole), file.name


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_a_step_that_fails_is_named_with_the_time_that_it_took() -> None:
    done = subprocess.run(
        ["make", "--eval", "sample:\n\t$(call step,one,true)\n\t$(call step,two,false)", "sample"],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert re.search(r'^make sample: FAILED at step "two" after \d+ min \d+ s$', done.stderr, re.M)
