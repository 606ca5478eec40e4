"""`rappor simulate`: what it refuses, its help, and its progress on a terminal."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from support.command import COMMAND, environment, rappor

START = ("--population", "exponential", "--reports", "1e4", "--preset", "exponential")
USAGE = [
    (("--power", "2"), "--power does not go with --population exponential"),
    (("--mean", "2"), "--mean does not go with --population exponential"),
    (("--steps",), "--steps goes with --format google"),
    (("--steps", "--format", "google", "--counts-only"), "--steps goes with --format google"),
    (("--kind", "category", "--dialect", "google"), "--dialect does not go with kind category"),
    (("--reports", "0"), "'0' is not a whole number of at least 1"),
    (("--absent", "-1"), "'-1' is not a whole number"),
    (("--values", "often"), "invalid choice"),
    (("--master", "local[2]"), "--master goes with --engine spark"),
    (("--engine", "spark", "--counts-only"), "leave --engine spark out"),
    (("--engine", "spark", "--format", "google"), "--engine spark writes Parquet only"),
]
INVALID = [
    (("--preset", "nonsense"), "preset must be one of"),
    (("--values", "changing"), "changing values need change"),
    (("--values", "distinct", "--reports-per-client", "50"), "cannot hold it that often"),
    (("--reports-per-client", "3"), "reports must be a multiple of reports_per_client"),
    (("--unlisted", "101"), "unlisted must be a whole number from 0 to 100"),
    (("--decay", "2"), "decay must be a number above 0 and at most 1"),
    (("--kind", "bits"), "kind bits has no list of values"),
    (("--kind", "category", "--absent", "100"), "200 values do not fit 128 bits"),
    (("--population", "."), ".: this is a folder; name a file"),
    (("--population", "none.csv"), "--population must be uniform, normal, exponential, zipf or a"),
    (("--output", "~no-such-user-at-all/x"), "no such home directory"),
]


@pytest.mark.parametrize(
    ("code", "more", "message"),
    [(2, *case) for case in USAGE] + [(3, *case) for case in INVALID],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_simulated_is_one_line_and_leaves_nothing(
    tmp_path: Path, code: int, more: tuple[str, ...], message: str
) -> None:
    target = tmp_path / "out"
    done = rappor("simulate", "--output", target, *START, *more)
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not target.exists()


def test_a_folder_that_is_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    done = rappor("simulate", "--output", tmp_path / "f", *START)
    assert done.returncode in (1, 3)
    assert str(tmp_path / "f") in done.stderr
    assert "Traceback" not in done.stderr


def test_help_has_an_example_and_fits_a_terminal() -> None:
    done = rappor("simulate", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert "rappor simulate --population exponential" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.long
def test_long_runs_show_how_far_they_are_on_a_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    narrow = ("--k", "8", "--h", "2", "--m", "16", "--f", "0.5", "--p", "0.5", "--q", "0.75")
    run = ("simulate", "--population", "uniform", "--reports", "4e6", "--format", "google", *narrow)
    command = [*COMMAND, *run, "--seed", "1", "--output", str(tmp_path / "a")]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=follower, env=environment({"TERM": "xterm"})
    ) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                data = os.read(leader, 4096)
            except OSError:
                break
            if not data:
                break
            seen += data
    os.close(leader)
    assert process.returncode == 0
    assert b"of 4,000,000 reports" in seen
