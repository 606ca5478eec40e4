"""`rappor plan` in a real process: what it prints, what it refuses, what it writes."""

import json
from pathlib import Path

import pytest

from rappor import Params
from rappor.privacy import epsilon_infinity, epsilon_one
from support.command import rappor

GOAL = ("--epsilon-one", "1.0743", "--epsilon-infinity", "4.3944", "--candidates", "200")
QUICK = ("--check", "0")


def test_json_has_the_plans_best_first_with_all_that_the_table_has() -> None:
    done = rappor("plan", *GOAL, "--reports", "1e6", "--json", *QUICK)
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert facts["request"]["reports"] == 10**6
    assert facts["request"]["solved"] == "frequency"
    assert facts["checked"] is None
    for each in facts["plans"]:
        params = Params.from_dict(each["params"])
        assert each["epsilon_one"] == epsilon_one(params) <= 1.0743
        assert each["epsilon_infinity"] == epsilon_infinity(params) <= 4.3944
        assert list(each["epsilon_n"]) == ["7", "30", "365"]
        assert list(each["detectable"]) == ["0.5", "0.8", "0.95"]
        assert {"family_wise", "fdr", "present"} == set(each["expected"])
        assert {"bytes_per_report", "cohort_size", "cautions", "kind"} < set(each)
    assert facts["plans"][0]["params"]["h"] == 1


def test_a_person_sees_the_numbers_to_use_and_whether_the_promise_holds() -> None:
    done = rappor("plan", *GOAL, "--reports", "1e5", "--check", "2")
    assert done.returncode == 0, done.stderr
    assert "Best plan:\n  --k " in done.stdout
    assert "Checked with 2 simulated collections." in done.stdout
    assert "which is" in done.stdout
    assert "agree" not in done.stdout
    assert "Caution (trackable-bits, §6.1)" in done.stdout
    flags = done.stdout.split("Best plan:\n  ")[1].split("\n")[0].split()
    assert rappor("privacy", *flags).returncode == 0


def test_reports_and_epsilon_are_solved_for() -> None:
    reports = rappor("plan", *GOAL, "--frequency", ".01", *QUICK)
    assert "Reports needed to detect 1 % of them: " in reports.stdout
    epsilon = rappor("plan", "--reports", "1e6", "--frequency", ".01", *QUICK)
    assert "Smallest ε1 to detect 1 % of them: " in epsilon.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon-one", "0", "--reports", "1e6"), "impossible"),
        (("--epsilon-one", "-1", "--reports", "1e6"), "impossible"),
        (("--epsilon-one", "1", "--reports", "0"), "it takes"),
        (("--epsilon-one", "1", "--reports", "100", "--frequency", "1e-9"), "1e-07 of a report"),
        (("--epsilon-one", "3", "--epsilon-infinity", "1", "--reports", "1e6"), "nearest"),
        (("--epsilon-one", ".1", "--reports", "1e4", "--frequency", ".01"), "Nearest: "),
        (("--reports", "1e6"), "give two of"),
        (("--epsilon-one", "1", "--reports", "1e6", "--values", "fast"), "change fast"),
        (("--epsilon-one", "1", "--reports", "1e6", "--population", "nowhere.csv"), "nowhere.csv"),
    ],
)
def test_the_impossible_is_one_line_and_exit_code_3(options: tuple[str, ...], words: str) -> None:
    done = rappor("plan", *options, *QUICK)
    assert (done.returncode, done.stdout) == (3, "")
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "options",
    [("--epsilon-one", "one"), ("--epsilon-one", "nan"), ("--n", "0"), ("--plot", "plan.txt")],
)
def test_wrong_options_are_usage_errors(options: tuple[str, str]) -> None:
    done = rappor("plan", "--reports", "1e6", "--frequency", ".01", *QUICK, *options)
    assert done.returncode == 2
    assert options[0] in done.stderr


def test_the_trade_off_is_drawn(tmp_path: Path) -> None:
    done = rappor("plan", *GOAL, "--reports", "1e6", *QUICK, "--plot", tmp_path / "plan.svg")
    assert done.returncode == 0
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")


def test_a_population_from_a_file_is_what_strings_found_are_counted_in(tmp_path: Path) -> None:
    (tmp_path / "sites.csv").write_text("string,frequency\na.org,6\nb.org,3\nc.org,1\n")
    asked = ("--epsilon-one", "1", "--reports", "1e6", "--candidates", "3", "--json", *QUICK)
    facts = json.loads(rappor("plan", *asked, "--population", tmp_path / "sites.csv").stdout)
    assert facts["plans"][0]["expected"]["present"] == 3
    assert facts["plans"][0]["expected"]["family_wise"] == pytest.approx(3, abs=0.01)


def test_a_one_time_plan_shows_the_epsilon_of_one_report_only() -> None:
    options = ("plan", "--epsilon-one", "1", "--reports", "1e6", "--one-time", *QUICK)
    done = rappor(*options)
    assert done.returncode == 0, done.stderr
    assert "ε of one report" in done.stdout
    assert "365 reports" not in done.stdout
    assert "∞" not in done.stdout
    assert json.loads(rappor(*options, "--json").stdout)["plans"][0]["epsilon_n"] == {}
    refused = rappor(*options, "--n", "7")
    assert (refused.returncode, "--n is about repeated reports" in refused.stderr) == (2, True)


def test_the_help_says_which_plan_comes_first() -> None:
    words = " ".join(rappor("plan", "--help").stdout.split())
    assert "the shortest report among those that detect within 1 % of the rarest string" in words
    assert "ranked by the rarest string" not in words


def test_no_row_of_the_table_detects_nothing() -> None:
    for reports in ("5000", "1e5"):
        done = rappor("plan", "--epsilon-one", "1", "--reports", reports, "--cells", "50", *QUICK)
        assert done.returncode == 0, done.stderr
        assert "nothing" not in done.stdout


def test_an_association_is_planned_as_a_tuple() -> None:
    given = ("--epsilon-one", "1.0743", "--epsilon-infinity", "4.3944")
    done = rappor("plan", "--associate", "20x2", *given, "--check", "2", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["kind"] == "tuple"
    assert facts["epsilon_one"] <= 1.0743
    assert facts["views"][0] == {"fields": ["first", "second"], "share": 0.8}
    assert facts["reports"] < facts["separate_reports"] / 20
    assert facts["checked"]["collections"] == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--associate", "fifty"), "must be two numbers such as 50x10"),
        (("--associate", "5x2", "--frequency", ".01"), "--frequency does not go with --associate"),
        (("--strength", ".1"), "--strength goes with --associate"),
    ],
)
def test_options_of_associations_are_not_mixed_with_others(
    more: tuple[str, ...], words: str
) -> None:
    done = rappor("plan", "--epsilon-one", "1", *more)
    assert done.returncode == 2
    assert words in done.stderr
