"""An experiment is added by dropping a folder, and a folder that is not complete says so."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from rappor import experiments
from rappor.cli.main import main
from rappor.errors import ParamsError
from rappor.experiments import NAMES, load, names, new_folder
from rappor.experiments.reproduce import check_names
from rappor.experiments.template.experiment import EXPERIMENT as TEMPLATE
from support.outcomes import silent

ROOT = Path(__file__).parents[3]
NEW = "rappor reproduce --new two-peaks --experiments mine"
GUIDE = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for experiments; what is imported from it is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield tmp_path / "mine"
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("two_peaks", "odd"):
            del sys.modules[name]


@pytest.mark.parametrize("name", names())
def test_the_folder_of_an_experiment_is_complete(name: str) -> None:
    assert load(name).name == name
    stem = name.replace("-", "_")
    assert (Path(experiments.__file__).parent / stem / "__init__.py").exists()
    assert (Path(__file__).parent / f"test_{stem}.py").exists()
    assert f"| `{name}` |" in GUIDE


def test_the_template_is_no_experiment_of_the_paper_but_works() -> None:
    assert names()[: len(NAMES)] == NAMES
    assert "template" not in names()
    outcome = TEMPLATE.run(2, silent)
    check_names(outcome)
    assert outcome.comparisons[0].ours == "10 ± 0 (2 seeds)"


@pytest.mark.slow
def test_a_dropped_folder_is_found_and_written_like_the_others(folder: Path) -> None:
    file = new_folder("two-peaks", folder)
    assert file == folder / "two_peaks" / "experiment.py"
    assert names(folder) == (*names(), "two-peaks")
    short = file.read_text(encoding="utf-8").replace("200_000", "20_000")
    file.write_text(short, encoding="utf-8")
    out = folder.parent / "out"
    options = ["--experiments", str(folder), "--output", str(out), "--seeds", "2"]
    assert main(["reproduce", "two-peaks", *options]) == 0
    assert "Which strings come back?" in (out / "index.html").read_text(encoding="utf-8")
    assert {"found.png", "found.svg", "detected.csv"} <= {
        made.name for made in (out / "two-peaks").iterdir()
    }


@pytest.mark.slow
def test_the_population_of_a_file_takes_the_place_of_the_templates(folder: Path) -> None:
    """As the guide prints it, from any working directory."""
    programs = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    (shown,) = (program for program in programs if "read_population" in program)
    file = new_folder("two-peaks", folder)
    before, _, rest = file.read_text(encoding="utf-8").partition("FREQUENT = ")
    after = rest[rest.index("class SeedResult") :]
    file.write_text(f"{before}{shown}\n\n{after}", encoding="utf-8")
    lines = ["string,frequency", "b.example,30", "a.example,50", "c.example,15", "d.example,5"]
    file.with_name("population.csv").write_text("\n".join(lines), encoding="utf-8")
    outcome = load("two-peaks", folder).run(2, silent)
    (comparison,) = outcome.comparisons
    assert (comparison.what, comparison.ours) == (
        "strings of 5 % that are found, of 2",
        "2 ± 0 (2 seeds)",
    )
    assert "2 ± 0 (2 seeds) of 2" in comparison.why  # 15 % and 5 % are found too


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        ("", "experiment.py must define EXPERIMENT, an Experiment; got None"),
        ("EXPERIMENT = 3", "must define EXPERIMENT, an Experiment; got 3"),
        ("{}name='even', title='t', source='s', about='a', run=print)", "its name must be that"),
        ("{}name='odd', title='t', source='', about='a', run=print)", "source is empty: say it"),
    ],
)
def test_a_folder_that_is_not_complete_says_what_it_lacks(
    folder: Path, text: str, lacks: str
) -> None:
    start = "from rappor.experiments.experiment import Experiment\nEXPERIMENT = Experiment("
    (folder / "odd").mkdir(parents=True)
    (folder / "odd" / "experiment.py").write_text(text.format(start), encoding="utf-8")
    with pytest.raises(ParamsError, match=f"the experiment odd is not complete: .*{lacks}"):
        load("odd", folder)


def test_a_folder_with_the_name_of_another_package_is_refused(folder: Path) -> None:
    (folder / "numpy").mkdir(parents=True)
    (folder / "numpy" / "experiment.py").write_text("", encoding="utf-8")
    with pytest.raises(ParamsError, match="belongs to another package; rename the folder"):
        load("numpy", folder)


@pytest.mark.parametrize("name", ["Two", "two_peaks", "2", "a b", "../x", "normal", "template"])
def test_names_that_do_not_fit_are_refused(name: str, folder: Path) -> None:
    with pytest.raises(ParamsError, match=r"in small letters, such as two-peaks|choose another"):
        new_folder(name, folder)
    assert not folder.exists()


def test_a_missing_folder_has_a_way_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "all", "--experiments", str(folder), "--output", "x"]) == 3
    assert "no such folder of experiments, which --new NAME makes; check the path" in (
        capsys.readouterr().err
    )
    assert main(["reproduce", "--new", "two-peaks"]) == 2
    assert "--new needs --experiments DIR" in capsys.readouterr().err


def test_the_commands_of_the_guide_are_those_of_the_command() -> None:
    section = GUIDE.partition("## An experiment of your own")[2]
    commands = re.findall(r"^(rappor reproduce [^#\n]*)", section, re.MULTILINE)
    assert len(commands) == 3
    assert commands[0].split() == shlex.split(NEW)
