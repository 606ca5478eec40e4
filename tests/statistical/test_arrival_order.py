"""Nothing on disk tells early reports of a cell from late ones (R19; SECURITY, "Shuffle").

The files of SQLite, and the rows of PostgreSQL in the order of their numbers.

Each test is of H0: every order of a cohort's kept reports is equally likely, at α = 1e-6. There are
3,000 early and 3,000 late reports, in six chunks. Against the order that this is about (late
reports in chunks of their own) the power is 1: χ² with 5 degrees of freedom is near 6,000 there,
and above 35.9 in one true store of a million. A tenth of the effect (chunks of 45 % and 55 % late
reports) is near 60, and is found in 97 of 100 stores.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rappor.store import open_store, report_order
from rappor.store.postgres import functions
from rappor.store.sqlite import page_layout, report_chunks
from support import store_samples as samples
from support.command import environment
from support.postgres import Server, a_server
from support.store_samples import DAY, WIDTH, always, cell, collection, fold

ALPHA = 1e-6
EACH = 3000  # early reports, and late ones
GROUP = 25  # reports in a commit

# Adds the reports from argv[2] on to argv[3], in commits of argv[4], to the store in argv[1].
_WRITER = """
import os, sys
from rappor.store import open_store
from support.store_samples import DAY, always, cell, fold
store = open_store(sys.argv[1])
first, last, group = map(int, sys.argv[2:])
for start in range(first, last, group):
    reports = list(range(start, min(start + group, last)))
    store.add([os.urandom(16)], always([fold(cell(), 0, reports, keep=True)]), DAY)
if first % 2:
    os._exit(9)  # as if killed
store.close()
"""


def writer(folder: Path, first: int, last: int) -> "subprocess.Popen[bytes]":
    arguments = [str(folder), str(first), str(last), str(GROUP)]
    python = {"PYTHONPATH": str(Path(samples.__file__).parents[1])}
    return subprocess.Popen([sys.executable, "-c", _WRITER, *arguments], env=environment(python))


def written(folder: Path, groups: list[range]) -> None:
    """Fill a store in this process, a group of reports after the other."""
    store = open_store(folder)
    store.save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
    for number, group in enumerate(groups):
        folds = always([fold(cell(), 0, list(group), keep=True)])
        store.add([samples.token(number)], folds, DAY)
    store.close()


def on_disk(folder: Path) -> list[NDArray[np.int64]]:
    """The numbers of the reports in each chunk, in the order in which they are in the file."""
    connection = sqlite3.connect(folder / "store.sqlite")
    found = []
    for size, data in connection.execute("SELECT size, data FROM reports ORDER BY id"):
        start = 0 if len(data) == size * WIDTH else page_layout.HIDDEN
        body = data[start : start + size * WIDTH]
        table = np.frombuffer(body, np.uint8).reshape(-1, WIDTH).astype(np.int64)
        found.append(table @ (1 << 8 * np.arange(WIDTH)))
    connection.close()
    return found


def p_by_chunk(found: list[NDArray[np.int64]]) -> float:
    """Whether chunks differ in how many late reports they have: χ²."""
    late = [int((chunk >= EACH).sum()) for chunk in found]
    table = [late, [len(chunk) - count for chunk, count in zip(found, late, strict=True)]]
    return float(stats.chi2_contingency(table).pvalue)


def p_by_place(found: list[NDArray[np.int64]]) -> float:
    """Whether late reports have other places within their chunks: Mann and Whitney's test."""
    places = np.concatenate([np.arange(len(chunk)) / len(chunk) for chunk in found])
    late = np.concatenate(found) >= EACH
    return float(stats.mannwhitneyu(places[late], places[~late]).pvalue)


def p_by_group(found: list[NDArray[np.int64]]) -> float:
    """Whether neighbours came in one commit more often than by chance: a binomial test."""
    same = sum(int((chunk[1:] // GROUP == chunk[:-1] // GROUP).sum()) for chunk in found)
    pairs = sum(len(chunk) - 1 for chunk in found)
    chance = (GROUP - 1) / (2 * EACH - 1)
    return float(stats.binomtest(same, pairs, chance, alternative="greater").pvalue)


def p_by_group_and_chunk(found: list[NDArray[np.int64]]) -> float:
    """Whether reports of one commit are in one chunk more often than by chance: χ² over commits."""
    groups = 2 * EACH // GROUP
    table = np.array([np.bincount(chunk // GROUP, minlength=groups) for chunk in found])
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


TESTS = (p_by_chunk, p_by_place, p_by_group, p_by_group_and_chunk)


def check_is_whole(found: list[NDArray[np.int64]]) -> None:
    assert sorted(np.concatenate(found).tolist()) == list(range(2 * EACH))
    sizes = sorted(map(len, found))
    assert sizes[1:] == [report_order.FULL] * (len(sizes) - 1)  # no size tells of a batch


def in_groups(size: int) -> list[range]:
    return [range(start, start + size) for start in range(0, 2 * EACH, size)]


@pytest.mark.parametrize(
    "groups",
    [in_groups(GROUP), [range(EACH), range(EACH, 2 * EACH)]],
    ids=["small commits", "two large ones"],
)
def test_early_and_late_reports_are_mixed(tmp_path: Path, groups: list[range]) -> None:
    written(tmp_path, groups)
    found = on_disk(tmp_path)
    check_is_whole(found)
    assert [test(found) > ALPHA for test in TESTS] == [True] * len(TESTS)


@pytest.mark.long
def test_restarts_and_processes_leave_no_trace(tmp_path: Path) -> None:
    """The early ones by two processes one after the other, the late ones by two at a time, of which
    one is killed."""
    written(tmp_path, [])
    half = EACH // 2
    for first in (0, half):
        assert writer(tmp_path, first, first + half).wait(300) == 0
    killed = writer(tmp_path, EACH + half + 1, 2 * EACH)
    other = writer(tmp_path, EACH, EACH + half + 1 - 1)
    assert (killed.wait(300), other.wait(300)) == (9, 0)
    store = open_store(tmp_path)
    last = [EACH + half]
    store.add([samples.token(1)], always([fold(cell(), 0, last, keep=True)]), DAY)
    assert store.check() == []
    store.close()
    found = on_disk(tmp_path)
    check_is_whole(found)
    assert [test(found) > ALPHA for test in TESTS] == [True] * len(TESTS)


# PostgreSQL: the database itself mixes new reports into the old ones.

RESTARTS = 4  # of each of two collectors, whose commits alternate
_LAST = "v_place := v_total;"  # new reports behind all others
_EVEN = "v_place := v_word % (v_total + 1);"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with a_server() as made:
        yield made


def in_database(server: Server, planted: str = "") -> list[NDArray[np.int64]]:
    """The numbers of the reports in each chunk, after commits of several writers and restarts."""
    url = server.new_store()
    name = url.rpartition("/")[2]
    if planted:
        assert _EVEN in functions.KEEP_REPORTS
        text = functions.KEEP_REPORTS.replace(_EVEN, planted)
        server.sql(text.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"), name)
    groups = in_groups(GROUP)
    part = len(groups) // RESTARTS
    for start in range(0, len(groups), part):
        stores = [open_store(url), open_store(url)]
        if not start:
            stores[0].save_definition(collection(keep_reports_days=7).to_toml(), actor="ann")
        for number, group in enumerate(groups[start : start + part], start):
            folds = always([fold(cell(), 0, list(group), keep=True)])
            stores[number % 2].add([samples.token(number)], folds, DAY)
        stores[0].close()
        stores[1]._session.close()  # type: ignore[attr-defined]  # as if killed
    rows = server.sql("SELECT data FROM rappor.reports ORDER BY slot, number", name)
    weights = 1 << 8 * np.arange(WIDTH)
    tables = [np.frombuffer(row[0], np.uint8).reshape(-1, WIDTH) for row in rows]  # type: ignore[call-overload]
    return [table.astype(np.int64) @ weights for table in tables]


@pytest.mark.long
def test_writers_and_restarts_leave_no_trace_in_a_database(server: Server) -> None:
    found = in_database(server)
    check_is_whole(found)
    assert [test(found) > ALPHA for test in TESTS] == [True] * len(TESTS)


@pytest.mark.long
def test_an_order_that_tells_is_rejected_in_a_database(server: Server) -> None:
    found = in_database(server, planted=_LAST)
    check_is_whole(found)
    assert p_by_chunk(found) < ALPHA


def at_the_end(total: int, wanted: int) -> NDArray[np.uint64]:
    """New reports behind all others."""
    return np.arange(total - wanted, total, dtype=np.uint64)


def in_the_last_chunk(total: int, wanted: int) -> NDArray[np.uint64]:
    """New reports mixed into a chunk until it is full, which was the rule once."""
    first = (total - wanted) // report_order.FULL * report_order.FULL
    return np.random.default_rng(total).permutation(np.arange(first, total))[:wanted].astype("u8")


def half_mixed(total: int, wanted: int) -> NDArray[np.uint64]:
    """New reports among the later half of all others."""
    first = (total - wanted) // 2
    return np.random.default_rng(total).permutation(np.arange(first, total))[:wanted].astype("u8")


@pytest.mark.parametrize("planted", [at_the_end, in_the_last_chunk, half_mixed])
def test_an_order_that_tells_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, planted: Callable[[int, int], object]
) -> None:
    monkeypatch.setattr(report_chunks, "places", planted)
    written(tmp_path, in_groups(GROUP))
    found = on_disk(tmp_path)
    check_is_whole(found)
    assert p_by_chunk(found) < ALPHA


def test_places_are_drawn_evenly() -> None:
    """Each place of 40 is taken equally often by 7 that are new, whichever of them: χ², and none
    of them twice. A draw that is off by a tenth at each place has χ² near 179, with 96 as the
    limit: it is found in 999 of 1,000 runs."""
    rounds, total, wanted = 2_000, 40, 7
    drawn = np.array([report_order.places(total, wanted) for _ in range(rounds)])
    assert all(len(set(row)) == wanted for row in drawn.tolist())
    for column in (drawn, drawn[:, 0], drawn[:, -1]):
        counts = np.bincount(column.ravel().astype(int), minlength=total)
        assert stats.chisquare(counts).pvalue > ALPHA
    whole = np.array([report_order.places(5, 5) for _ in range(rounds)])
    orders = np.unique(whole, axis=0, return_counts=True)[1]
    assert len(orders) == 120
    assert stats.chisquare(orders).pvalue > ALPHA
