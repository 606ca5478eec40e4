"""The base install needs nothing that Windows lacks, and a server says there what it needs."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from support import windows

ROOT = Path(__file__).parents[2]
SMOKE = ROOT / "tests" / "support" / "client_smoke.py"
SERVERS = ("collect", "serve", "dashboard", "demo")
COMMAND = """
import sys
from rappor.cli.main import main
if sys.platform == "win32":
    sys.exit(main())
import rappor.cli.collect, rappor.cli.serve, rappor.cli.dashboard, rappor.cli.demo
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What Windows lacks, in a file."""
    mypy = find_spec("mypy")
    assert mypy is not None
    assert mypy.origin is not None
    file = tmp_path_factory.mktemp("windows") / "facts.json"
    found = windows.lacking(Path(mypy.origin).parent / "typeshed" / "stdlib")
    file.write_text(json.dumps(found), encoding="utf-8")
    return file


def test_what_windows_lacks_is_what_its_documentation_says(facts: Path) -> None:
    found = json.loads(facts.read_text(encoding="utf-8"))
    assert {"fcntl", "grp", "pwd", "resource", "termios"} <= set(found["modules"])
    assert not {"os", "signal", "socket", "msvcrt"} & set(found["modules"])
    assert {"fork", "geteuid", "fchmod", "register_at_fork"} <= set(found["names"]["os"])
    assert not {"open", "replace", "fsync", "O_RDWR", "getpid"} & set(found["names"]["os"])
    assert {"SIGHUP", "SIGKILL"} <= set(found["names"]["signal"])
    assert not {"SIGINT", "SIGTERM"} & set(found["names"]["signal"])


def test_a_client_reports_without_anything_of_posix(facts: Path) -> None:
    done = windows.run(facts, SMOKE)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("win32, Python 3.")
    assert done.stdout.endswith(": 1 report counted\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import fcntl", "Windows has no module fcntl"),
        ("import os; os.geteuid()", "Windows has no os.geteuid"),
        ("from signal import SIGHUP", "cannot import name 'SIGHUP'"),
    ],
)
def test_a_planted_need_of_posix_is_noticed(
    facts: Path, tmp_path: Path, line: str, said: str
) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"{line}\n", encoding="utf-8")
    done = windows.run(facts, program)
    assert done.returncode == 1
    assert said in done.stderr


def test_commands_of_the_base_install_run_without_anything_of_posix(
    facts: Path, tmp_path: Path
) -> None:
    program = tmp_path / "command.py"
    program.write_text(COMMAND, encoding="utf-8")
    done = windows.run(facts, program, "privacy", "--preset", "windows")
    assert (done.returncode, done.stderr) == (0, "")
    assert "4.395" in done.stdout


@pytest.mark.parametrize("verb", SERVERS)
def test_a_server_says_at_its_start_what_it_needs(facts: Path, tmp_path: Path, verb: str) -> None:
    program = tmp_path / "command.py"
    program.write_text(COMMAND, encoding="utf-8")
    options = () if verb == "demo" else ("--data", "data", "--collections", "collections")
    done = windows.run(facts, program, verb, *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"rappor {verb}: collector and dashboard need the file locks")
    assert "Linux or macOS" in done.stderr
    assert "(win32)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.long
def test_the_type_checker_finds_nothing_in_a_client_that_windows_lacks(tmp_path: Path) -> None:
    (tmp_path / "planted.py").write_text("import os\n\nos.geteuid()\n", encoding="utf-8")
    check = [sys.executable, "-m", "mypy", "--platform", "win32", "--no-warn-unreachable"]
    check += ["--cache-dir", str(tmp_path / "cache")]
    for target, code in (
        (["-p", "rappor.client", "-p", "rappor.testing"], 0),
        ([str(tmp_path / "planted.py")], 1),
    ):
        done = subprocess.run(
            [*check, *target], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout
