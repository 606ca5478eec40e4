"""No two looks at a page or a download differ by fewer than 50 reports, whatever is looked at."""

import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from rappor import Params
from rappor.collection import Collection, period_of
from rappor.collector.metrics import Metrics
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.ingest.watch import Sample as Figures
from rappor.dashboard.ingest.watch import Watch, parse
from rappor.dashboard.page_state import ResultReader
from rappor.dashboard.routes import PAGES
from rappor.dashboard.state import SavedResult
from rappor.store import CellKey, Fold, open_store
from rappor.store.released import STEP
from support.dashboard import NEXT_YEAR, TODAY, Sample
from support.dashboard_context import Browser, entered, made_context, until_over

NAME = "browser"
PERIOD = period_of("day", TODAY)
PARAMS = Params(k=4, h=1, m=2, f=0.25, p=0.35, q=0.65)
COLLECTION = Collection(
    NAME,
    1,
    PARAMS,
    kind="category",
    categories=("Chrome", "Edge", "Firefox", "Safari"),
    dimensions={"country": ("DE", "NZ")},
    period="day",
    owner="Browser team",
    expires=NEXT_YEAR,
)
QUERIES = ("anyway=1", "anyway=1&country=NZ", "anyway=1&country=DE")
# Change with every request of ours, or tell no figure: sessions, jobs, who did what, the machine.
OWN = {"static", "login", "job", "audit_csv", "results-chart"}
UNSTABLE = {"jobs", "accounts", "disk_free_bytes", "dashboard_bytes", "last_retention"}


class World:
    """A store, a collector's figures, and reports that come one by one."""

    def __init__(self, folder: Path, context: Context) -> None:
        self.context, self._metrics, self._folder = context, Metrics(), folder
        self._store = open_store(context.settings.data)
        context.watch = Watch("http://127.0.0.1:1", self._look, lambda: 1_794_830_400.0)
        context.watch.look()

    def _look(self, _: str, at: float) -> Figures:
        text = self._metrics.text(healthy=True, queue_batches=1, queue_bytes=64, data=self._folder)
        return parse(text.decode(), at)

    def arrive(self, country: str = "NZ", reports: int = 1) -> None:
        key = CellKey.of(NAME, 1, PERIOD, [("country", country)])
        folds = []
        for number in range(reports):
            ones = np.array([number % 3 == 0, True, number % 2 == 0, False], np.int64)
            folds.append(Fold(key, number % 2, PARAMS.digest, 1, ones))
            self._metrics.commit(0.004, 1, 0, 1)
        tokens = [os.urandom(16) for _ in folds]
        self._store.add(tokens, lambda new: [folds[each] for each in new], TODAY)
        self.context.watch.look()

    def close(self) -> None:
        self._store.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    sample = Sample(tmp_path)
    sample.define(COLLECTION)
    sample.store()
    with (
        made_context(tmp_path, sample=sample) as context,
        closing(World(tmp_path, context)) as world,
    ):
        yield world


def decode(browser: Browser) -> None:
    """Have everything decoded that pages show, by an analyst."""
    for query in QUERIES:
        for page in ("/decode", "/trends", "/diagnostics"):
            browser.post(f"/collections/{NAME}{page}?{query}", {})
    for job in browser.context.jobs.all():
        assert until_over(browser.context.jobs, job).state == "done"


def walk(browsers: dict[Role, Browser], thorough: bool) -> dict[str, str]:
    """What every route that can be read says to a role that may, without what is our own.

    Args:
        browsers: one for each role.
        thorough: ask as every role, and for pictures.
    """
    found = {}
    for page in PAGES:
        if "GET" not in page.methods or page.name in OWN:
            continue
        if not thorough and page.path.endswith((".png", ".svg")):
            continue
        asking = sorted(page.roles or ())
        for role in asking if thorough else asking[:1]:
            for query in QUERIES:
                address = f"{page.path.replace('{name}', NAME)}?{query}"
                found[f"{role} {address}"] = said(browsers[role], address)
    return found


def said(browser: Browser, address: str) -> str:
    answer = browser.get(address)
    kind = answer.headers.get("content-type", "")
    if "zip" in kind or "parquet" in kind or "png" in kind:
        return answer.body.hex()
    text = answer.text
    if "json" in kind:
        document = json.loads(text)
        if isinstance(document, dict):
            document = {name: each for name, each in document.items() if name not in UNSTABLE}
        return json.dumps(document)
    if "csv" in kind:
        text = re.sub(r'"disk_free_bytes","",[0-9]+', "", text)
    if "html" in kind:
        text = text.partition('<section class="block" id="jobs"')[0]  # of Ingest
        text = re.sub(r'name="csrf" value="[^"]*"', "", text)
        text = re.sub(r'<data value="[0-9]+">[^<]*</data> free', "", text)
        text = re.sub(r"[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?", "", text)  # when it was made
        text = re.sub(r"(decoded|Decoded)[^<]*(ago|now)", "", text)
    return text


@pytest.fixture
def browsers(world: World) -> dict[Role, Browser]:
    return {role: entered(world.context, role) for role in Role}


@pytest.mark.long
@pytest.mark.parametrize(
    "thorough",
    [False, pytest.param(True)],
)
def test_no_route_tells_any_role_of_fewer_than_50_arrivals(
    world: World, browsers: dict[Role, Browser], thorough: bool
) -> None:
    world.arrive("NZ", 2 * STEP)
    world.arrive("DE", 2 * STEP)
    decode(browsers[Role.ANALYST])
    before = walk(browsers, thorough)
    same(before, walk(browsers, thorough))  # else nothing below says anything
    world.arrive()
    decode(browsers[Role.ANALYST])
    same(before, walk(browsers, thorough))
    world.arrive("NZ", STEP - 2)
    world.arrive("DE", STEP - 1)
    decode(browsers[Role.ANALYST])
    told = changed(before, walk(browsers, thorough))
    assert told
    assert all("/ingest" in each for each in told)  # 98 reports of all cells together
    world.arrive()  # the fiftieth
    decode(browsers[Role.ANALYST])
    after = walk(browsers, thorough)
    moved = changed(before, after)
    assert any("/collections.json" in each for each in moved)
    assert any("google.zip" in each for each in moved)
    assert any("ingest.json" in each for each in moved)
    assert not any("country=DE" in each and f"/{NAME}.json" in each for each in moved)


def same(before: dict[str, str], after: dict[str, str]) -> None:
    told = changed(before, after)
    assert not told, "\n".join(told[:5])


def changed(before: dict[str, str], after: dict[str, str]) -> list[str]:
    """The addresses that say something else, each with where it begins to."""
    found = []
    for address, text in before.items():
        if after[address] != text:
            pairs = enumerate(zip(text, after[address], strict=False))
            at = next((at for at, (old, new) in pairs if old != new), 0)
            here = slice(max(at - 60, 0), at + 60)
            found.append(f"{address}: {text[here]!r} and then {after[address][here]!r}")
    return found


def test_a_new_cell_shows_nothing_before_its_first_50(
    world: World, browsers: dict[Role, Browser]
) -> None:
    viewer = browsers[Role.VIEWER]
    world.arrive("NZ", STEP - 1)
    (row,) = json.loads(viewer.get("/collections.json").body)["collections"]
    assert not row.get("reports")
    assert world.context.catalogue.values(NAME, 1, "country") == []
    world.arrive()
    (row,) = json.loads(viewer.get("/collections.json").body)["collections"]
    assert row["reports"] == STEP


def test_counts_of_downloads_around_each_arrival_are_equal_or_50_apart(
    world: World, browsers: dict[Role, Browser]
) -> None:
    states: list[tuple[int, ...]] = []
    totals: list[int] = []
    world.arrive("NZ", STEP - 2)
    for arrivals in (1, 1, 1, STEP - 3, 1, 1, 1):
        world.arrive("NZ", arrivals)
        world.arrive("DE")
        answer = browsers[Role.ANALYST].get(f"/collections/{NAME}.google.zip?anyway=1")
        (row,) = json.loads(browsers[Role.VIEWER].get("/collections.json").body)["collections"]
        totals.append(row.get("reports") or 0)
        states.append(tuple(counts_of(answer.body)) if answer.status_code == 200 else ())
    reports = [sum(state[:: PARAMS.k + 1]) for state in states]
    assert reports == totals
    assert sorted(set(reports)) == [0, STEP, 2 * STEP]
    assert len(set(states)) == 3


def counts_of(data: bytes) -> list[int]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        rows = csv.reader(io.StringIO(archive.read("counts.csv").decode()))
        return [int(cell) for row in rows for cell in row]


def test_what_was_released_outlives_the_process_and_the_rest_comes_at_the_close(
    world: World, tmp_path: Path
) -> None:
    world.arrive("NZ", STEP + 1)
    catalogue = world.context.catalogue
    assert catalogue.reports(NAME, 1) == STEP + 1
    world.arrive("NZ", STEP - 1)
    sample = Sample(tmp_path)
    sample.collections = {"-": COLLECTION}
    with made_context(tmp_path, sample=sample) as again:
        assert again.catalogue.reports(NAME, 1) == STEP + 1
        again.catalogue.today = lambda: TODAY + timedelta(days=16)
        assert again.catalogue.reports(NAME, 1) == 2 * STEP


def test_results_go_with_the_counts_that_they_were_made_of(world: World) -> None:
    state = world.context.state
    for kind in ("decode", "google", "trend", "draft"):
        about = {"collection": NAME} | ({"versions": [1]} if kind == "trend" else {"version": 1})
        state.save_result(kind, kind, about, b"")
    state.keep_results_of({(NAME, 1)})
    assert all(state.result(kind) for kind in ("decode", "google", "trend", "draft"))
    state.keep_results_of({(NAME, 2)})
    assert [state.result(kind) is None for kind in ("decode", "google", "trend")] == [True] * 3
    assert state.result("draft") is not None


def test_every_page_says_that_open_periods_are_shown_in_steps(
    browsers: dict[Role, Browser],
) -> None:
    words = "Counts of periods that are still open are shown in steps of at least 50 reports."
    for path in ("/", f"/collections/{NAME}", f"/collections/{NAME}/trends", "/ingest"):
        assert words in browsers[Role.OPERATOR].get(path).text


def test_two_results_of_one_second_are_told_apart() -> None:
    read = ResultReader(lambda _meta, table: table)
    made = datetime(2026, 11, 16, tzinfo=UTC)
    tables = [read(SavedResult("key", NAME, "trend", {}, each, made)) for each in (b"a", b"b")]
    assert tables == [b"a", b"b"]
