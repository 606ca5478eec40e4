"""Data folders that keep reports, and lakes of them."""

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import numpy as np

from rappor import Params
from rappor.aggregate.lake import LakePlace
from rappor.aggregate.lake.manifest import LakeFile, write_record
from rappor.aggregate.lake.rows import rows_of
from rappor.aggregate.lake.sealing import write_seal
from rappor.collection import Collection
from rappor.store import CellKey, Fold, Store, StoredCounts, open_store

PARAMS = Params(k=20, h=2, m=4, f=0.5, p=0.5, q=0.75)
WIDTH = 3
TODAY = date(2026, 11, 16)
CLOSED = "2026-10-20"
OPEN = "2026-11-15"


def collection(name: str = "homepage", days: int = 60, version: int = 1) -> Collection:
    return Collection(
        name,
        version,
        PARAMS,
        keep_reports_days=days,
        dimensions={"country": ("NZ", "CH")},
        expires=TODAY + timedelta(days=400),
    )


def packed(seed: int, number: int) -> bytes:
    """Random reports of 20 bits."""
    bits = np.random.default_rng(seed).integers(0, 2**20, number)
    return b"".join(int(each).to_bytes(WIDTH, "little") for each in bits)


def fold(cell: CellKey, cohort: int, reports: bytes) -> Fold:
    rows = np.frombuffer(reports, np.uint8).reshape(-1, WIDTH)
    ones = np.unpackbits(rows, axis=1, count=20, bitorder="little").sum(axis=0).astype(np.int64)
    return Fold(cell, cohort, PARAMS.digest, len(rows), ones, reports)


def add(store: Store, cell: CellKey, seed: int, number: int) -> None:
    """Kept reports of one cell, in all cohorts."""
    folds = [fold(cell, cohort, packed(4 * seed + cohort, number)) for cohort in range(PARAMS.m)]
    assert store.add([random.Random(seed).randbytes(16)], lambda _: folds, TODAY) == [True]


def keeping(folder: Path, cells: Mapping[tuple[str, str], int], days: int = 60) -> Path:
    """A data folder with this many reports in each cohort of cells, by period and country."""
    with closing(open_store(folder)) as store:
        store.save_definition(collection(days=days).to_toml(), actor="test")
        for seed, ((period, country), number) in enumerate(cells.items()):
            cell = CellKey.of("homepage", 1, period, [("country", country)])
            add(store, cell, seed, number)
    return folder


def numbers(cells: Sequence[StoredCounts]) -> list[tuple[object, ...]]:
    """Counts to compare."""
    return [
        (each.cell, each.params_digest, each.totals.tolist(), each.ones.tolist()) for each in cells
    ]


def stored(folder: Path, name: str = "homepage") -> list[tuple[object, ...]]:
    with closing(open_store(folder, read_only=True)) as store:
        return numbers(store.counts(name))


def many_files(place: LakePlace, files: int, reports: int = 5) -> list[LakeFile]:
    """A lake with a file for each of this many days, without a store."""
    definition = collection(days=3650)
    made = []
    for number in range(files):
        day = date(2020, 1, 1) + timedelta(days=number)
        cell = CellKey.of("homepage", 1, str(day), [("country", "NZ")])
        rows = [
            row
            for cohort in range(PARAMS.m)
            for row in rows_of(cell, cohort, packed(number * 4 + cohort, reports), PARAMS.k)
        ]
        made += write_seal(place, rows, definition, PARAMS.digest)
    write_record(place, made)
    return made


def kept_reports(folder: str) -> None:
    """Write a data folder that keeps the reports of some days which are closed today."""
    today = datetime.now(UTC).date()
    expires = today + timedelta(days=300)
    kept = Collection("homepage", 1, PARAMS, keep_reports_days=365, expires=expires)
    with closing(open_store(folder)) as store:
        store.save_definition(kept.to_toml(), actor="test")
        for back in range(3):
            add(store, CellKey("homepage", 1, str(today - timedelta(days=20 + back))), back, 25)
