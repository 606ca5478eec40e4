"""A disk that fills up while a command writes: what was there before stays, nothing else does."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.collecting import today
from support.command import COMMAND, LIMIT, environment, rappor
from support.fault_table import READERS, ROWS, WRITTEN
from support.joint_tables import write_small_pairs

ALONE = ("unshare", "--user", "--map-root-user", "--mount")
PAGE = 4096  # bytes: a tmpfs gives room in these

# Mounts a small file system that only this process sees, copies the files of a run before into it,
# fills it up but for some room, runs a command, and prints what that did as JSON.
SCRIPT = """
import hashlib, json, os, pathlib, shutil, subprocess, sys
disk, before, room, *command = sys.argv[1:]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
shutil.copytree(before, disk, dirs_exist_ok=True)
filler = os.path.join(disk, "filler")
with open(filler, "wb", buffering=0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        file.truncate(os.path.getsize(filler) - int(room))
done = subprocess.run(command, capture_output=True, text=True)
os.remove(filler)
files = {
    str(file.relative_to(disk)): hashlib.sha256(file.read_bytes()).hexdigest()
    for file in pathlib.Path(disk).rglob("*")
    if file.is_file()
}
print(json.dumps({"code": done.returncode, "error": done.stderr, "files": files}))
"""


@dataclass(frozen=True)
class Case:
    """A command that writes to a disk.

    Attributes:
        command: its words; {disk} and {place} stand for the disk and the folder of inputs.
        old: the files that are on the disk before.
        prepare: commands that make the old files; without any, they hold a word.
        room: bytes that are free, too few for what the command writes.
        store: whether it writes to a database, whose files may change without changing its content.
    """

    command: str
    old: tuple[str, ...] = ()
    prepare: tuple[str, ...] = ()
    room: int = PAGE
    store: bool = False


DECODE = "decode --counts {place}/made/counts.npz --candidates {place}/made/candidates.txt --all"
COMPARE = (
    "compare {place}/made/counts.npz {place}/made/counts.npz "
    "--candidates {place}/made/candidates.txt --all"
)
EXPORT = "export homepage --data {place}/data"
AGGREGATE = "aggregate {place}/made/reports.parquet --preset chrome"
SIMULATE = "simulate --population exponential --strings 500 --preset chrome --reports 2e4 --seed"
ASSOCIATE = (
    "associate {place}/pairs/reports.csv --schema {place}/pairs/rappor-vars.csv "
    "--candidates {place}/pairs/domains.txt"
)
REPRODUCE = "reproduce life-of-a-report --seeds 2 --output {disk}/out"
CASES = {
    "aggregate to CSV": Case(f"{AGGREGATE} --output {{disk}}/counts.csv", ("counts.csv",)),
    "aggregate to npz": Case(f"{AGGREGATE} --output {{disk}}/counts.npz", ("counts.npz",)),
    "aggregate to Parquet": Case(
        f"{AGGREGATE} --output {{disk}}/counts.parquet", ("counts.parquet",)
    ),
    "candidates": Case(
        "candidates {place}/made/candidates.txt --preset chrome --output {disk}/map.csv",
        ("map.csv",),
    ),
    "decode to CSV": Case(f"{DECODE} --output {{disk}}/results.csv", ("results.csv",)),
    "decode to JSON": Case(f"{DECODE} --output {{disk}}/results.json", ("results.json",)),
    "decode to Parquet": Case(f"{DECODE} --output {{disk}}/results.parquet", ("results.parquet",)),
    "decode to a chart": Case(f"{DECODE} --plot {{disk}}/results.svg", ("results.svg",)),
    "compare to CSV": Case(f"{COMPARE} --output {{disk}}/differences.csv", ("differences.csv",)),
    "compare to Parquet": Case(
        f"{COMPARE} --output {{disk}}/differences.parquet", ("differences.parquet",)
    ),
    "plan to a chart": Case(
        "plan --epsilon-one 1 --reports 1e6 --check 0 --plot {disk}/plan.svg", ("plan.svg",)
    ),
    "simulate": Case(
        f"{SIMULATE} 2 --force --output {{disk}}/out",
        prepare=(f"{SIMULATE} 1 --output {{disk}}/out",),
    ),
    "simulate in google's format": Case(
        f"{SIMULATE} 2 --force --format google --counts-only --output {{disk}}/out",
        prepare=(f"{SIMULATE} 1 --format google --counts-only --output {{disk}}/out",),
    ),
    "reproduce": Case(REPRODUCE, prepare=(REPRODUCE,)),
    "collection new": Case(
        "collection new theme --categories light,dark --force --output {disk}/theme.toml",
        ("theme.toml",),
        room=0,
    ),
    "export counts": Case(f"{EXPORT} --force --output {{disk}}/counts.csv", ("counts.csv",)),
    "export reports to CSV": Case(
        f"{EXPORT} --force --reports --output {{disk}}/reports.csv", ("reports.csv",)
    ),
    "export reports to Parquet": Case(
        f"{EXPORT} --force --reports --output {{disk}}/reports.parquet", ("reports.parquet",)
    ),
    "backup": Case(
        "backup --force --data {place}/data --output {disk}/store.backup",
        prepare=("backup --data {place}/data --output {disk}/store.backup",),
    ),
    "restore": Case("restore {place}/store.backup --data {disk}/data"),
    "collect --new-key": Case(
        "collect --keys {disk}/keys.json --new-key second",
        prepare=("collect --keys {disk}/keys.json --new-key first",),
        room=0,
    ),
    "keys new": Case(
        "keys new second --keys {disk}/keys.json",
        prepare=("keys new first --keys {disk}/keys.json",),
        room=0,
    ),
    "keys new to a file": Case(
        "keys new second --keys {place}/keys.json --output {disk}/second.key", room=0
    ),
    "keys revoke": Case(
        "keys revoke first --keys {disk}/keys.json",
        prepare=("keys new first --keys {disk}/keys.json",),
        room=0,
    ),
    "encode --create-secret": Case(
        "encode --preset chrome --secret-file {disk}/secret --create-secret a.org", room=0
    ),
    "import": Case(
        "import {place}/made/reports.parquet --data {disk}/data --collection homepage",
        prepare=("restore {place}/store.backup --data {disk}/data",),
        room=0,
        store=True,
    ),
    "retain": Case(
        "retain --data {disk}/data --today 2100-01-01",
        prepare=("restore {place}/store.backup --data {disk}/data",),
        room=0,
        store=True,
    ),
    "collection retire, its files": Case(
        "collection retire homepage --data {place}/data --collections {disk}",
        prepare=("collection new homepage --preset chrome --output {disk}/homepage.toml",),
        room=0,
    ),
    "collection retire, its store": Case(
        "collection retire homepage --data {disk}/data --collections {place}/collections",
        prepare=("restore {place}/store.backup --data {disk}/data",),
        room=0,
        store=True,
    ),
    "access new": Case(
        "access new ada --role viewer --data {disk}/data",
        prepare=("restore {place}/store.backup --data {disk}/data",),
        room=0,
        store=True,
    ),
    "access link": Case(
        "access link ada --role viewer --data {disk}/data",
        prepare=("restore {place}/store.backup --data {disk}/data",),
        room=0,
        store=True,
    ),
    "access list": Case(
        "access list --data {disk}/data",
        prepare=("restore {place}/store.backup --data {disk}/data",),
        room=0,
        store=True,
    ),
    "access log": Case(
        "access log --data {disk}/data",
        prepare=("restore {place}/store.backup --data {disk}/data",),
        room=0,
        store=True,
    ),
    "access revoke": Case(
        "access revoke ada --data {disk}/data",
        prepare=(
            "restore {place}/store.backup --data {disk}/data",
            "access new ada --role viewer --data {disk}/data",
        ),
        room=0,
        store=True,
    ),
    "associate to CSV": Case(f"{ASSOCIATE} --output {{disk}}/joint.csv", ("joint.csv",), room=0),
    "associate, its pair counts": Case(
        f"{ASSOCIATE} --save {{disk}}/pairs.npz", ("pairs.npz",), room=0
    ),
    "collection export": Case(
        "collection export {place}/collections/homepage.toml --force --output {disk}/homepage.json",
        ("homepage.json",),
        room=0,
    ),
    "lake seal": Case("lake seal {disk}/lake --data {place}/data --open"),
    "demo": Case("demo --reports 1000 --no-serve --keep {disk}/demo", room=0, store=True),
}
# Their disks fill up in tests/e2e/test_collector_disk.py and test_dashboard_jobs.py.
SERVERS = {"collect", "serve", "dashboard"}


def test_every_verb_that_writes_has_a_case() -> None:
    writers = {
        verb
        for verb, row in ROWS.items()
        for argument, file in row.files.items()
        if file.role in {*WRITTEN, "changed"} or (argument == "data" and verb not in READERS)
    }
    commands = [f"{case.command} " for case in CASES.values()]
    assert {
        verb
        for verb in writers - SERVERS
        if not any(command.startswith(f"{verb} ") for command in commands)
    } == set()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that the commands read: a simulated collection, a store that holds it, its backup."""
    folder = tmp_path_factory.mktemp("place")
    run(f"{SIMULATE} 1 --output {folder}/made")
    (folder / "collections").mkdir()
    run(
        f"collection new homepage --preset chrome --keep-reports-days 7 "
        f"--output {folder}/collections/homepage.toml"
    )
    run(
        f"import {folder}/made/reports.parquet --data {folder}/data --collection homepage "
        f"--collections {folder}/collections --period {today()}"
    )
    write_small_pairs(folder / "pairs")
    run(f"keys new first --keys {folder}/keys.json")
    run(f"backup --data {folder}/data --output {folder}/store.backup")
    return folder


def run(command: str) -> None:
    done = rappor(*command.split())
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "name",
    [  # every fourth also in the quick tier
        name if place % 4 == 0 else pytest.param(name, marks=pytest.mark.long)
        for place, name in enumerate(CASES)
    ],
)
def test_a_full_disk_leaves_the_files_of_before(name: str, place: Path, tmp_path: Path) -> None:
    case = CASES[name]
    disk, before = tmp_path / "disk", tmp_path / "before"
    disk.mkdir()
    before.mkdir()
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*ALONE, sys.executable, "-c", SCRIPT, disk, before, "0", "true"],
            capture_output=True,
            check=False,
        ).returncode
    ):
        pytest.skip("no file system can be mounted here")
    for command in case.prepare:
        run(command.format(disk=before, place=place))
    for file in case.old:
        (before / file).write_text("a run before made this\n")
    command = case.command.format(disk=disk, place=place).split()
    done = subprocess.run(
        [*ALONE, sys.executable, "-c", SCRIPT, disk, before, str(case.room), *COMMAND, *command],
        capture_output=True,
        check=True,
        env=environment(),
        timeout=LIMIT,
    )
    outcome = json.loads(done.stdout)
    assert outcome["code"] == 1, outcome["error"]
    assert case.store or outcome["error"].count("\n") == 1
    assert outcome["error"].startswith(f"rappor {command[0]}: {disk}/")
    assert "no room on the disk" in outcome["error"]
    assert case.store or outcome["files"] == {
        str(file.relative_to(before)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in before.rglob("*")
        if file.is_file()
    }
