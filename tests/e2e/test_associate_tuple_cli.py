"""`rappor associate` on a collection of kind tuple: its counts in a file, and in a data folder."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

import rappor as package
from rappor import Params
from rappor.collection import Collection
from rappor.dashboard.settings import STATE_FILE
from rappor.dashboard.state import DashboardState
from rappor.errors import DecodeError
from rappor.simulate import tuples
from support.command import rappor
from support.dashboard import Sample
from support.joint_tables import dependent, tuple_views

VIEWS = tuple_views(("y0", "y1", "y2"))
VALUES = [f"x{number}" for number in range(4)]
PERIOD = "2026-11-02"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A data folder with one period of a tuple, and the same counts in a file."""
    folder = tmp_path_factory.mktemp("associate-tuple")
    made = Sample(folder)
    params = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)
    install = Collection(
        name="install", version=1, kind="tuple", params=params, fields=VIEWS.fields
    )
    single = Collection(name="page", version=1, kind="string", params=params)
    made.define(install)
    made.define(single)
    made.add(install, PERIOD, tuples(VIEWS.fields, dependent(4, 3)), 100_000)
    made.add(single, PERIOD, {"a": 1}, 1_000)
    counts = made.cells[0][1]
    made.store()
    counts.to_csv(folder / "counts.csv")
    counts.to_npz(folder / "counts.npz")
    (folder / "x.txt").write_text("\n".join(VALUES), encoding="utf-8")
    return made


def stored(place: Sample, *more: str | Path) -> tuple[str | Path, ...]:
    listed = ("--candidates", place.folder / "x.txt")
    return ("associate", "install", "--data", place.data, *listed, *more)


def test_a_data_folder_is_associated_as_the_library_does_it(place: Sample) -> None:
    done = rappor(*stored(place, "--json"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wanted = package.open(place.data).associate("install", (VALUES, None))
    assert found["names"] == ["x", "y"]
    assert found["method"] == "tuple"
    assert found["rows"][0]["share"] == wanted.rows[0].share
    assert wanted.title == f"install v1, {PERIOD}"
    assert PERIOD in wanted.notes[0]
    assert "One report tells both fields" in done.stderr


def test_the_newest_saved_list_is_taken_and_named(place: Sample, tmp_path: Path) -> None:
    """A command, and Python, say which list they took; a list that is given comes first."""
    data = tmp_path / "data"
    shutil.copytree(place.data, data)
    with closing(DashboardState(data / STATE_FILE, tmp_path)) as state:
        state.save_candidates("install", ["x0"], "analyst")
        state.save_candidates("install", VALUES, "analyst")
    said = "the candidates of x are version 2 of the list of install: 4 strings"
    done = rappor("associate", "install", "--data", data)
    assert (done.returncode, done.stdout) == (0, rappor(*stored(place)).stdout)
    assert f"note: {said}" in done.stderr
    assert said in package.open(data).associate("install").notes
    given = package.open(data).associate("install", {"x": place.folder / "x.txt"})
    assert said not in given.notes
    with pytest.raises(DecodeError, match="x holds strings, and the data folder has no list for"):
        package.open(place.data).associate("install")


@pytest.mark.parametrize("name", ["counts.csv", "counts.npz"])
def test_counts_in_a_file_give_the_same_table(place: Sample, name: str, tmp_path: Path) -> None:
    definition = place.definitions / "install-1.toml"
    given = ("--definition", definition, "--candidates", f"x={place.folder / 'x.txt'}")
    chart = tmp_path / "joint.svg"
    done = rappor("associate", place.folder / name, *given, "--plot", chart)
    assert done.returncode == 0, done.stderr
    printed = rappor(*stored(place))
    assert done.stdout.splitlines()[:12] == printed.stdout.splitlines()[:12]
    assert "x and y are associated" in done.stdout
    assert chart.read_text(encoding="utf-8").startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ("install", "--data", "{data}"),
            2,
            "the data folder has no list for it: give --candidates",
        ),
        (("page", "--data", "{data}"), 2, "page is of kind string: it holds one variable"),
        (("zork", "--data", "{data}"), 3, "zork"),
        (
            ("install", "--data", "{data}", "--candidates", "y={list}"),
            2,
            "y is category and needs no list",
        ),
        (
            ("install", "--data", "{data}", "--candidates", "{list}", "--variables", "x,z"),
            2,
            "--variables must be two of x, y",
        ),
        (("install", "--data", "{data}", "--schema", "s.csv"), 2, "--schema does not go with"),
        (("counts.csv", "--period", "2026-11-02"), 2, "--period goes with a collection"),
        (("install", "--data", "{data}", "--definition", "a.toml"), 2, "not both"),
    ],
)
def test_wrong_arguments_are_named_with_a_way_out(
    place: Sample, arguments: tuple[str, ...], code: int, words: str
) -> None:
    names = {"data": place.data, "list": place.folder / "x.txt"}
    done = rappor("associate", *(text.format(**names) for text in arguments))
    assert done.returncode == code
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_counts_of_another_collection_are_refused(place: Sample) -> None:
    text = (place.definitions / "install-1.toml").read_text(encoding="utf-8")
    other = place.folder / "other.toml"
    other.write_text(text.replace("k = 64", "k = 128"), encoding="utf-8")
    given = ("--definition", other, "--candidates", place.folder / "x.txt")
    done = rappor("associate", place.folder / "counts.npz", *given)
    assert done.returncode == 2
    assert "does not hold counts of install" in done.stderr


def test_decode_says_that_a_tuple_is_associated(place: Sample) -> None:
    done = rappor("decode", "install", "--data", place.data)
    assert done.returncode != 0
    assert "rappor associate" in done.stderr
