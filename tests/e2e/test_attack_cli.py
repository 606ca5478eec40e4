"""`rappor attack` as a person meets it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rappor import Params, privacy
from rappor.attack import ATTACKS, run
from rappor.attack.seen_fields import PUBLIC
from rappor.collection import Collection
from rappor.mechanism import Field
from support.command import rappor

QUICK = ("--trials", "50")


def document(*arguments: str) -> Any:
    done = rappor("attack", *arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


@pytest.mark.parametrize("arguments", [(), ("--list",)])
def test_the_list_has_a_line_for_each_attack(arguments: tuple[str, ...]) -> None:
    done = rappor("attack", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    first_words = [line.split()[0] for line in done.stdout.splitlines() if line]
    assert first_words[: len(ATTACKS)] == list(ATTACKS)
    listed = document("--list")["attacks"]
    assert [each["name"] for each in listed] == list(ATTACKS)
    assert listed[1]["settings"]["reports"] == 7


def test_an_attack_says_what_is_seen_done_found_and_meant() -> None:
    done = rappor("attack", "window", "--reports", "7", "--trials", "1e3", "--seed", "5")
    assert (done.returncode, done.stderr) == (0, "")
    found = run("window", Params.preset("windows"), reports=7, trials=1000, seed=5)
    text = " ".join(done.stdout.split())
    assert found.sees in text
    assert found.does in text
    assert found.meaning in text
    assert "accuracy 0.7297" in text
    assert f"{found.simulated:.4f} ± " in text
    assert "k = 128, h = 2, m = 8, f = 0.5" in text


def test_epsilon_is_never_shown_rounded_down() -> None:
    windows = Params.preset("windows")
    done = rappor("attack", "window", "--reports", "7", *QUICK)
    shown = float(done.stdout.split("ε_7 = ")[1].split(":")[0])
    assert 0 <= shown - privacy.epsilon_n(windows, 7) < 1e-3


def test_json_is_what_the_library_says() -> None:
    found = document("secrets", "--preset", "windows", "--secrets", "3", "--trials", "1e3")
    expected = run("secrets", Params.preset("windows"), secrets=3, trials=1000)
    assert found == json.loads(json.dumps(expected.to_dict()))
    assert found["exact"] == pytest.approx(0.966, abs=5e-4)


def test_parameters_are_given_as_everywhere_else() -> None:
    six = ("--k", "16", "--h", "1", "--m", "1", "--f", "0", "--p", ".25", "--q", ".75")
    found = document("unlimited", *six, *QUICK)
    assert found["params"] == Params(16, 1, 1, 0.0, 0.25, 0.75).to_dict()
    assert (found["exact"], found["bound"]["epsilon"]) == (1.0, "inf")


def test_all_runs_every_attack_and_passes_settings_to_those_that_have_them() -> None:
    found = document("all", "--frequency", ".2", "--reports", "3", *QUICK)["attacks"]
    assert [each["name"] for each in found] == list(ATTACKS)
    for each in found:
        if "frequency" in ATTACKS[each["name"]].settings:
            assert each["settings"]["frequency"] == 0.2
        if "reports" in ATTACKS[each["name"]].settings:
            assert each["settings"]["reports"] == 3


def test_attacks_on_a_tuple_say_that_the_view_is_public_and_what_it_hides(tmp_path: Path) -> None:
    fields = (Field("page", "string"), Field("beta", "boolean"))
    install = Collection("install", 1, Params.preset("windows"), kind="tuple", fields=fields)
    definition = tmp_path / "install.toml"
    definition.write_text(install.to_toml(), encoding="utf-8")
    found = document("all", "--collection", str(definition), "--reports", "3", *QUICK)["attacks"]
    assert [each["name"] for each in found] == list(ATTACKS)
    assert all(each["sees"].endswith(PUBLIC) for each in found)
    done = rappor("attack", "change", "--collection", definition, "--reports", "3", *QUICK)
    assert done.returncode == 0, done.stderr
    change = found[list(ATTACKS).index("change")]
    every, page, beta = (figure["exact"] for figure in change["figures"])
    assert page == every  # each view has the page
    assert beta == pytest.approx(0.75 * every + 0.25 * 0.5)  # 6 of 8 cohorts see both fields
    text = " ".join(done.stdout.split())
    assert PUBLIC in text
    assert f"balanced accuracy if only beta changes (6 of 8 cohorts see it) {beta:.4f}" in text
    assert "a change outside the view cannot be seen (50 %)" in text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("windw",), 2, "did you mean window?"),
        (
            ("nonsense-nonsense",),
            2,
            "unknown attack 'nonsense-nonsense'; see: rappor attack",
        ),
        (
            ("single", "--reports", "7"),
            2,
            "single does not take --reports; it takes --trials",
        ),
        (("fdr", "--frequency", "2"), 3, "frequency must be a number from 0 to 1, got 2.0"),
        (("fdr", "--frequency", "nan"), 3, "frequency must be a number from 0 to 1"),
        (("fdr", "--seed", "-1"), 2, "not a whole number of at least 0"),
        (("fdr", "--trials", "1"), 3, "trials must be a whole number from 2"),
        (("fdr", "--preset", "no"), 3, "preset must be one of"),
        (("change", "--reports", "1e6"), 3, "reports must be a whole number from 1 to 400"),
    ],
)
def test_mistakes_are_told_in_a_line(arguments: tuple[str, ...], code: int, message: str) -> None:
    done = rappor("attack", *arguments)
    assert done.returncode == code
    assert done.stdout == ""
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_a_percent_sign_stays_on_the_line_of_its_number() -> None:
    done = rappor("attack", "fdr", *QUICK)
    assert done.returncode == 0
    assert "90 %: a picked client" in done.stdout
    assert not any(line.startswith("%") for line in done.stdout.splitlines())


def test_a_terminal_without_unicode_gets_plain_letters() -> None:
    plain = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    done = rappor("attack", "unlimited", *QUICK, env=plain)
    assert done.returncode == 0
    assert "epsinf = 4.395" in done.stdout
    assert done.stdout.isascii()


def test_help_has_an_example_and_does_not_load_numpy() -> None:
    done = rappor("attack", "--help")
    assert done.returncode == 0
    assert "rappor attack linkage --clients 400" in " ".join(done.stdout.split())
    code = "import sys, rappor.cli.attack; print('numpy' in sys.modules, 'scipy' in sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300
    )
    assert loaded.stdout == "False False\n"
