"""docs/client.md: what can be copied works, and nothing that a user meets is missing from it."""

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.client import PROBLEMS, STATES, Client
from rappor.client.charging import ChargeDecision
from rappor.client.transport import Answer
from rappor.collection import Collection
from rappor.params import Params
from rappor.privacy.rounding import up
from rappor.testing import MemoryCollector
from rappor.testing.fixtures import __all__ as fixtures
from support.client import LIMIT, Collector, FakeClock, FakeTransport, homepage
from support.command import environment

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
PATIENCE = "from support.client import be_patient; be_patient()\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def test_the_quick_start_works_as_it_is_printed(tmp_path: Path, collector: Collector) -> None:
    (definition,) = blocks("toml")
    first = blocks("python")[0]
    (tmp_path / "homepage.toml").write_text(definition, encoding="utf-8")
    assert "https://reports.example.org" in first
    code = first.replace("https://reports.example.org", collector.url)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PATIENCE + code],
        cwd=tmp_path,
        env=environment({"HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[1])}),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (batch,) = collector.batches
    assert (batch.collection, batch.version, batch.count) == ("homepage", 1, 1)
    assert (tmp_path / ".app/rappor/secret").exists()


@pytest.mark.long
def test_the_example_tests_pass_again_in_any_order_and_under_do_not_track(tmp_path: Path) -> None:
    (definition,) = blocks("toml")
    _, conftest, tests, _ = blocks("python")
    (tmp_path / "homepage.toml").write_text(definition, encoding="utf-8")
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    (tmp_path / "test_app.py").write_text(tests, encoding="utf-8")
    names = [f"test_app.py::{name}" for name in re.findall(r"^def (test_\w+)", tests, re.MULTILINE)]
    assert len(names) == 3
    runs: list[tuple[dict[str, str], list[str]]] = [
        ({}, names),
        ({"DO_NOT_TRACK": "1"}, names[::-1]),
    ]
    plugins = ["-p", "no:schemathesis", "-p", "no:xdist", "-p", "no:cacheprovider"]
    for extra, order in runs:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-W", "error", *plugins, *order],
            cwd=tmp_path,
            env=environment({"HOME": str(tmp_path)} | extra),
            capture_output=True,
            text=True,
            timeout=LIMIT,
            check=False,
        )
        assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout
    assert not (tmp_path / ".app").exists()


def test_the_printed_status_is_the_real_one(tmp_path: Path) -> None:
    (definition,) = blocks("toml")
    shown = re.search(r"```text\n(on: values.*?)```", PAGE, re.DOTALL)
    assert shown is not None
    answers: list[Answer | Exception] = [Answer(401, "unauthorized", 3600.0)] * 2
    with Client.open(
        tmp_path / "c",
        [Collection.from_toml(definition)],
        consent=True,
        clock=FakeClock(),
        transport=FakeTransport(answers),
    ) as client:
        client.report("homepage", "example.com")
        client.flush(LIMIT)
        real = str(client.status())
    minutes = re.compile(r"in about \d+ min")
    assert minutes.sub("soon", real) == minutes.sub("soon", shown[1]).strip()


def test_the_cost_of_more_values_is_the_real_one() -> None:
    rows = re.findall(r"^\| ([0-9]) \| ([0-9.]+) \|$", PAGE, re.MULTILINE)
    chrome = Params.preset("chrome")
    assert [number for number, _ in rows] == ["1", "2", "3"]
    for number, epsilon in rows:
        made = Collection("homepage", 1, chrome, max_values=int(number))
        assert up(made.max_epsilon) == epsilon


def test_every_name_of_the_testing_package_is_told() -> None:
    names = {name for name in vars(MemoryCollector) if not name.startswith("_")} | set(fixtures)
    assert {name for name in names if f"`.{name}" not in PAGE and f"`{name}" not in PAGE} == set()


def test_every_argument_method_state_and_problem_is_told() -> None:
    arguments = set(inspect.signature(Client.open).parameters)
    methods = {name for name in vars(Client) if not name.startswith("_")} - {"open", "after_fork"}
    told = set(re.findall(r"`([a-z_-]+)", PAGE)) | set(re.findall(r"`([a-z ]+)`", PAGE))
    assert arguments | methods | set(STATES) | set(PROBLEMS) <= told
    for answer in ChargeDecision:
        assert f"`{answer.value}`" in PAGE


def test_every_file_in_a_used_directory_is_told(tmp_path: Path) -> None:
    once = homepage(name="once", params=Params(8, 1, 1, 0.5, 0.0, 1.0), one_time=True)
    clock = FakeClock()
    given = {"consent": True, "clock": clock}
    with Client.open(tmp_path / "c", [homepage(null_reports=True), once], **given) as client:
        client.report("homepage", "a.org")
        client.report("once", "a.org")
        client.flush(LIMIT)
        client.opt_out()
    found = {path.relative_to(tmp_path / "c").parts[0] for path in (tmp_path / "c").rglob("*")}
    assert {"secret", "used", "ledger", "outbox", "opted-out", "lock"} <= found
    told = set(re.findall(r"`([a-z.-]+)/?`", PAGE))
    assert found <= told
