"""The README's quick start, from an empty folder: clients over real HTTP, the collector, decode."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

from rappor.host import bound
from support.collecting import PATIENCE
from support.command import COMMAND, environment
from support.waiting import wait_for

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Run it\n")[2].partition("\n## ")[0]
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)


def is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=PATIENCE):
            return True
    except OSError:
        return False


def test_ten_lines_of_python_and_two_commands_show_the_strings(tmp_path: Path) -> None:
    (toml,) = (code for language, code in BLOCKS if language == "toml")
    (python,) = (code for language, code in BLOCKS if language == "python")
    collect, decode, *_ = (code.split("#")[0].split() for language, code in BLOCKS if not language)
    assert len([line for line in python.splitlines() if line]) <= 10
    holder = bound("127.0.0.1", 0)  # so that nobody else is given the port meanwhile
    port = holder.getsockname()[1]
    (tmp_path / "collections").mkdir()
    (tmp_path / "collections" / "homepage.toml").write_text(toml)
    (tmp_path / "candidates.txt").write_text("example.com\nexample.org\nexample.net\n")
    # A client gives its last upload a moment only; on a busy machine it gets as long as it takes.
    assert "client.close()" in python
    patient = python.replace("client.close()", f"client.close({PATIENCE})")
    (tmp_path / "people.py").write_text(patient.replace("8080", str(port)))
    collect = [word.replace("8080", str(port)) for word in collect]
    server = subprocess.Popen(
        [*COMMAND, *collect[1:]], cwd=tmp_path, env=environment(), stderr=subprocess.DEVNULL
    )
    try:
        wait_for(lambda: is_ready(port))
        people = subprocess.run(
            [sys.executable, "people.py"],
            cwd=tmp_path,
            env=environment(),
            timeout=300,
            check=False,
            capture_output=True,
            text=True,
        )
        assert (people.returncode, people.stdout, people.stderr) == (0, "", "")
        done = subprocess.run(
            [*COMMAND, *decode[1:], "--json"], cwd=tmp_path, env=environment(), timeout=300,
            check=False, capture_output=True, text=True,
        )  # fmt: skip
    finally:
        server.terminate()
        assert server.wait(timeout=PATIENCE) == 0
        holder.close()
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["reports"] == 150
    # The clients' noise is real: in a few runs of a hundred the third string is a false find.
    assert {row["string"] for row in facts["rows"]} >= {"example.com", "example.org"}
