"""Commands for decoded kinds on a collection of kind tuple: one sentence, or the right answer."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from rappor import Counts, Params
from rappor.collection import Collection
from rappor.simulate import tuples
from support.command import rappor
from support.dashboard import Sample
from support.joint_tables import dependent, tuple_views

VIEWS = tuple_views(("y0", "y1", "y2"))
PARAMS = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)
DAYS = ("2026-11-02", "2026-11-03")
SENTENCE = (
    "is of kind tuple, which is not decoded: use `rappor associate` (in Python rappor.associate) "
    "for a table of two fields"
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """A data folder with two days of a tuple and of a category, and files made from it."""
    made = Sample(tmp_path_factory.mktemp("tuple-commands"))
    install = Collection("install", 1, PARAMS, kind="tuple", fields=VIEWS.fields)
    theme = Collection(
        "theme", 1, Params(2, 1, 1, 0.25, 0.35, 0.65), kind="category", categories=("light", "dark")
    )
    for collection in (install, theme):
        made.define(collection)
    for seed, day in enumerate(DAYS):
        made.add(install, day, tuples(VIEWS.fields, dependent(4, 3)), 20_000, seed=seed)
        made.add(theme, day, {"light": 1, "dark": 3}, 20_000, seed=seed)
    made.cells[0][1].to_npz(made.folder / "old.npz")
    made.cells[2][1].to_npz(made.folder / "new.npz")
    made.store()
    (made.folder / "x.txt").write_text("x0\nx1\n", encoding="utf-8")
    return made


@pytest.mark.parametrize(
    "words",
    [
        ("decode", "install", "--data", "{data}"),
        ("decode", "install", "--data", "{data}", "--candidates", "{x}"),
        ("decode", "install", "--data", "{data}", "--by", "period"),
        ("compare", "install", "--data", "{data}"),
        ("compare", "install", "--data", "{data}", "--candidates", "{x}"),
    ],
)
def test_a_collection_is_refused_with_the_command_that_reads_it(
    place: Sample, words: tuple[str, ...]
) -> None:
    given = {"data": place.data, "x": place.folder / "x.txt"}
    done = rappor(*(word.format(**given) for word in words))
    assert done.returncode == 3
    assert done.stderr == f"rappor {words[0]}: install {SENTENCE}\n"


@pytest.mark.parametrize("listed", [False, True])
def test_counts_in_files_are_refused_likewise(place: Sample, listed: bool) -> None:
    more = ("--candidates", place.folder / "x.txt") if listed else ()
    for words in (
        ("decode", "--counts", place.folder / "old.npz"),
        ("compare", place.folder / "old.npz", place.folder / "new.npz"),
    ):
        done = rappor(*words, *more)
        assert done.returncode == 3, done.stderr
        assert "of kind tuple, which is not decoded: use `rappor associate`" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def jobs(place: Sample, collections: str) -> Path:
    file = place.folder / "jobs.toml"
    lines = ('data = "data"', 'output = "results"', "[[jobs]]", collections, 'periods = "all"')
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_a_run_of_all_collections_leaves_tuples_out(place: Sample) -> None:
    done = rappor("run", jobs(place, 'collections = "all"'), "--json")
    assert done.returncode == 0, done.stderr
    units = json.loads(done.stdout)["units"]
    assert {unit["collection"] for unit in units} == {"theme"}


def test_a_run_that_names_a_tuple_says_once_that_it_is_not_decoded(place: Sample) -> None:
    done = rappor("run", jobs(place, 'collection = "install"'))
    assert done.returncode == 1
    failed = [line for line in done.stderr.splitlines() if line.startswith("failed")]
    assert len(failed) == 1
    assert SENTENCE in failed[0]


def test_status_and_export_know_tuples(place: Sample, tmp_path: Path) -> None:
    done = rappor("status", "--data", place.data, "--json")
    assert done.returncode == 0, done.stderr
    kinds = {each["collection"]: each["kind"] for each in json.loads(done.stdout)["collections"]}
    assert kinds == {"install": "tuple", "theme": "category"}
    done = rappor("export", "install", "--data", place.data, "--output", tmp_path / "counts.npz")
    assert done.returncode == 0, done.stderr
    counts = Counts.from_npz(tmp_path / "counts.npz")
    assert counts.kind == "tuple"
    assert int(np.sum(counts.totals)) == 40_000
