"""What the command says where something was mistyped, cannot be, or cannot be shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from rappor.cli.output import showable
from support.command import rappor

PLAN = ("plan", "--epsilon-one", "1", "--reports", "1e6")
ONE_BIT = ("--k", "1", "--h", "1", "--m", "1", "--f", ".5", "--p", ".5", "--q", ".75")
SIMULATE = ("simulate", "--population", "exponential", "--preset", "exponential", "--seed", "7")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("paln",), 2, "invalid choice: 'paln' (did you mean plan?)"),
        (("zzz",), 2, "invalid choice: 'zzz' (choose from privacy, plan, "),
        (("privacy", "--preset", "window"), 3, "(did you mean windows?)"),
        (("privacy",), 2, "--params FILE, --collection FILE, or --k ... --q"),
        (("privacy", "--preset", "windows", "--reports", "9"), 2, "give both, or neither"),
        (("attack", "single", *ONE_BIT), 3, "its ε, by `rappor privacy`, bounds every attack"),
        (("decode",), 2, "--counts FILE; or name a collection: rappor decode NAME --data DIR"),
        (("reproduce", "normal"), 2, "--output DIR is required: give a folder for the files"),
        ((*PLAN, "--population", "expo"), 3, "exponential, uniform, zipf or a file; no file expo"),
        ((*PLAN, "--plot", "/nonexistent/x.svg"), 3, "/nonexistent/x.svg: its folder does not"),
        ((*PLAN, "--plot", f"{__file__}/x.svg"), 3, "/x.svg: its folder is a file"),
        ((*PLAN, "--plot", "~nobody-of-this-name/x.svg"), 3, "no such home directory"),
        (
            (*SIMULATE, "--kind", "boolean", "--reports", "10", "--output", "x"),
            2,
            "kind boolean needs a file",
        ),
    ],
)
def test_a_mistake_is_named_with_what_may_have_been_meant(
    arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = rappor(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_more_clients_than_reports_are_noted(tmp_path: Path) -> None:
    done = rappor(*SIMULATE, "--reports", "100", "--clients", "1e3", "--output", tmp_path / "few")
    assert done.returncode == 0, done.stderr
    assert "note: more clients than reports: 900 of 1,000 do not report" in done.stderr


def test_the_truth_of_another_run_is_noted_and_one_table_is_printed(tmp_path: Path) -> None:
    for name, reports in (("a", "2e4"), ("b", "1e4")):
        done = rappor(*SIMULATE, "--reports", reports, "--output", tmp_path / name)
        assert done.returncode == 0, done.stderr
    decode = ("decode", "--counts", tmp_path / "a/counts.npz")
    decode = (*decode, "--candidates", tmp_path / "a/candidates.txt", "--truth")
    right, wrong = (rappor(*decode, tmp_path / name / "truth.csv") for name in "ab")
    assert "another run" not in right.stderr
    assert "is the truth of 10,000 reports, but 20,000 were decoded" in wrong.stderr
    heads = [line for line in right.stdout.splitlines() if "95 % interval" in line]
    assert [line.split()[-2:] for line in heads] == [["SNR", "verdict"]]
    assert "Truth: " in right.stdout
    assert "20,000 reports, 100 candidates: " in right.stdout


def test_one_thing_is_not_called_many() -> None:
    found = rappor("privacy", "--preset", "windows", "--reports", "1e6", "--candidates", "1")
    assert "among 1 candidate (" in " ".join(found.stdout.split())


def test_an_estimate_above_all_is_explained() -> None:
    beyond = "estimates are not cut at 100 %"
    run = ("attack", "poisoning", "--trials", "20", "--forged")
    assert beyond in " ".join(rappor(*run, "1").stdout.split())
    assert beyond not in " ".join(rappor(*run, "0.01").stdout.split())


class _Ascii:
    encoding = "ascii"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("§2, “so”", 'section 2, "so"'),
        ("10⁻¹² and x²", "10^-12 and x^2"),
        ("ε∞ ≤ √N", "epsinf <= sqrt N"),
        ("né", "n?"),
    ],
)
def test_letters_that_a_terminal_lacks_are_written_out(text: str, plain: str) -> None:
    assert showable(text, _Ascii()) == plain  # type: ignore[arg-type]


@pytest.mark.long
def test_columns_stay_aligned_in_plain_letters() -> None:
    plain = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    listed = rappor("reproduce", env=plain).stdout.splitlines()
    assert listed[0].endswith("Figure 1, section 2")
    assert "?" not in "".join(listed)
    shown = rappor("privacy", "--preset", "windows", env=plain).stdout.splitlines()
    rows = [line for line in shown if "#" in line]
    assert len(rows) > 3
    assert "epsinf" in rows[-1]
    assert len({line.index("#") for line in rows}) == 1
