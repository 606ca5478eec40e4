"""Every code block of the documents runs as it is printed, or says why it does not."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest

from rappor.cli.main import build_parser
from support.code_blocks import DATA, Block, blocks, commands, run_page
from support.command import environment

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [block for page in PAGES for block in blocks(page)]
RUN = [page for page in PAGES if page != README and any(block.is_run for block in blocks(page))]
RUNNER = "tests/support/code_blocks.py"
LIMIT = 600  # seconds: ends a page that hangs, says nothing about how fast one is
# Programs that may stand before `rappor` in a line for an operator.
AS_OPERATOR = re.compile(r"^sudo -u rappor (sh -c ')?|^/opt/[\w.-]+/bin/(?=rappor )")


def place(block: Block) -> str:
    return f"{block.page}:{block.line}"


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def run(page: Path, folder: Path, *options: str, **changes: str) -> str:
    """Run a page with the interpreter of the tests, in a folder of its own; what it prints."""
    folder.mkdir()
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            ROOT / RUNNER,
            page,
            "--folder",
            folder,
            "--forked",
            *options,
        ],
        env=environment({"PYTHONPATH": str(ROOT / "tests"), "HOME": str(folder)} | changes),
        capture_output=True,
        timeout=LIMIT,
        check=False,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_says_in_which_language_it_is() -> None:
    assert len(BLOCKS) > 150
    known = {"python", "sh", "js", *DATA}
    assert [place(block) for block in BLOCKS if block.language not in known] == []
    indented = re.compile(r"^ +```|^~~~", re.MULTILINE)
    assert [name(page) for page in PAGES if indented.search(page.read_text("utf-8"))] == []


def test_every_block_of_code_is_run_or_says_why_not() -> None:
    code = [block for block in BLOCKS if block.language in ("python", "sh", "js")]
    assert sum(block.is_run or block.is_doctest for block in code) > 100
    silent = [
        place(block)
        for block in code
        if not (block.is_run or block.is_doctest or {"not run", "run by"} & set(block.marks))
    ]
    assert silent == []
    assert all(len(reason) > 8 for block in BLOCKS for reason in block.marks.values())


def test_a_test_that_runs_a_block_exists() -> None:
    named = {block.marks["run by"] for block in BLOCKS if "run by" in block.marks}
    assert named - {"make dist"} == {each for each in named if (ROOT / each).is_file()}


def test_commands_hide_in_no_block_of_text() -> None:
    typed = re.compile(r"^(rappor|make|pip|python3?) ", re.MULTILINE)
    texts = [block for block in BLOCKS if block.language == "text"]
    found = [line for block in texts for line in block.code.splitlines() if typed.match(line)]
    # Messages begin with "rappor VERB:".
    assert [line for line in found if not re.match(r"rappor [a-z]+: ", line)] == []


LINES = {
    AS_OPERATOR.sub("", line)
    for block in BLOCKS
    if block.language == "sh" and "<<" not in block.code
    for line in commands(block.code)
}


@pytest.mark.parametrize("line", sorted(line for line in LINES if line.startswith("rappor ")))
def test_a_command_of_a_document_is_one(line: str) -> None:
    words = shlex.split(line.partition("'")[0] if "$(" in line else line, comments=True)
    if "$(" not in line:
        # Of the shell: in the background, and into a file.
        typed = [word for word in takewhile(lambda word: word != ">", words[1:]) if word != "&"]
        assert build_parser().parse_args(typed).verb == words[1]


@pytest.mark.parametrize("page", RUN, ids=name)
def test_the_blocks_of_a_page_run_as_they_are_printed(page: Path, tmp_path: Path) -> None:
    folder = tmp_path / "reader"
    printed = run(page, folder)
    written = {
        words[place + 1]
        for block in blocks(page)
        if block.is_run and block.language == "sh" and "long" not in block.marks
        for line in commands(block.code)
        for words in [line.partition("#")[0].split()]
        for place, word in enumerate(words)
        if word in ("--output", "--plot")
    }
    made = {path.name for path in folder.rglob("*")} | {"."}
    assert {each.rpartition("/")[2] for each in written} <= made
    if page.name == "decode.md":
        assert re.search(r"^site[1-9]\.example \d", printed, re.MULTILINE)


NOT_UNDER_DO_NOT_TRACK = [
    page
    for page in (README, *RUN)
    if any("not under DO_NOT_TRACK" in block.marks for block in blocks(page))
]


@pytest.mark.long
@pytest.mark.parametrize("page", NOT_UNDER_DO_NOT_TRACK, ids=name)
def test_pages_that_need_reports_run_twice_in_a_row(page: Path, tmp_path: Path) -> None:
    run(page, tmp_path / "reader", "--times", "2", "--long")


def read_only(folder: Path) -> list[str]:
    """The start of a command for which a folder is read-only; skips where none is possible."""
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'
    for unshare in (["unshare", "-m"], ["unshare", "-rm"]):
        prefix = [*unshare, "sh", "-c", script, str(folder)]
        if (
            shutil.which("unshare")
            and not subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode
        ):
            return prefix
    if os.geteuid() == 0:
        pytest.skip("root may write to every file, and this system lets us mount nothing")
    for path in [folder, *folder.rglob("*")]:
        path.chmod(path.stat().st_mode & ~0o222)
    return []


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the pages use, without caches."""
    folder = tmp_path_factory.mktemp("copy") / "rappor"
    for part in ("src", "tests", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(README, folder)
    return folder


@pytest.mark.long
@pytest.mark.parametrize("page", [README, *RUN], ids=name)
def test_the_blocks_of_a_page_run_twice_from_a_read_only_copy_under_do_not_track(
    page: Path, copy: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "reader"
    folder.mkdir()
    paths = os.pathsep.join(str(copy / part) for part in ("src", "tests"))
    changes = {"PYTHONPATH": paths, "HOME": str(folder), "DO_NOT_TRACK": "1"}
    check = "import pathlib, rappor; pathlib.Path(rappor.__file__).with_name('x').touch()"
    start = [*read_only(copy), sys.executable, "-W", "error"]
    given = {"env": environment(changes), "capture_output": True, "timeout": LIMIT, "text": True}
    written = subprocess.run([*start, "-c", check], **given, check=False)
    assert str(copy) in written.stderr
    assert "Error: " in written.stderr.splitlines()[-1]
    command = [*start, copy / RUNNER, copy / name(page), "--folder", folder]
    command += ["--times", "2", "--long", "--forked"]
    done = subprocess.run(command, **given, check=False)
    assert done.returncode == 0, done.stderr


def write(folder: Path, text: str) -> Path:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


@pytest.mark.parametrize(
    ("block", "error"),
    [("```sh\nfalse\n```\n", RuntimeError), ("```python\n1 / 0\n```\n", ZeroDivisionError)],
)
def test_a_block_that_fails_is_noticed(block: str, error: type[Exception], tmp_path: Path) -> None:
    with pytest.raises(error):
        run_page(write(tmp_path, block), tmp_path)


MARKED = """
## A
<!-- before
echo 1 > one
-->
<!-- once: it is made -->
```sh
mkdir new
```
<!-- file: a/b.toml -->
```toml
x = 1
```
<!-- not run: it fails -->
```sh
false
```
```python
import os
n = len(os.listdir())
```
## B
```python
assert n == 4  # the page, one, new and a
```
"""


def test_marks_and_preparations_are_followed(tmp_path: Path) -> None:
    page = write(tmp_path, MARKED)
    assert run_page(page, tmp_path, times=2) == 4 + 3
    assert (tmp_path / "a" / "b.toml").read_text("utf-8") == "x = 1\n"
    assert run_page(page, tmp_path, sections=["B"], times=0) == 0


def test_a_mark_that_belongs_to_no_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="before no block"):
        blocks(write(tmp_path, "<!-- once: why -->\nA sentence.\n"))
