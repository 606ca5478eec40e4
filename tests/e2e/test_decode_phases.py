"""Phases with their own p and q, decoded together: files, store and library say the same.

The clients of all phases are the same, and their reports share B'. That the intervals cover is
measured in tests/statistical/test_basic_coverage.py and by `make calibrate CALIBRATE_ARGS=--unseen`
(W7 to W12, W14 and W15).
"""

import datetime
import json
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rappor
from rappor import Counts, Params, Ranges
from rappor.cli.main import main
from rappor.collection import Collection, Phase
from rappor.decoding.exports import document
from rappor.store import CellKey, Fold, open_store

pytestmark = pytest.mark.long

RUNS = 5
CLIENTS = 4_000
FIRST = datetime.date(2026, 11, 2)
EDGES = (10, 20, 30)
KINDS: dict[str, tuple[list[float], dict[str, Any], list[str]]] = {
    # shares of the values, fields of the collection, options of the command
    "boolean": ([0.3], {}, []),
    "category": (
        [0.5, 0.3, 0.15, 0.05],
        {"categories": ("red", "green", "blue", "grey")},
        ["--categories", "red,green,blue,grey"],
    ),
    "bits": ([0.4, 0.3, 0.15, 0.05], {}, []),
    "ordinal": (
        [0.4, 0.3, 0.2, 0.1],
        {"ranges": Ranges(EDGES)},
        ["--edges", ",".join(map(str, EDGES))],
    ),
}


def drawn(kind: str, phases: int, run: int) -> list[Counts]:
    """Counts of each phase, in which the same clients report the same values."""
    shares = KINDS[kind][0]
    rng = np.random.default_rng([run, phases, len(kind)])
    truth = rng.multinomial(CLIENTS, [*shares, max(0.0, 1 - sum(shares))])[: len(shares)]
    memos = rng.binomial(truth, 0.75) + rng.binomial(CLIENTS - truth, 0.25)  # f = .5
    found = []
    for phase in range(phases):
        params = Params(len(shares), 1, 1, 0.5, 0.25 + 0.01 * phase, 0.75 - 0.01 * phase)
        ones = rng.binomial(memos, params.q) + rng.binomial(CLIENTS - memos, params.p)
        found.append(Counts(params, [CLIENTS], [ones], kind=kind, reports_per_client=1))
    return found


def period(phase: int) -> str:
    return str(FIRST + datetime.timedelta(days=phase))


def stored(folder: Path, kind: str, phases: list[Counts]) -> None:
    """A data folder with one day of reports for each phase of the schedule."""
    first, *later = (counts.params for counts in phases)
    collection = Collection(
        "scheduled",
        1,
        first,
        kind=kind,  # type: ignore[arg-type]
        description="phases that say less and less",
        owner="team@example.org",
        expires=datetime.date(2027, 11, 2),
        schedule=tuple(
            Phase(period(number), params.p, params.q) for number, params in enumerate(later, 1)
        ),
        **KINDS[kind][1],
    )
    with closing(open_store(folder)) as store:
        store.save_definition(collection.to_toml(), actor="test")
        folds = [
            Fold(
                CellKey.of("scheduled", 1, period(number), []),
                0,
                counts.params.digest,
                counts.reports,
                np.asarray(counts.ones[0], np.int64),
            )
            for number, counts in enumerate(phases)
        ]
        store.add_file(b"a" * 32, folds, actor="test", detail="phases")


@pytest.fixture
def decode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    def run(*arguments: str | Path) -> dict[str, Any]:
        monkeypatch.setattr(sys, "argv", ["rappor"])
        assert main(["decode", *map(str, arguments), "--json", "--all"]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run


@pytest.mark.parametrize("phases", [2, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_files_and_store_give_the_librarys_numbers(
    kind: str, phases: int, decode: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    fields, options = KINDS[kind][1:]
    for run in range(RUNS):
        tables = drawn(kind, phases, run)
        looked_for = fields.get("categories") or fields.get("ranges")
        library = rappor.decode(tables, looked_for)
        expected = json.loads(json.dumps(document(library, every=True)))
        files: list[str | Path] = []
        for number, counts in enumerate(tables):
            counts.to_npz(tmp_path / f"{run}-{number}.npz")
            files += ["--counts", tmp_path / f"{run}-{number}.npz"]
        stored(tmp_path / f"data{run}", kind, tables)
        from_files = decode(*files, *options)
        from_store = decode("scheduled", "--data", tmp_path / f"data{run}", "--period", "all")
        assert from_files["rows"] == expected["rows"]
        assert from_store["rows"] == expected["rows"]
        mass = "undetected_mass"
        assert from_files[mass] == from_store[mass] == expected[mass]
        # As many clients as there can be report in several tables: wider than without.
        alone = rappor.decode(tables, looked_for, overlap=None)
        assert (library.rows.std_error > alone.rows.std_error).all()
