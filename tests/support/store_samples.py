"""Small collections and folds to fill stores with."""

import datetime
import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rappor.collection import Collection
from rappor.params import Params
from rappor.store import CellKey, Fold, Store

PARAMS = Params(k=20, h=2, m=4, f=0.5, p=0.5, q=0.75)
WIDTH = 3  # bytes of 20 bits
DAY = datetime.date(2026, 11, 16)
PERIOD = "2026-11-16"

Folds = Callable[[Sequence[int]], Iterable[Fold]]


def collection(name: str = "homepage", version: int = 1, **fields: object) -> Collection:
    about: dict[str, object] = {
        "description": "the page that opens first",
        "owner": "team@example.org",
        "expires": datetime.date(2027, 11, 16),
        "dimensions": {"country": ("NZ", "CH"), "os": ("mac", "linux")},
    }
    return Collection(name, version, PARAMS, **(about | fields))  # type: ignore[arg-type]


def cell(
    period: str = PERIOD,
    country: str = "NZ",
    os: str = "mac",
    name: str = "homepage",
    version: int = 1,
) -> CellKey:
    return CellKey.of(name, version, period, [("country", country), ("os", os)])


def packed(reports: Sequence[int]) -> bytes:
    return b"".join(each.to_bytes(WIDTH, "little") for each in reports)


def fold(key: CellKey, cohort: int, reports: Sequence[int], keep: bool = False) -> Fold:
    """The fold of reports given as integers, bit i being bit i."""
    ones = np.array([sum(each >> bit & 1 for each in reports) for bit in range(PARAMS.k)])
    data = packed(reports) if keep else None
    return Fold(key, cohort, PARAMS.digest, len(reports), ones.astype(np.int64), data)


def random_folds(
    rng: random.Random, key: CellKey, most: int = 20, keep: bool = False
) -> list[Fold]:
    cohorts = rng.sample(range(PARAMS.m), rng.randint(1, PARAMS.m))
    return [
        fold(key, cohort, [rng.getrandbits(20) for _ in range(rng.randint(1, most))], keep)
        for cohort in cohorts
    ]


def always(folds: Iterable[Fold]) -> Folds:
    """What `Store.add` calls, for a single batch."""
    kept = list(folds)
    return lambda _: kept


def token(number: int) -> bytes:
    return number.to_bytes(16, "big")


def fill(store: Store, seed: int = 1, batches: int = 30, keep: bool = True) -> None:
    """Two collections, several cells, kept reports, tokens of two days, a file, an audit log."""
    rng = random.Random(seed)
    store.save_definition(collection(keep_reports_days=7 if keep else 0).to_toml(), actor="ann")
    store.save_definition(collection("other", 3).to_toml(), actor="ann")
    for number in range(batches):
        key = cell(rng.choice([PERIOD, "2026-11-15"]), rng.choice(["NZ", "CH", "other"]))
        if rng.random() < 0.3:
            folds = random_folds(rng, cell(name="other", version=3))
        else:
            folds = random_folds(rng, key, keep=keep)
        day = DAY - datetime.timedelta(days=number % 2)
        assert store.add([rng.randbytes(16)], always(folds), day) == [True]
    store.add_file(b"digest", random_folds(rng, cell()), actor="ann", detail="reports.csv")
    store.audit("ben", "export", "homepage")


def everything(store: Store) -> tuple[object, ...]:
    """All that a store tells, to compare two of them; kept reports in a fixed order."""
    names = sorted({each.collection for each in store.definitions()})
    counts = [
        (each.cell, each.params_digest, each.totals.tolist(), each.ones.tolist())
        for name in names
        for each in store.counts(name)
    ]
    reports = [
        (key, cohort, sorted(data[at : at + WIDTH] for at in range(0, len(data), WIDTH)))
        for name in names
        for key, cohort, data in store.reports(name)
    ]
    return store.cells(), store.definitions(), store.audit_log(), counts, reports
