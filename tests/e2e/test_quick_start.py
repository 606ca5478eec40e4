"""The README's quick start, from an empty folder: clients over real HTTP, the collector, decode."""

import json
import re
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from rappor.host import free_port
from support.command import COMMAND, environment

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Run it\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


def wait_until_ready(port: int) -> None:
    for _ in range(200):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("the collector did not start")


def test_ten_lines_of_python_and_two_commands_show_the_strings(tmp_path: Path) -> None:
    (toml,) = (code for language, code in BLOCKS if language == "toml")
    (python,) = (code for language, code in BLOCKS if language == "python")
    collect, decode, *_ = (code.split("#")[0].split() for language, code in BLOCKS if not language)
    assert len([line for line in python.splitlines() if line]) <= 10
    port = free_port()
    (tmp_path / "collections").mkdir()
    (tmp_path / "collections" / "homepage.toml").write_text(toml)
    (tmp_path / "candidates.txt").write_text("example.com\nexample.org\nexample.net\n")
    (tmp_path / "people.py").write_text(python.replace("8080", str(port)))
    collect = [word.replace("8080", str(port)) for word in collect]
    server = subprocess.Popen(
        [*COMMAND, *collect[1:]], cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL
    )
    try:
        wait_until_ready(port)
        people = subprocess.run(
            [sys.executable, "people.py"],
            cwd=tmp_path,
            env=environment(),
            timeout=120,
            check=False,
            capture_output=True,
            text=True,
        )
        assert (people.returncode, people.stdout, people.stderr) == (0, "", "")
        done = subprocess.run(
            [*COMMAND, *decode[1:], "--json"], cwd=tmp_path, env=environment(), timeout=60,
            check=False, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        server.terminate()
        assert server.wait(timeout=15) == 0
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["reports"] == 150
    assert {row["string"] for row in facts["rows"]} == {"example.com", "example.org"}
