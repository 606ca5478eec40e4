"""Running experiments and writing their files: the registry, failures, merging, the command."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rappor.cli.main import main
from rappor.errors import ParamsError
from rappor.experiments import NAMES, load, names, reproduce
from rappor.experiments.experiment import Experiment, Figure, Outcome, Table
from rappor.experiments.reproduce import check_names
from rappor.experiments.summary import entry, merged
from support.fake_experiments import SPEC, an_experiment, an_outcome, done
from support.full_disk import full_disk
from support.outcomes import silent


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Experiment]:
    """Experiments that take the places of the real ones."""
    made: dict[str, Experiment] = {}
    monkeypatch.setattr(reproduce, "load", lambda name, _folder=None: made[name])
    return made


def test_the_registry_has_the_nine_experiments_in_the_order_of_the_paper() -> None:
    assert NAMES == (
        "life-of-a-report",
        "recall-precision",
        "learnable",
        "normal",
        "exponential",
        "windows",
        "chrome",
        "fdr",
        "posterior",
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_is_found_under_its_own_name(name: str) -> None:
    experiment = load(name)
    assert experiment.name == name
    assert experiment.title
    assert experiment.source
    assert experiment.about


def test_the_page_on_experiments_names_the_same_figures_and_tables_as_they_do() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reproduce.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([^|]+) \|", text, re.MULTILINE))
    assert set(rows) == set(names())
    assert tuple(rows)[: len(NAMES)] == NAMES
    for name, where in rows.items():
        assert re.findall(r"(?:Figure|Table) \d", where) == re.findall(
            r"(?:Figure|Table) \d", load(name).source
        )
    figures = [number for where in rows.values() for number in re.findall(r"Figure (\d)", where)]
    assert figures == [str(number) for number in range(1, 9)]  # the paper has eight, in this order


@pytest.mark.parametrize("name", ["windows", "chrome"])
def test_private_data_have_a_labelled_stand_in(name: str) -> None:
    assert load(name).stand_in


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ParamsError, match="did you mean normal"):
        load("normall")
    with pytest.raises(ParamsError, match="there are life-of-a-report"):
        load("zzz")


def test_files_of_an_experiment_are_written(tmp_path: Path, fakes: dict[str, Experiment]) -> None:
    fakes["fdr"] = an_experiment(an_outcome())
    assert reproduce.reproduce("fdr", tmp_path, 2, silent).failure is None
    names = {file.name for file in (tmp_path / "fdr").iterdir()}
    assert names == {
        "a-figure.png",
        "a-figure.svg",
        "a-figure-dark.svg",
        "a-table.csv",
        "index.html",
    }
    assert (tmp_path / "fdr" / "a-figure.png").read_bytes().startswith(b"\x89PNG")


def test_the_csv_has_all_rows_and_the_page_the_first(
    tmp_path: Path, fakes: dict[str, Experiment]
) -> None:
    fakes["fdr"] = an_experiment(an_outcome())
    reproduce.reproduce("fdr", tmp_path, 2, silent)
    with (tmp_path / "fdr" / "a-table.csv").open(newline="") as handle:
        assert len(list(csv.reader(handle))) == 41
    page = (tmp_path / "fdr" / "index.html").read_text(encoding="utf-8")
    assert page.count('<td class="number">') == 3
    assert "37 more rows" in page


def test_a_failed_experiment_is_shown_as_failed_with_its_message(
    tmp_path: Path, fakes: dict[str, Experiment]
) -> None:
    fakes["fdr"] = an_experiment(ZeroDivisionError("nothing there"))
    result = reproduce.reproduce("fdr", tmp_path, 2, silent)
    assert result.failure == "ZeroDivisionError: nothing there"
    for page in ("index.html", "fdr/index.html"):
        assert "nothing there" in (tmp_path / page).read_text(encoding="utf-8")
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert summary["experiments"]["fdr"]["failed"] == "ZeroDivisionError: nothing there"


@pytest.mark.parametrize(
    "broken",
    [
        Figure("a-figure", "", "", {"mark": {"type": "no such mark"}}),
        Figure("../up", "", "", SPEC),
        Figure("index", "", "", SPEC),
    ],
)
def test_a_figure_that_cannot_be_drawn_fails_its_experiment_alone(
    tmp_path: Path, fakes: dict[str, Experiment], broken: Figure
) -> None:
    fakes["fdr"] = an_experiment(Outcome((), (broken,), ()))
    fakes["posterior"] = an_experiment(an_outcome(), name="posterior")
    assert reproduce.reproduce("fdr", tmp_path, 2, silent).failure is not None
    assert reproduce.reproduce("posterior", tmp_path, 2, silent).failure is None
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert list(summary["experiments"]) == ["fdr", "posterior"]


def test_two_things_of_one_name_are_refused() -> None:
    table = Table("same", "", ("a",), ((1,),))
    with pytest.raises(ParamsError, match="same"):
        check_names(Outcome((), (), (table, table)))


def test_a_later_run_keeps_what_an_earlier_one_wrote(
    tmp_path: Path, fakes: dict[str, Experiment]
) -> None:
    fakes["posterior"] = an_experiment(an_outcome("earlier"), "earlier", "posterior")
    fakes["fdr"] = an_experiment(an_outcome("later"), "later")
    reproduce.reproduce("posterior", tmp_path, 2, silent)
    reproduce.reproduce("fdr", tmp_path, 2, silent)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert index.index("later") < index.index("earlier")  # the order of the paper


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["{", "[]", "3", "{}", '{"experiments": []}', '{"experiments": {"posterior": {"title": 1}}}'],
)
def test_a_damaged_summary_is_replaced(
    tmp_path: Path, fakes: dict[str, Experiment], text: str
) -> None:
    (tmp_path / "summary.json").write_text(text)
    fakes["fdr"] = an_experiment(an_outcome())
    reproduce.reproduce("fdr", tmp_path, 2, silent)
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    assert list(summary["experiments"]) == ["fdr"]


@pytest.mark.parametrize("change", [{"title": 1}, {"comparisons": [{}]}, {"seeds": "many"}])
def test_an_entry_that_is_not_ours_is_dropped(tmp_path: Path, change: dict[str, object]) -> None:
    whole = entry(done(an_outcome()))
    for kept, item in ((["posterior"], whole), ([], whole | change)):
        text = json.dumps({"experiments": {"posterior": item}})
        (tmp_path / "summary.json").write_text(text)
        assert list(merged(tmp_path, {})["experiments"]) == kept


@pytest.mark.parametrize("seeds", [0, 1, -3])
def test_fewer_than_two_seeds_are_refused(seeds: int) -> None:
    with pytest.raises(ParamsError, match="seeds"):
        reproduce.run("fdr", seeds, silent)


def test_the_command_goes_on_after_a_failure_and_returns_1(
    tmp_path: Path, fakes: dict[str, Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    fakes["fdr"] = an_experiment(ValueError("nothing there"))
    fakes["posterior"] = an_experiment(an_outcome(), name="posterior")
    assert main(["reproduce", "posterior", "fdr", "--output", str(tmp_path)]) == 1
    shown = capsys.readouterr()
    assert "FAILED: ValueError: nothing there" in shown.err
    assert re.search(r"^fdr +failed +", shown.out, re.MULTILINE)
    assert re.search(r"^posterior +1 agrees +", shown.out, re.MULTILINE)
    assert "Traceback" not in shown.err


def test_the_command_shows_the_traceback_when_asked(
    tmp_path: Path, fakes: dict[str, Experiment], capsys: pytest.CaptureFixture[str]
) -> None:
    fakes["fdr"] = an_experiment(ValueError("nothing there"))
    assert main(["reproduce", "fdr", "--output", str(tmp_path), "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_experiments_are_imported_only_when_asked_for() -> None:
    code = "import sys, rappor.experiments, rappor.cli.reproduce; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_on_a_full_disk_the_pages_of_the_run_before_stay_whole(
    tmp_path: Path, fakes: dict[str, Experiment]
) -> None:
    fakes["fdr"] = an_experiment(an_outcome())
    reproduce.reproduce("fdr", tmp_path, 2, silent)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with full_disk(), pytest.raises(OSError, match="large"):
        reproduce.reproduce("fdr", tmp_path, 2, silent)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_two_columns_of_one_name_are_refused() -> None:
    table = Table("points", "Points", ("recall", "sd", "precision", "sd"), ())
    with pytest.raises(ParamsError, match="each column of table points needs a name of its own"):
        check_names(Outcome((), (), (table,)))
