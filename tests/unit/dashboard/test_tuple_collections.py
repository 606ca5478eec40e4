"""A collection of kind tuple: its Associations page, and no other page or job that breaks."""

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

import rappor as package
from rappor import Params
from rappor.collection import Collection
from rappor.dashboard.associations.page import association_work
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.jobs.queue import DONE
from rappor.dashboard.prefetch import Prefetcher
from rappor.dashboard.query_reading import read_query
from rappor.mechanism import Field
from rappor.simulate import tuples
from support.dashboard import Sample, week
from support.dashboard_context import Answer, Browser, made_context, until_over
from support.joint_tables import dependent, tuple_views
from support.waiting import wait_for

LISTED = ["x0", "x1", "x2", "x3"]
VIEWS = tuple_views(("y0", "y1", "y2"))
PARAMS = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    sample = Sample(tmp_path)
    install = Collection(
        "install", 1, PARAMS, kind="tuple", fields=VIEWS.fields, period="week", owner="Setup team"
    )
    sample.define(install)
    for back in (2, 1):
        sample.add(install, week(back), tuples(VIEWS.fields, dependent(4, 3)), 100_000, seed=back)
    sample.store()
    return sample


@pytest.fixture
def context(sample: Sample) -> Iterator[Context]:
    sample.candidates("install", LISTED)
    with made_context(sample.folder, sample=sample) as made:
        yield made


@pytest.fixture
def analyst(context: Context) -> Browser:
    browser = Browser(context)
    browser.log_in(Role.ANALYST)
    return browser


PAGE = "/collections/install/associations"


def state_of(answer: Answer) -> str:
    found = re.search(r'data-state="([^"]+)"', answer.text)
    assert found is not None
    return found[1]


def settled(browser: Browser, path: str = PAGE) -> Answer:
    """The page when no job runs any more."""
    browser.get(path)
    wait_for(lambda: all(job.over for job in browser.context.jobs.all()))
    return browser.get(path)


def test_the_page_has_the_numbers_of_the_library(sample: Sample, analyst: Browser) -> None:
    answer = settled(analyst)
    assert state_of(answer) == "ready"
    assert "x and y are associated (p " in answer.text
    wanted = package.open(sample.data).associate("install")
    assert wanted.notes[1] == "the candidates of x are version 1 of the list of install: 4 strings"
    found = json.loads(analyst.get(f"{PAGE}.json").text)
    assert found["correction"] == "holm"
    assert found["rows"][0]["adjusted_p_value"] == wanted.rows[0].adjusted_p_value
    assert found["periods"] == [week(1)]
    assert found["rows"][0]["share"] == wanted.rows[0].share
    assert found["independence"]["p_value"] == wanted.independence.p_value
    lines = analyst.get(f"{PAGE}.csv").text.splitlines()
    assert lines[0] == ",".join(wanted.columns())
    assert len(lines) == 1 + len(wanted.rows)
    for chart in ("joint", "given"):
        assert analyst.get(f"{PAGE}.svg?chart={chart}").text.startswith("<svg")


def test_the_python_code_prints_the_table_of_the_page(
    sample: Sample, analyst: Browser, capsys: pytest.CaptureFixture[str]
) -> None:
    settled(analyst)
    code = analyst.get(f"{PAGE}.py").text.replace('"data"', repr(str(sample.data)))
    exec(code, {})
    assert "x and y are associated" in capsys.readouterr().out


def test_fields_can_be_turned_and_a_value_chosen(analyst: Browser) -> None:
    assert "y among reports whose x is x1" in settled(analyst, f"{PAGE}?given=x1").text
    answer = settled(analyst, f"{PAGE}?fields=y%2Cx")
    assert state_of(answer) == "ready"
    assert "y and x are associated" in answer.text
    assert "A view of y would tell." in answer.text  # by default no cohort sees y alone
    assert analyst.get(f"{PAGE}.svg?fields=y%2Cx&chart=given").status_code == 409
    assert analyst.get(f"{PAGE}?fields=x%2Cz").status_code == 400


def test_the_table_is_searched_and_sorted(analyst: Browser) -> None:
    settled(analyst)
    rows = re.compile(r'<th scope="row" class="value">([^<]+)</th>')
    assert rows.findall(analyst.get(f"{PAGE}?q=x1").text) == ["x1 × y1", "x1 × y2", "x1 × y0"]
    names = rows.findall(analyst.get(f"{PAGE}?sort=string").text)
    assert names == sorted(names)
    assert "Nothing matches" in analyst.get(f"{PAGE}?q=zork").text


def test_a_tuple_without_a_list_asks_for_one_and_its_list_can_be_saved(sample: Sample) -> None:
    with made_context(sample.folder, sample=sample) as context:
        analyst = Browser(context)
        analyst.log_in(Role.ANALYST)
        assert state_of(analyst.get(PAGE)) == "no list"
        assert Prefetcher(context).begin("install") is None
        assert (
            "Strings of x, one on each line" in analyst.get("/collections/install/candidates").text
        )
        answer = analyst.post("/collections/install/candidates", {"text": "\n".join(LISTED)})
        assert answer.status_code == 303
        draft = answer.headers["location"].rpartition("draft=")[2]
        assert "Save as v1" in analyst.get(answer.headers["location"]).text
        saved = {"draft": draft, "then": "decode"}
        answer = analyst.post("/collections/install/candidates/save", saved)
        assert answer.headers["location"].startswith("/collections/install")
        assert state_of(settled(analyst)) == "ready"


def tuple_of_strings(sample: Sample, *fields: Field) -> None:
    """A collection with the default views, and reports in its newest period."""
    made = Collection("words", 1, PARAMS, kind="tuple", fields=fields, period="week", owner="us")
    sample.define(made)
    values = {"x": ("a", "b"), "y": ("c", "d"), "z": ("e", "f"), "beta": (True, False)}
    joint = dict.fromkeys(product(*(values[field.name] for field in fields)), 1.0)
    sample.add(made, week(1), tuples(fields, joint), 100_000)
    sample.store()
    sample.candidates("words", [f"{name}={text}" for name in "xy" for text in values[name]])


WORDS = "/collections/words/associations"
X, Y, Z = (Field(name, "string") for name in "xyz")


def test_a_tuple_whose_views_serve_no_pair_says_so_and_starts_nothing(sample: Sample) -> None:
    tuple_of_strings(sample, X, Y, Z)
    with made_context(sample.folder, sample=sample) as context:
        analyst = Browser(context)
        analyst.log_in(Role.ANALYST)
        answer = analyst.get(WORDS)
        assert (answer.status_code, state_of(answer)) == (200, "no view")
        assert "Collect with a view of the two fields, in a new version." in answer.text
        assert '<option value="x,y"' not in answer.text
        assert json.loads(analyst.get(f"{WORDS}.json").text)["state"] == "no view"
        assert analyst.get(f"{WORDS}.py").status_code == 409
        assert analyst.post(WORDS, {}).status_code == 303
        assert Prefetcher(context).begin("words") is None
        assert context.jobs.all() == []


def test_pairs_that_no_view_serves_are_not_offered(sample: Sample) -> None:
    tuple_of_strings(sample, X, Y, Field("beta", "boolean"))
    with made_context(sample.folder, sample=sample) as context:
        analyst = Browser(context)
        analyst.log_in(Role.ANALYST)
        answer = settled(analyst, WORDS)
        assert state_of(answer) == "ready"
        assert re.findall(r'<option value="(\w+,\w+)"', answer.text) == ["x,y", "y,x"]
        assert analyst.get(f"{WORDS}?fields=x%2Cbeta").status_code == 400


def test_a_view_without_reports_has_no_python_code(analyst: Browser) -> None:
    assert analyst.get(f"{PAGE}.py?to=2020-W01").status_code == 409


def test_viewers_see_what_is_there_and_start_nothing(context: Context, analyst: Browser) -> None:
    viewer = Browser(context)
    viewer.log_in(Role.VIEWER)
    assert state_of(viewer.get(PAGE)) == "no permission"
    assert context.jobs.all() == []
    assert viewer.get(f"{PAGE}.csv").status_code == 409
    settled(analyst)
    assert state_of(viewer.get(PAGE)) == "ready"


def test_few_reports_and_none_are_said(sample: Sample, context: Context, analyst: Browser) -> None:
    assert state_of(analyst.get(f"{PAGE}?to=2020-W01")) == "empty"
    install = sample.collections["install-1"]
    sample.add(install, week(0), tuples(VIEWS.fields, dependent(4, 3)), 500)
    sample.store()
    answer = analyst.get(f"{PAGE}?to={week(0)}")
    assert state_of(answer) == "too few"
    assert "pairs" in answer.text
    assert context.jobs.all() == []


def test_a_job_that_failed_says_why_and_is_not_begun_again(
    context: Context, analyst: Browser
) -> None:
    query = read_query({}, context.catalogue, context.state, "install")
    work = association_work(context, query)
    broken = {**work.arguments(), "strings": []}
    until_over(context.jobs, context.jobs.start(work.kind, broken, work.key, label=work.label))
    for _ in range(2):
        assert state_of(analyst.get(PAGE)) == "error"
    assert len(context.jobs.all()) == 1
    assert analyst.post(PAGE, {}).status_code == 303
    assert state_of(settled(analyst)) == "ready"


def test_it_is_listed_with_the_pairs_that_depart(analyst: Browser) -> None:
    settled(analyst)
    assert "9</data> pairs" in analyst.get("/").text


def test_the_newest_period_is_associated_ahead_once(context: Context) -> None:
    prefetcher = Prefetcher(context)
    prefetcher.due()
    assert prefetcher.due() == ["install"]
    job = prefetcher.begin("install")
    assert job is not None
    assert until_over(context.jobs, job).state == DONE
    assert prefetcher.due() == []


def test_results_lead_to_associations_and_only_tuples_have_them(
    sample: Sample, analyst: Browser
) -> None:
    answer = analyst.get("/collections/install")
    assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
    sample.define(Collection("page", 1, PARAMS, period="week"))
    sample.store()
    assert analyst.get("/collections/page/associations").status_code == 404
    assert "associations" not in analyst.get("/collections/page").text


@pytest.mark.parametrize(
    "page",
    [
        *("/trends", "/trends.json", "/trends.csv", "/trends.svg", "/diagnostics"),
        *("/diagnostics.json", "/diagnostics/cells.json", "/diagnostics/bits.json?light=x"),
        *(".json", ".csv", ".parquet", ".py", ".google.zip", "/charts/results.svg"),
    ],
)
def test_pages_of_decoded_collections_name_the_command(
    context: Context, analyst: Browser, page: str
) -> None:
    answer = analyst.get(f"/collections/install{page}")
    assert answer.status_code == 404
    assert "its fields are associated, not decoded" in answer.text
    assert "rappor associate install" in answer.text
    assert context.jobs.all() == []  # no job that could only fail


@pytest.mark.parametrize("page", ["/decode", "/trends", "/diagnostics"])
def test_no_form_starts_a_decode_of_it(context: Context, analyst: Browser, page: str) -> None:
    assert analyst.post(f"/collections/install{page}", {}).status_code == 404
    assert context.jobs.all() == []
