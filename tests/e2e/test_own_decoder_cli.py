"""A decoder by import path: what docs/decoder.md shows works, and a wrong path has a way out."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rappor.cli.main import build_parser
from support.command import environment

PAGE = (Path(__file__).parents[2] / "docs" / "decoder.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
PYTHON = [code for language, code in BLOCKS if language == "python"]
PLAIN = [text for language, text in BLOCKS if language in ("text", "sh")]
DASHBOARD = Path(__file__).parents[2] / "src" / "rappor" / "dashboard"


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the decoder of the guide, decoders that fail, and simulated counts."""
    made = tmp_path_factory.mktemp("own")
    (made / "mine.py").write_text(PYTHON[0] + "\nnumber = 3\n", encoding="utf-8")
    (made / "broken.py").write_text("1 / 0\n", encoding="utf-8")
    (made / "needy.py").write_text("import a_package_that_nobody_has\n", encoding="utf-8")
    (made / "shy.py").write_text(
        "from mine import BitMeans\n"
        "class Asks(BitMeans):\n    def __init__(self, number): pass\n"
        "class Fails(BitMeans):\n    def decode(self, task): raise KeyError('x')\n",
        encoding="utf-8",
    )
    simulate = shlex.split(PLAIN[1].splitlines()[0])
    assert run(made, sys.executable, "-m", *simulate).returncode == 0
    return made


def test_the_guide_works_as_it_is_printed(folder: Path) -> None:
    done = run(folder, sys.executable, "-W", "error", "-c", PYTHON[1])
    assert done.stderr == ""
    assert done.stdout == PLAIN[0]


@pytest.mark.long
def test_the_commands_of_the_guide_work_with_the_installed_command(folder: Path) -> None:
    command = Path(sys.executable).parent / "rappor"
    usual, own = (shlex.split(line)[1:] for line in PLAIN[1].splitlines()[1:])
    assert run(folder, command, *usual).returncode == 0
    done = run(folder, command, *own)
    assert done.returncode == 0
    assert "listed strings found" in done.stdout
    assert "note: Estimates, intervals and p-values are those of the decoder bit means" in (
        done.stderr
    )


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("mine", 2, "--decoder takes MODULE:NAME, such as mine:decoder"),
        ("mine.py:BitMeans()", 2, "--decoder takes MODULE:NAME"),
        ("nowhere:x", 3, "run the command where nowhere.py is, or install it"),
        ("mine.sub:x", 3, "there is no module mine.sub"),
        ("mine:BitMean", 3, "nothing called BitMean (did you mean BitMeans?); define it there"),
        ("mine:number", 3, "mine:number: decoder must be an object with a name and a method"),
        ("broken:x", 3, "broken failed to import with ZeroDivisionError: division by zero; mend"),
        ("needy:x", 3, "needy imports a_package_that_nobody_has, which is not installed: install"),
        ("shy:Asks", 3, "make an object in shy, `decoder = Asks(...)`, and name that"),
        ("shy:Fails", 3, "failed with KeyError: 'x'; mend it (with --debug, the command shows"),
    ],
)
def test_a_wrong_path_has_a_way_out(folder: Path, path: str, code: int, words: str) -> None:
    files = ("--counts", "out/counts.npz", "--candidates", "out/candidates.txt")
    done = run(folder, sys.executable, "-m", "rappor", "decode", *files, "--decoder", path)
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_it_does_not_go_with_a_method(folder: Path) -> None:
    done = run(folder, sys.executable, "-m", "rappor", "decode", "--counts", "out/counts.npz",
               "--candidates", "x", "--method", "lasso", "--decoder", "mine:BitMeans")  # fmt: skip
    assert done.returncode == 2
    assert "--decoder and --method exclude each other: leave one of them out" in done.stderr


def test_only_decode_imports_code_and_the_dashboard_knows_no_decoder() -> None:
    parser = build_parser()
    for verb in ("decode", "compare", "dashboard", "serve", "collect"):
        words = [*{"compare": ["a", "--data", "d"], "decode": ["a", "--data", "d"]}.get(verb, [])]
        words += [] if words else ["--data", "d"]
        words += ["--collections", "c"] if verb in ("serve", "collect") else []
        args, unknown = parser.parse_known_args([verb, *words, "--decoder", "os:system"])
        assert (unknown == []) is (verb == "decode"), verb
        assert args.verb == verb
    for file in DASHBOARD.rglob("*.*"):
        if file.suffix in (".py", ".html", ".js"):
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"\bdecoder\b|own_decoder|decoder_import", text), file.name
