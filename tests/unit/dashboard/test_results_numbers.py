"""Results: what a page shows is what the command line says, to the last bit."""

import contextlib
import io
import json
import math
import re
import zipfile
from html.parser import HTMLParser
from io import BytesIO
from types import SimpleNamespace

import pytest

from rappor.aggregate.counts import Counts
from rappor.charts.numbers import show_count
from rappor.cli.main import main
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.query_reading import read_query
from rappor.dashboard.results.downloads import python_code, report_code
from rappor.dashboard.results.serialization import pack, unpack
from rappor.decoding.decode import decode
from rappor.params import Params
from support.dashboard import HIJACKER, PAGES, RARE, sample_folder, week
from support.dashboard_context import Browser, entered, made_context
from support.difference_rows import file_row
from support.waiting import wait_for


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return sample_folder(tmp_path_factory.mktemp("numbers"))


@pytest.fixture(scope="module")
def context(sample, tmp_path_factory):
    with made_context(tmp_path_factory.mktemp("context"), sample=sample) as made:
        yield made


@pytest.fixture(scope="module")
def analyst(context):
    browser = Browser(context)
    browser.log_in(Role.ANALYST)
    return browser


def opened(browser, path):
    """The page, once it is decoded."""
    page = browser.get(path)
    assert page.status_code == 200, page.text
    wait_for(lambda: all(job.over for job in browser.context.jobs.all()))
    page = browser.get(path)
    assert 'data-state="ready"' in page.text, page.text
    return page.text


class Values(HTMLParser):
    """The <data value>s of each row of the table."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.row, self.all = {}, None, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "tr" and "data-string" in given:
            self.row = self.rows.setdefault(given["data-string"], [])
        elif tag == "tfoot":
            self.row = self.rows.setdefault("tfoot", [])
        elif tag == "data":
            self.all.append(given["value"])
            if self.row is not None:
                self.row.append(float(given["value"]))

    def handle_endtag(self, tag):
        if tag == "tr":
            self.row = None


def said(*arguments):
    """What the command line prints, as JSON; in a process of its own in test_dashboard.py (e2e)."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*arguments, "--json", "--all"]) == 0
    return json.loads(printed.getvalue())


def told(sample, *arguments):
    return said("decode", *arguments, "--data", str(sample.data))


VIEWS = {
    "homepage": ("", []),
    "homepage range": (
        f"?from={week(3)}&correction=holm&alpha=0.01",
        ["--period", f"{week(3)}..{week(0)}", "--correction", "holm", "--alpha", "0.01"],
    ),
    "homepage lasso": ("?method=lasso", ["--method", "lasso"]),
    "browser": ("", []),
    "start-time": ("", []),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "view",
    [
        *(pytest.param(view, marks=pytest.mark.slow) for view in VIEWS if "lasso" not in view),
        pytest.param("homepage lasso", marks=pytest.mark.long),  # below as Python, in `make test`
    ],
)
def test_every_number_of_a_page_is_the_command_lines(view, sample, analyst):
    name, (query, options) = view.partition(" ")[0], VIEWS[view]
    given = ["--candidates", str(sample.definitions / "homepage.candidates.txt")]
    more = given if name == "homepage" else []
    expected = told(sample, name, *options, *more)
    title, *expected["notes"] = expected["notes"]
    assert title.startswith(f"{name} v")
    opened(analyst, f"/collections/{name}{query}")
    found = json.loads(analyst.get(f"/collections/{name}.json{query}").text)
    for key in expected:
        assert found[key] == expected[key], key
    sign = "&" if query else "?"
    page = Values(opened(analyst, f"/collections/{name}{query}{sign}show=all"))
    mass = expected["undetected_mass"]
    for row in expected["rows"]:
        n = expected["reports"]
        shown = page.rows[row["string"]]
        sized = row["detected"] and not row["presence_only"]
        if sized:
            low, high = row["prop_low_95"], row["prop_high_95"]
            assert shown[:3] == [row["proportion"], low, high]
            assert shown[3:6] == pytest.approx([row["estimate"], low * n, high * n])
            del shown[:6]
        else:  # an upper limit, as a share and as a count
            assert shown[0] == row["prop_high_95"]
            assert shown[1] == pytest.approx(row["prop_high_95"] * n)
            del shown[:2]
        assert (row["prop_low_95"] is None) == row["presence_only"]
        assert shown[:3] == [row["std_error"], row["p_value"], row["adjusted_p_value"]]
        assert shown[3] == row["snr"] == pytest.approx(row["raw_estimate"] / row["std_error"])
        forged = [row["forged_to_make_up"], row["forged_to_hide"]]
        assert shown[4:] == (forged if row["detected"] else [])
    assert any(row["detected"] for row in expected["rows"])
    if name != "start-time":
        names = ("proportion", "prop_low_95", "prop_high_95"), ("count", "low_95", "high_95")
        if mass["low_95"] == 0:  # an upper limit, as a share and as a count
            names = ("prop_high_95",), ("high_95",)
        assert page.rows["tfoot"] == [mass[name] for name in (*names[0], *names[1], "std_error")]


@pytest.mark.slow
def test_a_page_says_what_is_known_of_each_row_and_what_forgers_could_do(sample, analyst):
    page = opened(analyst, "/collections/homepage?show=all")  # decoded, whichever test ran before
    found = json.loads(analyst.get("/collections/homepage.json").text)
    cells = dict(re.findall(r'<tr data-string="([^"]*)">(.*?)</tr>', page, re.DOTALL))
    assert len(cells) == found["candidates"]
    for row in found["rows"]:
        text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", cells[row["string"]]))
        limited = not row["detected"] or row["presence_only"]
        assert text.count("at most ") == (2 if limited else 0)  # as a share, and as a count
        assert (" present " in text) == row["presence_only"]
        assert ("● detected" in text) == row["detected"]
    assert any(not row["detected"] for row in found["rows"])
    assert "Made up by" in page
    assert "upper limit with 97.5 % confidence" in page
    assert f"About {show_count(found['forged_to_detect'], math.nan, math.nan).value} forged" in page


def test_adaptive_and_plain_rates_can_be_chosen_and_told_apart(analyst):
    for correction, rate in (("fdr", "adaptive FDR"), ("bh", "Benjamini-Hochberg")):
        page = opened(analyst, f"/collections/homepage?correction={correction}")
        assert f"of the detected ones are false finds ({rate})" in page
        assert '<option value="bh"' in page


@pytest.mark.slow
def test_a_country_is_the_command_lines_too(sample, analyst):
    given = ["--candidates", str(sample.definitions / "homepage.candidates.txt")]
    parts = told(sample, "homepage", "--period", week(0), "--by", "country", *given)["results"]
    opened(analyst, "/collections/homepage?country=NZ")
    found = json.loads(analyst.get("/collections/homepage.json?country=NZ").text)
    assert found["rows"] == parts["NZ"]["rows"]
    assert found["undetected_mass"] == parts["NZ"]["undetected_mass"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "query"),
    [
        ("homepage", {}),
        ("homepage", {"country": "NZ", "vs": "country=DE", "alpha": "0.01"}),
        ("homepage", {"from": week(2), "method": "lasso"}),
        ("browser", {"vs": week(1)}),
        ("browser", {"to": week(3), "vs": week(1)}),  # new minus old, though the old is shown
        ("start-time", {}),
    ],
)
def test_the_python_of_a_view_gives_its_numbers(name, query, sample, analyst, context, monkeypatch):
    view = read_query(query, context.catalogue, context.state, name)
    opened(analyst, view.path())
    shown = json.loads(analyst.get(view.path(".json")).text)
    code = analyst.get(view.path(".py")).text
    assert code == python_code(view, context.catalogue.get(name))
    monkeypatch.chdir(sample.folder)  # where the folder is called "data"
    assert len(code.splitlines()) <= 5
    names = {}
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, "view.py", "exec"), names)
    assert "95 % interval" in printed.getvalue()
    found = names["found"]
    for row in shown["rows"]:
        mine = next(each for each in found.rows if each.string == row["string"])
        assert (mine.estimate, mine.std_error) == (row["estimate"], row["std_error"])
        low = None if mine.presence_only else mine.prop_low_95
        assert (low, mine.prop_high_95) == (row["prop_low_95"], row["prop_high_95"])
        assert mine.raw_estimate == row["raw_estimate"]
        assert (mine.p_value, mine.adjusted_p_value) == (row["p_value"], row["adjusted_p_value"])
    assert sum(each.detected for each in found.rows) == shown["detected"]
    if "compared" in shown:
        new, old = names["compared"].names
        assert (new, old) == tuple(
            side.words.replace("DE", "country DE").replace("NZ", "country NZ")
            for side in view.difference
        )
        if view.against.periods != view.periods:
            assert new > old
        for row in shown["compared"]["rows"]:
            mine = names["compared"].row(row["string"])
            assert mine.difference == row["difference"]
            ends = (row["difference_low_95"], row["difference_high_95"])
            assert ends == tuple(file_row(mine)[name] for name in ("low_95", "high_95"))
            assert mine.different == row["different"]


def test_results_are_kept_to_the_last_bit():
    strings = Params(32, 2, 8, 0.25, 0.35, 0.65)
    import rappor as package

    counts = package.simulate.counts({"a": 3, "b": 2, "c": 0.1}, strings, 50_000, seed=3)
    ordinal = Counts(Params(3, 1, 1, 0.0, 0.25, 0.75), [1000], [[300, 500, 420]], kind="ordinal")
    category = Counts(Params(3, 1, 1, 0.0, 0.25, 0.75), [1000], [[300, 500, 420]], kind="category")
    for given, names in (
        (counts, ["a", "b", "c", "=d"]),
        (ordinal, package.Ranges((1, 2))),
        (category, ["x", "y", "z"]),
    ):
        found = decode(given, names)
        result = pack(found, {"collection": "test"})
        back = unpack(json.loads(json.dumps(result.meta)), result.table).main
        assert type(back) is type(found)
        assert list(back.rows) == list(found.rows)
        assert back.undetected_mass == found.undetected_mass
        assert back.forgery == found.forgery
        assert back.forged_to_detect == found.forged_to_detect
        assert back.checks == found.checks
        assert back.warnings == found.warnings
        if given is ordinal:
            assert back.histogram.cumulative() == found.histogram.cumulative()
            assert back.histogram.quantile(0.5) == found.histogram.quantile(0.5)
            assert back.histogram.labels == found.histogram.labels


def test_results_that_an_older_version_kept_are_read():
    """They have warnings and no checks."""
    made = Counts(Params(3, 1, 1, 0.0, 0.25, 0.75), [1000], [[300, 500, 420]], kind="category")
    result = pack(decode(made, ["x", "y", "z"]), {"collection": "test"})
    meta = json.loads(json.dumps(result.meta)) | {"warnings": ["Look at this."]}
    for key in ("checks", "notes", "reports_per_client"):
        del meta[key]
    back = unpack(meta, result.table).main
    assert back.warnings == ("Look at this.",)


def test_the_code_of_a_test_report_records_one(sample, tmp_path, monkeypatch):
    import rappor as package

    for collection in sample.collections.values():
        file = tmp_path / f"{collection.name}.toml"
        file.write_text(collection.to_toml(), encoding="utf-8")
        seen = []
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(
            package.Client,
            "open",
            lambda *given, seen=seen, **named: SimpleNamespace(
                report=lambda *told: seen.append((given, named, told)), close=lambda: None
            ),
        )
        exec(compile(report_code(collection, "http://127.0.0.1:1"), "report.py", "exec"), {})
        ((given, named, (name, value)),) = seen
        assert given == ("test-client", [file.name])
        assert named == {"consent": True, "upload_to": "http://127.0.0.1:1"}
        assert name == collection.name
        collection.encoder(b"x" * 32).encode(value)  # a value that can be reported


# Exports.


def test_csv_is_safe_in_a_spreadsheet_and_the_zip_is_googles(analyst, context):
    evil = ["=cmd|'/c calc'!A1", "+1+1", "-2+3", "@SUM(A1)", "\tx", "plain.example"]
    context.state.save_candidates("extensions", evil, "test")
    opened(analyst, "/collections/extensions?anyway=1")
    lines = analyst.get("/collections/extensions.csv?anyway=1").text.splitlines()[1:]
    first = {line.split(",")[0].strip('"') for line in lines}
    assert first == {f"'{text}" if text != "plain.example" else text for text in evil}
    answer = analyst.get("/collections/homepage.google.zip")
    packed = zipfile.ZipFile(BytesIO(answer.body))
    params = packed.read("params.csv").decode()
    assert params.splitlines()[0] == "k,h,m,p,q,f"
    assert len(packed.read("counts.csv").splitlines()) == 8
    assert len(packed.read("map.csv").splitlines()) == len(PAGES) + 1 + len(RARE)


@pytest.mark.slow
def test_googles_files_decode_to_the_same_numbers(analyst, tmp_path):
    opened(analyst, "/collections/homepage")
    answer = analyst.get("/collections/homepage.google.zip")
    zipfile.ZipFile(BytesIO(answer.body)).extractall(tmp_path)
    files = {name: str(tmp_path / f"{name}.csv") for name in ("params", "counts", "map")}
    found = said(
        "decode", "--params", files["params"], "--counts", files["counts"], "--map", files["map"],
        "--dialect", "rappor-v1", "--reports-per-client", "1",
    )  # fmt: skip
    shown = json.loads(analyst.get("/collections/homepage.json").text)
    assert found["rows"] == shown["rows"]


def test_an_unknown_chart_and_a_result_that_is_not_there_are_said(analyst):
    opened(analyst, "/collections/homepage")
    assert analyst.get("/collections/homepage/charts/nothing.svg").status_code == 404
    assert analyst.get("/collections/homepage/charts/results.gif").status_code == 404
    assert analyst.get("/collections/homepage.json?alpha=0.0123").status_code == 409
    assert analyst.get("/collections/nowhere").status_code == 404


def test_a_viewer_reads_what_is_kept_and_starts_nothing(context, analyst):
    opened(analyst, "/collections/homepage")
    viewer = Browser(context)
    viewer.log_in(Role.VIEWER)
    assert 'data-state="ready"' in viewer.get("/collections/homepage").text
    before = len(context.jobs.all())
    page = viewer.get("/collections/homepage?alpha=0.0321").text
    assert "Analysts can do this; you are a viewer" in page
    assert "This view is not decoded yet." in page
    assert len(context.jobs.all()) == before
    assert viewer.post("/collections/homepage/decode", {}).status_code == 403
    assert viewer.get("/collections/homepage.google.zip").status_code == 403


@pytest.mark.slow
def test_a_table_of_many_has_pages_of_200(tmp_path):
    with made_context(tmp_path) as context:
        many = [*PAGES, HIJACKER, *(f"c{i}" for i in range(600))]
        context.state.save_candidates("homepage", many, "me")
        analyst = entered(context, Role.ANALYST)
        page = opened(analyst, "/collections/homepage?show=all&page=4")
        assert "Page 4 of 4" in page
        assert len(Values(page).rows) == 13 + 1  # 613 rows, and the undetected mass below the last
        assert len(Values(analyst.get("/collections/homepage?show=all").text).rows) == 200
