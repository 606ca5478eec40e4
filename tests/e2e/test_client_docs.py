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
from rappor.params import Params
from support.client import LIMIT, Collector, FakeClock, homepage
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


def test_the_quick_start_and_the_example_test_work_as_they_are_printed(
    tmp_path: Path, collector: Collector
) -> None:
    (definition,) = blocks("toml")
    first, second = blocks("python")
    (tmp_path / "homepage.toml").write_text(definition, encoding="utf-8")
    assert "https://reports.example.org" in first
    code = first.replace("https://reports.example.org", collector.url) + second
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
