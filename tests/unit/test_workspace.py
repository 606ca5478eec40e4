"""rappor.open: one default view for Python, commands, pages and the demo; new minus old."""

import contextlib
import datetime
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rappor
from rappor.charts.numbers import show_finding
from rappor.cli.main import main
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.state import DashboardState
from rappor.decoding.saved_candidates import STATE_FILE
from rappor.demo import definitions
from rappor.demo.population import HIJACKER, candidates
from rappor.demo.results import decode_and_compare
from rappor.demo.truth import HeldValue, Truth
from rappor.errors import DecodeError, ParamsError
from rappor.simulate import counts as simulated_counts
from rappor.simulate import tuples
from rappor.store import CellKey, Store, open_store
from rappor.store.released import FILE_NAME, STEP, ReleasedCounts
from rappor.workspace import Workspace
from support.dashboard import TODAY, Sample, folds
from support.dashboard_context import Browser, made_context
from support.difference_rows import file_row
from support.waiting import wait_for

LISTED = candidates()
DAYS = [str(TODAY - datetime.timedelta(days=back)) for back in (2, 1, 0)]
SHARES: dict[str, dict[str, float]] = {
    "homepage": {HIJACKER: 0.2, LISTED[0]: 0.5, LISTED[1]: 0.3},
    "theme": {"light": 0.5, "dark": 0.3, "as the system": 0.2},
}


def sizes(name: str, day: str) -> dict[str, int]:
    """Reports by country: today has too few."""
    if day == DAYS[-1]:
        return {"NZ": 900, "AU": 700}
    return {"NZ": 40_000, "AU": 60_000} if name == "homepage" else {"NZ": 20_000, "AU": 20_000}


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    """The demo's collections, with enough reports on all days but today."""
    made = Sample(tmp_path_factory.mktemp("workspace"))
    for collection in definitions.definitions(100_000, TODAY):
        made.define(collection)
        shares = SHARES.get(collection.name)
        if collection.fields is not None:
            shares = tuples(
                collection.fields, {(HIJACKER, "bundle"): 0.2, (LISTED[0], "store"): 0.8}
            )
        if shares is None and collection.ranges is not None:
            shares = dict.fromkeys(collection.ranges.labels, 1.0)
        for place, day in enumerate(DAYS):
            for number, (country, reports) in enumerate(sizes(collection.name, day).items()):
                pairs = [("country", country)]
                seed = 10 * place + number
                made.add(collection, day, shares or {}, reports, pairs, seed=seed)
    made.store()
    made.candidates("homepage", LISTED)
    return made


@pytest.fixture(scope="module")
def data(sample: Sample) -> Workspace:
    return rappor.open(sample.data)


def said(*arguments: object) -> Any:
    """What the command prints, as JSON."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(printed.getvalue())


def page(sample: Sample, folder: Path, address: str) -> Any:
    """What a page shows, as JSON."""
    with made_context(folder, sample=sample) as context:
        browser = Browser(context)
        browser.log_in(Role.ANALYST)
        shown = browser.get(f"/collections/{address}")
        assert shown.status_code == 200, shown.text
        wait_for(lambda: all(job.over for job in context.jobs.all()))
        path, question, query = address.partition("?")
        return json.loads(browser.get(f"/collections/{path}.json{question}{query}").text)


@pytest.mark.slow
def test_command_python_page_and_demo_show_the_same_periods_and_numbers(
    sample: Sample, data: Workspace, tmp_path: Path
) -> None:
    listed = sample.definitions / "homepage.candidates.txt"
    command = said("decode", "homepage", "--data", sample.data, "--candidates", listed, "--all")
    python = data.decode("homepage", LISTED)
    shown = page(sample, tmp_path, "homepage")
    truth = Truth()
    for name in ("homepage", "theme", "start-time", "install"):
        truth.add(HeldValue(name, DAYS[1], "NZ", HIJACKER))
    demo = decode_and_compare(sample.data, truth, seed=1)
    assert command["periods"] == shown["periods"] == [demo.period] == [DAYS[1]]
    assert python.notes[0] == (
        f"homepage v1, {DAYS[1]}: of 3 periods, the latest with enough reports"
    )
    assert python.reports == command["reports"] == shown["reports"] == demo.homepages.reports
    assert command["rows"] == shown["rows"]
    numbers = [(row.string, row.estimate, row.p_value) for row in python.rows]
    assert numbers == [(row["string"], row["estimate"], row["p_value"]) for row in shown["rows"]]
    assert numbers == [(row.string, row.estimate, row.p_value) for row in demo.homepages.rows]
    assert python.checks == demo.homepages.checks


def test_reports_that_pages_do_not_show_yet_are_not_decoded_by_a_command_either(
    sample: Sample, tmp_path: Path
) -> None:
    folder = Sample(tmp_path / "s")
    collection = Collection.read(sample.definitions / "theme-1.toml")
    folder.define(collection)
    folder.add(collection, DAYS[2], SHARES["theme"], 20_000, [("country", "NZ")])
    folder.store()
    before = page(folder, tmp_path / "c", "theme")  # a page releases what there is
    folder.define(collection)
    folder.add(collection, DAYS[2], SHARES["theme"], STEP - 1, [("country", "NZ")])
    folder.add(collection, DAYS[2], SHARES["theme"], STEP - 1, [("country", "AU")])
    folder.store()
    command = said("decode", "theme", "--data", folder.data)
    assert command["reports"] == before["reports"] == 20_000
    assert command["rows"] == before["rows"] == page(folder, tmp_path / "d", "theme")["rows"]
    assert "98 reports are not shown yet" in command["notes"][1]
    exact = said("decode", "theme", "--data", folder.data, "--exact")
    assert exact["reports"] == rappor.open(folder.data, exact=True).decode("theme").reports
    assert exact["reports"] == 20_000 + 2 * (STEP - 1)
    assert not any("not shown yet" in note for note in exact["notes"])
    folder.define(collection)
    folder.add(collection, DAYS[2], SHARES["theme"], 1, [("country", "NZ")])
    folder.store()
    command = said("decode", "theme", "--data", folder.data)
    assert command["reports"] == 20_000 + STEP
    assert Catalogue(folder.data).reports("theme", 1) == 20_000 + STEP


def test_reports_too_few_for_any_page_are_decoded_with_a_note(tmp_path: Path) -> None:
    folder = Sample(tmp_path)
    collection = replace(definitions.definitions(1000, TODAY)[1], dimensions={})
    folder.define(collection)
    folder.add(collection, DAYS[2], SHARES["theme"], 30)
    folder.store()
    found = rappor.open(folder.data).decode("theme")
    assert found.reports == 30
    assert found.notes[0].endswith("the only period; it has too few reports")
    assert "pages show an open period from 50 reports" in found.notes[1]


def test_a_page_says_why_it_does_not_show_the_newest_period(sample: Sample, tmp_path: Path) -> None:
    said = f"{DAYS[1]} is the latest period with enough reports. {DAYS[2]} has too few so far."
    with made_context(tmp_path, sample=sample) as context:
        browser = Browser(context)
        browser.log_in(Role.ANALYST)
        shown = browser.get("/collections/theme").text
        assert said in shown
        assert f'data-usual="{DAYS[1]}"' in shown
        assert said not in browser.get(f"/collections/theme?to={DAYS[0]}").text
        newest = browser.get(f"/collections/theme?to={DAYS[2]}").text
        assert "1,600 so far" in newest
        assert said not in newest
        compared = browser.get(f"/collections/theme?to={DAYS[0]}&vs={DAYS[1]}")
        wait_for(lambda: all(job.over for job in context.jobs.all()))
        compared = browser.get(f"/collections/theme?to={DAYS[0]}&vs={DAYS[1]}")
        assert f"Differences are {DAYS[1]} minus {DAYS[0]}" in compared.text


def test_a_sum_is_asked_for(data: Workspace) -> None:
    every, part = (
        data.view("homepage", period=period) for period in ("all", f"{DAYS[0]}..{DAYS[1]}")
    )
    assert every.periods == tuple(DAYS)
    assert every.words.endswith("3 periods added up")
    assert part.periods == (DAYS[0], DAYS[1])
    assert part.reports == 200_000
    nz = data.view("homepage", dimensions={"country": "NZ"})
    assert (nz.periods, nz.reports, nz.where) == ((DAYS[1],), 40_000, f"{DAYS[1]}, country NZ")


def test_the_newest_version_with_reports_is_shown(tmp_path: Path) -> None:
    folder = Sample(tmp_path)
    first = replace(definitions.definitions(1000, TODAY)[1], dimensions={})
    folder.define(first)
    folder.define(replace(first, version=2))
    folder.add(first, DAYS[2], SHARES["theme"], 5_000)
    folder.store()
    opened = rappor.open(folder.data)
    assert opened.view("theme").collection.version == 1
    with pytest.raises(DecodeError, match="theme v2: it has no reports yet"):
        opened.view("theme", version=2)
    assert [opened.collection(name).version for name in opened.collections] == [2]


def test_a_difference_is_new_minus_old_whichever_is_named_first(data: Workspace) -> None:
    forward = data.compare("theme", period=DAYS[1], against=DAYS[0])
    backward = data.compare("theme", period=DAYS[0], against=DAYS[1])
    assert forward.names == backward.names == (DAYS[1], DAYS[0])
    assert list(forward.rows) == list(backward.rows)
    views = [data.view("theme", period=day).counts[0] for day in (DAYS[1], DAYS[0])]
    direct = rappor.compare(*views, list(definitions.THEMES))
    assert list(direct.rows) == list(forward.rows)
    assert data.compare("theme").names == (DAYS[1], DAYS[0])  # by default the period before
    assert forward.notes[0] == f"theme v1: {DAYS[1]} minus {DAYS[0]}"


def test_two_values_of_a_dimension_keep_their_order(data: Workspace) -> None:
    one = data.compare("theme", dimensions={"country": "NZ"}, against="country=AU")
    other = data.compare("theme", dimensions={"country": "AU"}, against="country=NZ")
    assert one.names == (f"{DAYS[1]}, country NZ", f"{DAYS[1]}, country AU")
    for row in one.rows:
        assert row.difference == -other.row(row.string).difference


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda data: data.view("other"), ParamsError, "no collection 'other'; it has: homepage"),
        (lambda data: data.view("theme", version=7), ParamsError, "no version 7"),
        (lambda data: data.view("theme", period="soon"), ParamsError, "a period must be a day"),
        (lambda data: data.view("theme", period="2026-02-01..2026-01-01"), ParamsError, "ends bef"),
        (lambda data: data.view("theme", period="2020-01-01"), DecodeError, "its periods are"),
        (lambda data: data.view("theme", dimensions={"os": "x"}), ParamsError, "no dimension 'os'"),
        (
            lambda data: data.view("theme", dimensions={"country": "XX"}),
            DecodeError,
            "no report has country XX there",
        ),
        (lambda data: data.decode("theme", ["light"]), DecodeError, "needs no candidates"),
        (lambda data: data.compare("theme", period=DAYS[0]), DecodeError, "no earlier period"),
        (lambda data: data.compare("theme", against=DAYS[1]), DecodeError, "reports in common"),
        (lambda data: data.compare("theme", against="country=AU"), DecodeError, "part of all"),
        (lambda data: data.compare("theme", by="os"), DecodeError, "can be split by country"),
        (lambda data: data.compare("theme", by="period"), DecodeError, "compare by a dimension"),
        (
            lambda data: data.compare("theme", by="country", dimensions={"country": "NZ"}),
            DecodeError,
            "NZ is one country: leave it out",
        ),
    ],
)
def test_what_cannot_be_shown_is_said(
    data: Workspace, call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call(data)


def test_a_view_of_the_store_is_what_its_next_release_shows(tmp_path: Path) -> None:
    collection = replace(definitions.definitions(1000, TODAY)[1], dimensions={})
    counts = simulated_counts(SHARES["theme"], collection.params, 60, seed=1, kind="category")
    with contextlib.closing(open_store(tmp_path)) as store:
        store.save_definition(collection.to_toml(), actor="test")
        key = CellKey.of("theme", 1, DAYS[2], ())
        released = ReleasedCounts(tmp_path)

        def arrive(store: Store) -> None:
            store.add([os.urandom(16)], lambda _: folds([(key, counts)]), TODAY)

        arrive(store)
        seen, left_out = released.as_shown(store, TODAY, "theme", 1)
        assert ([each.reports for each in seen], left_out) == ([60], {})
        assert not (tmp_path / FILE_NAME).exists()
        released.cells(store, store.cells(), TODAY)
        shown = released.counts(store, TODAY, "theme", 1)
        assert [each.ones.tolist() for each in shown] == [each.ones.tolist() for each in seen]


def save_lists(sample: Sample) -> None:
    """Save the first lists, as a dashboard does when it starts."""
    with contextlib.closing(DashboardState(sample.data / STATE_FILE, sample.definitions)) as state:
        state.save_first_lists()


def printed_by(*arguments: object) -> str:
    """All that a command prints, with its notes."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        assert main([*map(str, arguments)]) == 0
    return text.getvalue()


def printed(found: object) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print(found)
    return text.getvalue()


def test_print_gives_the_table_of_the_command_with_the_saved_list(
    sample: Sample, data: Workspace
) -> None:
    save_lists(sample)
    command = printed_by("decode", "homepage", "--data", sample.data)
    assert printed(data.decode("homepage")) == command
    note = f"note: the candidates are version 1 of the list of homepage: {len(LISTED)} strings"
    assert command.splitlines().count(note) == 1


def test_without_a_list_the_command_says_what_to_give(
    sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(sample.data, tmp_path / "data")
    for file in folder.glob(f"{STATE_FILE}*"):
        file.unlink()
    for verb in ("decode", "compare"):
        assert main([verb, "homepage", "--data", str(folder)]) == 2
        assert capsys.readouterr().err == (
            f"rappor {verb}: strings are decoded against a list, and the data folder has none for "
            "homepage: give --candidates or --map\n"
        )


@pytest.mark.slow
def test_what_changed_by_country_is_the_same_on_the_page_in_python_and_by_command(
    sample: Sample, data: Workspace, tmp_path: Path
) -> None:
    save_lists(sample)
    parts = data.compare("homepage", by="country", against=DAYS[0])
    assert repr(parts) == "<ComparedParts by country: AU, NZ>"
    assert {found.names for found in parts.values()} == {
        tuple(f"{day}, country {country}" for day in (DAYS[1], DAYS[0])) for country in parts
    }
    options = ("homepage", "--data", sample.data, "--by", "country", "--with", DAYS[0])
    command = said("compare", *options, "--all")
    assert (command["by"], list(command["results"])) == ("country", list(parts))
    shown = [line for line in printed(parts).splitlines() if not line.startswith("note: ")]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        main(["compare", *map(str, options)])
    assert shown == text.getvalue().splitlines()
    for number, (country, found) in enumerate(parts.items()):
        alone = data.compare("homepage", dimensions={"country": country}, against=DAYS[0])
        assert list(found.rows) == list(alone.rows)
        assert command["results"][country]["rows"] == [file_row(row) for row in found.rows]
        address = f"homepage?country={country}&vs={DAYS[0]}"
        document = page(sample, tmp_path / str(number), address)
        for row, share in zip(document["compared"]["rows"], document["rows"], strict=True):
            mine = found.row(row["string"])
            ends = (share["prop_low_95"] or 0.0, share["prop_high_95"])
            on_page = str(show_finding(share["proportion"], *ends, share["detected"]))
            assert found.shown_shares([share["string"]])[0][0] == on_page
            file = file_row(mine)
            assert mine.raw_difference == mine.share_one - mine.share_two
            for name in ("difference", "raw_difference", "side_only", "different"):
                assert row[name] == file[name]
            for name in ("low_95", "high_95", "p_value"):
                assert row[f"difference_{name}"] == file[name]


def test_changes_by_country_are_written_to_a_file_each(sample: Sample, tmp_path: Path) -> None:
    options = ("compare", "theme", "--data", sample.data, "--by", "country")
    printed_by(*options, "--output", tmp_path / "changes.csv")
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "changes.AU.csv",
        "changes.NZ.csv",
    ]
    assert main([*map(str, options), "--output", "-"]) == 2


def test_a_histogram_prints_as_a_table(data: Workspace, sample: Sample) -> None:
    found = data.decode("start-time")
    text = printed(found.histogram)
    command = printed_by("decode", "start-time", "--data", sample.data).splitlines()
    table = command[: command.index("") + 1]
    assert text.splitlines()[: len(table)] == table
    assert "quantile" in text
    assert max(map(len, text.splitlines())) < 130
    assert repr(found.histogram).startswith("<Histogram ")


def test_without_a_saved_list_the_error_says_what_to_give(sample: Sample, tmp_path: Path) -> None:
    folder = shutil.copytree(sample.data, tmp_path / "data")
    for file in folder.glob(f"{STATE_FILE}*"):
        file.unlink()
    with pytest.raises(DecodeError, match="no list for homepage: give a list, a file or a map"):
        rappor.open(folder).decode("homepage")


def test_a_folder_says_what_it_holds(data: Workspace) -> None:
    assert data.collections == ("homepage", "install", "start-time", "theme")
    assert data.collection("theme").kind == "category"
    assert data.periods("theme") == tuple(DAYS)
    assert data.dimensions("theme") == {"country": ("AU", "NZ")}
    (counts,) = data.counts("theme", period=DAYS[0], dimensions={"country": "NZ"})
    assert counts.reports == sizes("theme", DAYS[0])["NZ"]
    assert repr(data).endswith(": homepage, install, start-time, theme>")
    with pytest.raises(ParamsError, match="no collection 'other'; it has: homepage"):
        data.collection("other")


@pytest.mark.parametrize(("by", "values"), [("country", ["AU", "NZ"]), ("period", DAYS)])
def test_by_decodes_each_part_as_the_command_does(
    sample: Sample, data: Workspace, by: str, values: list[str]
) -> None:
    found = data.decode("theme", by=by)
    assert (list(found), len(found)) == (values, len(values))
    assert repr(found) == f"<DecodedParts by {by}: {', '.join(values)}>"
    command, python = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(command):
        main(["decode", "theme", "--data", str(sample.data), "--by", by])
    with contextlib.redirect_stdout(python):
        print(found)
    shown = [line for line in python.getvalue().splitlines() if not line.startswith("note: ")]
    assert shown == command.getvalue().splitlines()
    one = "dimensions" if by == "country" else "period"
    single = {"country": values[0]} if by == "country" else values[0]
    assert found[values[0]].reports == data.decode("theme", **{one: single}).reports


def test_export_writes_what_the_command_writes_and_is_recorded(
    sample: Sample, tmp_path: Path
) -> None:
    folder = shutil.copytree(sample.data, tmp_path / "data")
    opened = rappor.open(folder)
    file = tmp_path / "theme.csv"
    reports = opened.export("theme", file, period=DAYS[0])
    assert reports == sum(sizes("theme", DAYS[0]).values())
    other = tmp_path / "command.csv"
    options = ["--data", str(folder), "--period", DAYS[0], "--output", str(other)]
    assert main(["export", "theme", *options]) == 0
    assert file.read_bytes() == other.read_bytes()
    with contextlib.closing(open_store(folder, read_only=True)) as store:
        *_, mine, theirs = [entry for entry in store.audit_log() if entry.action == "export"]
    assert mine.actor == theirs.actor
    assert mine.detail == f"counts of theme v1, {DAYS[0]} to {DAYS[0]}, to theme.csv"
    with pytest.raises(ParamsError, match="force=True replaces it"):
        opened.export("theme", file)
    with pytest.raises(ParamsError, match=r"must end in \.csv, \.parquet"):
        opened.export("theme", tmp_path / "theme.npz", reports=True)
    with pytest.raises(DecodeError, match="keeps counts only"):
        opened.export("theme", tmp_path / "reports.csv", reports=True)
