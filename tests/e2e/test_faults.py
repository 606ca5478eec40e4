"""What goes wrong with files: one sentence that names the right one, one exit code for each fault.

Every verb and every file argument has a row in `support.fault_table`; the parsers say which.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rappor.cli.main import ClosedOutput
from support.collecting import today
from support.command import COMMAND, LIMIT, environment
from support.fault_table import (
    READERS,
    ROWS,
    WRITTEN,
    Ended,
    cases,
    command,
    file_arguments,
    leaves,
    make_fault,
    run,
)
from support.joint_tables import write_small_pairs
from support.waiting import wait_for

VECTORS = Path(__file__).parents[1] / "vectors"


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Inputs that are as they should be."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "population.csv").write_text("string,frequency\na,8\nb,4\nc,2\nd,1\n")
    done(
        f"simulate --population {folder}/population.csv --reports 2000 --k 16 --h 1 --m 2 --f .25 "
        f"--p .25 --q .75 --seed 1 --format google --dialect rappor-v1 --output {folder}/made"
    )
    for file in (folder / "made").iterdir():
        file.rename(folder / file.name)
    (folder / "overlap.csv").write_text("0\n")
    (folder / "secret").write_bytes(bytes(range(32)))
    (folder / "collections").mkdir()
    done(
        f"collection new homepage --params {folder}/params.csv --output "
        f"{folder}/collections/homepage.toml"
    )
    definition = folder / "collections/homepage.toml"
    kept = definition.read_text().replace("keep_reports_days = 0", "keep_reports_days = 30")
    definition.write_text(kept)
    shutil.copy(definition, folder)
    plan = run(
        [
            "plan",
            "--epsilon-one",
            "1",
            "--reports",
            "1e6",
            "--candidates",
            "4",
            "--check",
            "0",
            "--json",
        ]
    )
    (folder / "plan.json").write_text(plan.out)
    write_pairs(folder / "pairs", folder / "candidates.txt")
    done(
        f"import {folder}/reports.csv --data {folder}/data --collection homepage --collections "
        f"{folder}/collections --period {today()}"
    )
    done(f"lake seal {folder}/lake --data {folder}/data --open")
    (folder / "jobs.toml").write_text(
        'data = "data"\noutput = "results"\n[[jobs]]\ncollection = "homepage"\n'
        'candidates = "candidates.txt"\n'
    )
    done(f"backup --data {folder}/data --output {folder}/store.backup")
    done(f"collect --keys {folder}/keys.json --new-key app")
    done(f"access link bob --role viewer --data {folder}/data")
    shutil.copytree(VECTORS / "client-folder", folder / "client")
    for name, what in (("cert.pem", "CERTIFICATE"), ("key.pem", "PRIVATE KEY")):
        (folder / name).write_text(f"-----BEGIN {what}-----\n-----END {what}-----\n")
    return folder


def write_pairs(folder: Path, candidates: Path) -> None:
    """google/rappor's association files, with a map of the candidates."""
    write_small_pairs(folder)
    done(
        f"candidates {candidates} --params {folder}/domain_params.csv --dialect google "
        f"--output {folder}/map.csv"
    )


def done(words: str) -> None:
    ended = run(words.split())
    assert ended.code == 0, ended.err


@pytest.fixture
def unstarted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that would start fails the test instead."""
    from rappor.collector import process, supervisor
    from rappor.dashboard import process as pages

    def start(*_: object, **__: object) -> int:
        raise AssertionError("it started in spite of the fault")

    monkeypatch.setattr(process, "run", start)
    monkeypatch.setattr(pages, "run", start)
    monkeypatch.setattr(supervisor.Supervisor, "run", start)


def check(ended: Ended, verb: str, code: int, name: Path | str | None) -> None:
    """One sentence in the command's own words, which names the file, and the code."""
    assert "Traceback" not in ended.err
    assert ended.code == code, ended.err
    assert ended.err.count("\n") == 1, ended.err
    assert ended.err.startswith(f"rappor {verb.split()[0]}: ")
    assert not re.search(r"\[?[Ee]rrno|\.part\b|\.\d{2,}\.|<.*object at", ended.err), ended.err
    assert len(ended.err) < 500
    if name is not None:
        assert str(name) in ended.err, ended.err


def test_every_verb_and_every_file_argument_has_a_row() -> None:
    assert {verb for verb, _ in leaves()} == set(ROWS)
    assert {verb: file_arguments(verb, parser) for verb, parser in leaves()} == {
        verb: set(row.files) for verb, row in ROWS.items()
    }


@pytest.mark.usefixtures("unstarted")
@pytest.mark.parametrize(("verb", "argument", "fault"), list(cases()))
def test_a_wrong_file_is_named_in_one_sentence(
    verb: str, argument: str, fault: str, place: Path, tmp_path: Path
) -> None:
    bad = make_fault(fault, verb, ROWS[verb].files[argument], tmp_path)
    before = snapshot(tmp_path)
    ended = run(command(verb, argument, place, tmp_path, bad))
    check(ended, verb, 3, bad)
    assert ended.out == ""
    assert snapshot(tmp_path) == before


PRINTING = [verb for verb, row in ROWS.items() if row.prints and not row.serves]


@pytest.mark.parametrize(
    "fault",
    ["full", *(pytest.param(fault, marks=pytest.mark.long) for fault in ("closed pipe", "closed"))],
)
@pytest.mark.parametrize("verb", PRINTING)
def test_standard_output_that_cannot_be_written_is_named(
    verb: str, fault: str, place: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(place, tmp_path / "place")
    with unwritable(fault) as stdout:
        ended = run(command(verb, None, copy, tmp_path, ""), stdout)
    said = [line for line in ended.err.splitlines() if line.startswith("rappor ")]
    check(Ended(ended.code, "", f"{said[-1]}\n"), verb, 1, "standard output: ")
    assert len(said) == 1


@contextmanager
def unwritable(fault: str) -> Iterator[io.TextIOBase]:
    """A stream on a full disk, on a pipe that nobody reads, or one that is closed."""
    if fault == "closed":
        yield ClosedOutput()
        return
    if fault == "full":
        number = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, number = os.pipe()
        os.close(reading)
    stream = open(number, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - it cannot flush
    try:
        yield stream
    finally:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        stream.close()
        os.close(number)


class Interrupting(io.TextIOBase):
    """Standard output during whose first line Ctrl-C is pressed."""

    encoding = "utf-8"

    def write(self, _text: str) -> int:
        raise KeyboardInterrupt

    @property
    def buffer(self) -> Interrupting:
        return self


@pytest.mark.parametrize("verb", PRINTING)
def test_an_interrupt_is_one_sentence_and_130(verb: str, place: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(place, tmp_path / "place")
    ended = run(command(verb, None, copy, tmp_path, ""), Interrupting())
    assert ended.err.splitlines()[-1] == (
        f"rappor {verb.split()[0]}: interrupted; no file is left half-written; run the command "
        "again to finish"
    )
    assert ended.code == 130


WRITING = [
    (verb, argument)
    for verb, row in ROWS.items()
    for argument, file in row.files.items()
    if file.role in ("output", "changed") and verb != "backup"  # which has a writer of its own
]


@pytest.mark.parametrize(("verb", "argument"), WRITING)
def test_an_interrupt_while_a_file_is_written_leaves_the_file_of_before(
    verb: str, argument: str, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: Path) -> None:
        raise KeyboardInterrupt

    file = ROWS[verb].files[argument]
    target = tmp_path / file.good
    before = b"a run before made this\n"
    if file.role == "changed":
        before = (place / file.good).read_bytes()
    target.write_bytes(before)
    words = command(verb, argument, place, tmp_path, target)
    force = ["--force"] if (verb, argument, "exists") in set(cases()) else []
    monkeypatch.setattr("rappor.files._sync", interrupt)
    ended = run([*words, *force])
    assert (ended.code, ended.out) == (130, "")
    assert snapshot(tmp_path) == {target.name: before}


def test_ctrl_c_ends_a_real_process_with_one_sentence(place: Path, tmp_path: Path) -> None:
    words = command("simulate", None, place, tmp_path, "")
    words[words.index("100")] = "1e9"  # far more than are ever made
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    drafts = tmp_path / "simulated"
    wait_for(lambda: drafts.exists() and list(drafts.iterdir()), "the first file", process=process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out) == (130, b"")
    assert err.decode().startswith("rappor simulate: interrupted; ")
    assert err.count(b"\n") == 1
    assert not list(drafts.iterdir())


ALONE = ("unshare", "--user", "--map-root-user", "--mount")
# Mounts a file system that only this process sees, puts the inputs on it, makes it read-only, runs
# each command in this process, and prints how they ended.
SCRIPT = """
import json, shutil, subprocess, sys
disk, place, tests, commands = sys.argv[1:]
sys.path.insert(0, tests)
from support.fault_table import run
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", disk], check=True)
shutil.copytree(place, disk, dirs_exist_ok=True)
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
print(json.dumps([run(words) for words in json.loads(commands)]))
"""


@pytest.mark.long
def test_a_read_only_disk_is_named_in_one_sentence(place: Path, tmp_path: Path) -> None:
    disk, new = tmp_path / "disk", tmp_path / "new"
    disk.mkdir()
    new.mkdir()
    tried = {
        (verb, argument): disk / (f"new-{file.good}" if file.role in WRITTEN else file.good)
        for verb, row in ROWS.items()
        for argument, file in row.files.items()
        if file.role in {*WRITTEN, "changed"}
        or (verb, argument) == ("collection retire", "collections")
        or (argument == "data" and verb not in READERS and not row.serves)
    }
    words = [command(*case, place, new, bad) for case, bad in tried.items()]
    tests = Path(__file__).parents[1]
    ended = subprocess.run(
        [*ALONE, sys.executable, "-c", SCRIPT, disk, place, tests, json.dumps(words)],
        capture_output=True,
        env=environment(),
        timeout=LIMIT,
        check=False,
    )
    if ended.returncode and b"unshare" in ended.stderr + b"mount" * (
        shutil.which("unshare") is None
    ):
        pytest.skip("no file system can be mounted here")
    assert ended.returncode == 0, ended.stderr.decode()
    for (verb, _), bad, how in zip(tried, tried.values(), json.loads(ended.stdout), strict=True):
        check(Ended(*how), verb, 1, bad)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """All files with their contents, without the locks that reading a store leaves."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.suffix != ".lock"
    }
