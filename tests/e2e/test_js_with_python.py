"""Reports of the JavaScript encoder and of the Python encoder in one store, decoded together.

Strings are decoded, tuples are associated.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, chi2

from rappor import Counts, Params, associate, decode
from rappor.aggregate.stored_counts import sum_cells
from rappor.collection import Collection
from rappor.mechanism import Field
from rappor.store import open_store
from rappor.wire import Batch, encode_batch
from support.collecting import (
    Client,
    Process,
    client_of,
    collector,
    day,
    gateway,
    write_collections,
)
from support.javascript_audit import BUGS, Auditor, auditing
from support.javascript_host import planted
from support.tuple_cases import shape_of

COLLECTION = Collection("homepage", 1, Params(k=64, h=2, m=4, f=0.25, p=0.1, q=0.9))
STRINGS = [f"site{number:02}.example" for number in range(40)]
WEIGHTS = 0.93 ** np.arange(40)
AT_ONCE = 5_000
FALSE_ALARM = 1e-6
COVERAGE = 0.93  # the least that docs/calibration.md allows of intervals of 95 %


CHANNELS = ("stable", "beta", "nightly")
PAGES = STRINGS[:6]
INSTALL = Collection(
    "install",
    1,
    Params(k=64, h=1, m=16, f=0.25, p=0.1, q=0.9),
    kind="tuple",
    fields=(Field("homepage", "string"), Field("channel", "category", categories=CHANNELS)),
)


def send_from_python(client: Client, collection: Collection, values: Sequence[object]) -> None:
    """One report of a new client for each value."""
    made = [collection.encoder(os.urandom(32)).encode(value) for value in values]
    batch = Batch.of(
        made,
        token=os.urandom(16),
        collection=collection.name,
        version=1,
        period=day(),
        k=collection.params.k,
    )
    assert client.send(encode_batch(batch)).status == 204


def send_from_javascript(
    auditor: Auditor, process: Process, key: str, collection: Collection, values: Sequence[object]
) -> None:
    """The same by Node.js: encoder, batch bytes and request."""
    views = collection.tuple_views
    request = {
        "crowd": {
            "params": collection.params.to_dict(),
            "collection": collection.name,
            "kind": collection.kind,
            **({} if views is None else shape_of(views, collection.params.m)),
        },
        "people": [(os.urandom(32).hex(), value) for value in values],
        "batch": {
            "address": f"http://127.0.0.1:{process.port}/v1/reports",
            "key": key,
            "token": os.urandom(16).hex(),
            "version": 1,
            "period": day(),
            "dimensions": [],
        },
    }
    assert auditor.node.ask(request) == 204


def collected(
    folder: Path, collection: Collection, values: Sequence[object], sources: Path | None = None
) -> Counts:
    """What a real collector counts of these values, every other one reported by JavaScript."""
    write_collections(folder, collection)
    key, options = gateway(folder)
    with (
        collector(folder, *options) as process,
        client_of(process, key) as client,
        auditing(sources) as auditor,
    ):
        for start in range(0, len(values), 2 * AT_ONCE):
            part = values[start : start + 2 * AT_ONCE]
            send_from_python(client, collection, part[::2])
            send_from_javascript(auditor, process, key, collection, part[1::2])
    with open_store(folder / "data", read_only=True) as store:
        (counts,) = sum_cells(store.counts(collection.name), collection)
    assert counts.reports == len(values)
    return counts


def passes(folder: Path, each: int, sources: Path | None = None) -> bool:
    """Whether that many reports of each encoder, decoded together, agree with the truth.

    Enough of the 40 intervals hold the true count, and the distances from it are not too large for
    the stated standard errors: each check fails in one of a million honest runs.
    """
    choose = np.random.default_rng(each)
    drawn = choose.choice(STRINGS, 2 * each, p=WEIGHTS / WEIGHTS.sum()).tolist()
    truth = Counter(drawn)
    counts = collected(folder, COLLECTION, drawn, sources)
    rows = decode(counts, STRINGS).rows
    assert len(rows) == len(STRINGS)
    covered = sum(low <= truth[row.string] <= high for row in rows for low, high in [row.interval])
    distances = [(row.estimate - truth[row.string]) / row.std_error for row in rows]
    return bool(
        covered >= binom.ppf(FALSE_ALARM, len(rows), COVERAGE)
        and chi2.sf(sum(distance**2 for distance in distances), len(rows)) > FALSE_ALARM
    )


SIZES = [
    pytest.param(50_000, marks=pytest.mark.long),
    pytest.param(200_000, marks=pytest.mark.soak),
]


@pytest.mark.parametrize("each", SIZES)
def test_intervals_of_both_encoders_together_cover_the_truth(tmp_path: Path, each: int) -> None:
    assert passes(tmp_path, each)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "each"),
    [
        pytest.param("p_and_q_swapped", 5_000, marks=pytest.mark.long),
        pytest.param("no_first_randomization", 20_000, marks=pytest.mark.long),
        pytest.param("f_instead_of_half_of_it", 20_000, marks=pytest.mark.long),
    ],
)
def test_a_bug_of_one_encoder_shows_in_what_is_decoded_together(
    tmp_path: Path, name: str, each: int
) -> None:
    bug = BUGS[name]
    sources = planted(tmp_path / "planted", bug.file, bug.old, bug.new)
    assert not passes(tmp_path / "data", each, sources)


def associates(folder: Path, each: int, sources: Path | None = None) -> bool:
    """Whether that many tuples of each encoder, associated together, agree with the truth.

    The distances of the listed pairs from what clients really hold fit the stated standard errors,
    and the one page that prefers another channel is found.
    """
    choose = np.random.default_rng(each)
    pages = choose.choice(len(PAGES), 2 * each)
    channels = np.where(pages == 0, 1, choose.choice(len(CHANNELS), 2 * each, p=[0.6, 0.3, 0.1]))
    pairs = list(zip(pages.tolist(), channels.tolist(), strict=True))
    values = [{"homepage": PAGES[page], "channel": CHANNELS[channel]} for page, channel in pairs]
    counts = collected(folder, INSTALL, values, sources)
    found = associate(counts, {"homepage": PAGES}, views=INSTALL.tuple_views)
    truth = Counter(pairs)
    cells = [
        (found.cell(page, channel), truth[row, column] / len(values))
        for row, page in enumerate(PAGES)
        for column, channel in enumerate(CHANNELS)
    ]
    distances = [(cell.share - share) / cell.std_error for cell, share in cells]
    fits = chi2.sf(sum(distance**2 for distance in distances), len(cells)) > FALSE_ALARM
    return bool(fits and found.cell(PAGES[0], "beta").associated)


@pytest.mark.slow
def test_tuples_of_both_encoders_are_associated_together(tmp_path: Path) -> None:
    assert associates(tmp_path, 3_000)


@pytest.mark.long
def test_a_view_that_one_encoder_writes_in_another_order_shows(tmp_path: Path) -> None:
    bug = "frame(chosen.map(", "frame([...chosen].reverse().map("
    sources = planted(tmp_path / "planted", "signal.js", *bug)
    assert not associates(tmp_path / "data", 3_000, sources)
