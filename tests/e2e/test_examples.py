"""The examples work as they are: their own tests pass, in a copy."""

import re
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from rappor.collection import Registry, lint_all
from support.collecting import collector, stored
from support.command import environment, rappor
from support.examples import EXAMPLES, copy_of
from support.javascript import node

LIMIT = 600  # seconds: ends an example that hangs


def test_every_example_is_listed_and_explains_itself() -> None:
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    listed = set(re.findall(r"\| \[`([a-z-]+)`\]", (EXAMPLES / "README.md").read_text("utf-8")))
    assert folders == listed
    assert all((EXAMPLES / name / "README.md").is_file() for name in folders)


def test_the_python_application_passes_its_own_tests(tmp_path: Path) -> None:
    folder = copy_of("python-app", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", ".", "-W", "error"],
        cwd=folder,
        env=environment({"HOME": str(tmp_path), "DO_NOT_TRACK": "1"}),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_the_service_reports_itself_and_none_of_its_visitors(tmp_path: Path) -> None:
    folder = copy_of("node-service", tmp_path)
    export = ("collection", "export", str(folder / "collections" / "runtime.toml"))
    definition = tmp_path / "runtime.json"
    assert rappor(*export, "--output", str(definition)).returncode == 0
    with collector(folder) as collecting:
        address = f"http://127.0.0.1:{collecting.port}"
        for switched_on, reports in ((False, 0), (True, 1)):
            env = environment({"SERVICE_STATISTICS": "on"} if switched_on else {})
            env.pop("DO_NOT_TRACK", None)
            service = subprocess.Popen(
                [node(), EXAMPLES / "node-service" / "service.js", folder / "own", address,
                 definition],
                stdout=subprocess.PIPE, text=True, env=env,
            )  # fmt: skip
            assert service.stdout is not None
            try:
                url = service.stdout.readline().strip()
                for name in ("Ada", "Grace"):
                    with urlopen(f"{url}/hello?name={name}", timeout=LIMIT) as response:
                        assert response.read().decode() == f"Hello, {name}\n"
                service.terminate()
                assert service.wait(LIMIT) == 0
            finally:
                service.kill()
                service.wait()
                service.stdout.close()
            assert sum(stored(folder, "runtime").values()) == reports
            assert (folder / "own" / "secret").exists() == switched_on


@pytest.mark.parametrize("name", ["python-app", "node-service"])
def test_lint_finds_no_mistake_in_the_collections_of_an_example(name: str, tmp_path: Path) -> None:
    collections = Registry.open(copy_of(name, tmp_path) / "collections")
    assert lint_all(collections) == ()


def test_lint_only_warns_that_browsers_forget(tmp_path: Path) -> None:
    found = lint_all(Registry.open(copy_of("web", tmp_path) / "collections"))
    assert {finding.code for finding in found} == {"forgetful-platform"}
