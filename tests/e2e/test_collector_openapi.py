"""D1: the collector does what its OpenAPI document says, whatever schemathesis sends.

Most of each test is the start of schemathesis. In `make test`, test_collector.py compares the
answers that it provokes with the document.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.collector.openapi import document
from support.collecting import Process, collector

EXAMPLES = 30
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with collector(tmp_path_factory.mktemp("documented")) as running:
        yield running


CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_headers_conformance,response_schema_conformance,unsupported_method"
)


def schemathesis(
    document: str | Path, process: Process, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Schemathesis on an OpenAPI document, in a process of its own."""
    command = [sys.executable, "-m", "schemathesis.cli", "run", str(document), "--checks", CHECKS]
    command += ["--url", f"http://127.0.0.1:{process.port}"]
    command += ["--max-examples", str(EXAMPLES), "--seed", "1", "--no-color"]
    command += ["--generation-database", "none"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder)


def test_schemathesis_finds_nothing_undocumented(process: Process, tmp_path: Path) -> None:
    pytest.importorskip("schemathesis")
    address = f"http://127.0.0.1:{process.port}/openapi.json"
    done = schemathesis(address, process, tmp_path)
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout


def test_schemathesis_would_find_a_status_that_is_not_documented(
    process: Process, tmp_path: Path
) -> None:
    pytest.importorskip("schemathesis")
    planted = document()
    for status in ("400", "404"):
        del planted["paths"]["/v1/reports"]["post"]["responses"][status]
    file = tmp_path / "planted.json"
    file.write_text(json.dumps(planted))
    done = schemathesis(file, process, tmp_path)
    assert done.returncode == 1
    assert "Undocumented status code" in done.stdout
