"""Trends, Diagnostics and Candidates: each state in words, what is kept, and who may save."""

import json
import re
from dataclasses import replace

import pytest

from rappor import Params
from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.query_reading import read_query
from rappor.dashboard.trends.trend import read_trend, trend_work
from rappor.simulate import counts as simulated
from rappor.store import CellKey
from support.dashboard import Sample
from support.dashboard_context import Browser, made_context, until_over
from support.waiting import wait_for

PARAMS = Params(64, 2, 8, 0.25, 0.35, 0.65)
NAMES = [f"v{i:02}" for i in range(20)]
SHARES = dict(zip(NAMES, (8, 6, 4, 3, 2, 1), strict=False))
WEEKS = ["2026-W40", "2026-W41", "2026-W42"]
PAGES = ("trends", "diagnostics")


def cell(version, period, reports, params=PARAMS, seed=1):
    made = simulated(SHARES, params, reports, seed=seed)
    return CellKey.of("homepage", version, period, ()), made


@pytest.fixture
def sample(tmp_path):
    made = Sample(tmp_path)
    made.define(Collection("homepage", 1, PARAMS, owner="Browser team", period="week"))
    changed = replace(PARAMS, p=0.34)
    made.define(Collection("homepage", 2, changed, owner="Browser team", period="week"))
    made.cells = [
        cell(1, WEEKS[0], 200_000),
        cell(1, WEEKS[1], 200_000, seed=2),
        cell(2, WEEKS[2], 200_000, changed, seed=3),
    ]
    made.store()
    made.candidates("homepage", NAMES)
    return made


@pytest.fixture
def context(sample):
    with made_context(sample.folder, sample=sample) as context:
        yield context


@pytest.fixture
def analyst(context):
    browser = Browser(context)
    browser.log_in(Role.ANALYST)
    return browser


def state_of(answer):
    return re.search(r'data-state="([^"]+)"', answer.text)[1]


def settled(browser, path):
    """The page when no job runs any more."""
    browser.get(path)
    wait_for(lambda: all(job.over for job in browser.context.jobs.all()))
    return browser.get(path)


def text_of(answer):
    plain = re.sub(r"<script.*?</script>|<[^>]+>", " ", answer.text, flags=re.S)
    return re.sub(r"\s+", " ", plain)


@pytest.mark.slow
def test_a_trend_spans_versions_and_marks_the_new_one(analyst):
    answer = settled(analyst, "/collections/homepage/trends")
    assert state_of(answer) == "ready"
    assert "Dashed lines: version 2 from 2026-W42." in answer.text
    document = json.loads(analyst.get("/collections/homepage/trends.json").text)
    assert [(each["period"], each["version"]) for each in document["periods"]] == [
        ("2026-W40", 1),
        ("2026-W41", 1),
        ("2026-W42", 2),
    ]
    assert document["marks"] == [{"period": "2026-W42", "label": "version 2"}]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_reports_that_came_since_make_a_result_stale_and_it_stays_below(
    sample, context, analyst, page
):
    path = f"/collections/homepage/{page}"
    assert state_of(settled(analyst, path)) == "ready"
    sample.cells = [cell(2, WEEKS[2], 50_000, replace(PARAMS, p=0.34), seed=9)]
    sample.store()
    answer = analyst.get(path)
    assert state_of(answer) == "stale"
    assert "Out of date" in answer.text
    assert "50,000 reports since" in text_of(answer)
    assert 'class="found earlier"' in answer.text
    assert analyst.post(path, {}).status_code == 303
    again = settled(analyst, path)
    assert state_of(again) == "ready"
    if page == "trends":
        assert context.state.latest_result("homepage", "trend").meta["decoded"] == 1


@pytest.mark.slow
def test_a_job_that_fails_says_why_and_can_be_tried_again(context, analyst):
    query = read_query({}, context.catalogue, context.state, "homepage")
    work = trend_work(context, read_trend(context, query, {}))
    broken = {**work.arguments(), "data": "/nowhere/at/all"}
    job = context.jobs.start(work.kind, broken, work.key, label=work.label)
    until_over(context.jobs, job)
    answer = analyst.get("/collections/homepage/trends")
    assert state_of(answer) == "error"
    assert "This decode stopped" in answer.text
    assert "Try again" in answer.text
    assert "/nowhere" not in answer.text
    assert analyst.post("/collections/homepage/trends", {}).status_code == 303
    assert state_of(settled(analyst, "/collections/homepage/trends")) == "ready"


def test_a_cancelled_job_is_not_begun_again_by_itself(context, analyst):
    query = read_query({}, context.catalogue, context.state, "homepage")
    work = trend_work(context, read_trend(context, query, {}))
    job = context.jobs.start(work.kind, work.arguments(), work.key, label=work.label)
    context.jobs.cancel(job.id)
    for _ in range(2):
        answer = analyst.get("/collections/homepage/trends")
        assert state_of(answer) == "cancelled"
    assert "There is no earlier result." in answer.text
    assert "Start again" in answer.text


@pytest.mark.parametrize("page", PAGES)
def test_a_viewer_starts_nothing_and_is_told_whom_to_ask(context, page):
    viewer = Browser(context)
    viewer.log_in(Role.VIEWER)
    answer = viewer.get(f"/collections/homepage/{page}")
    assert state_of(answer) == "no permission"
    assert "Ask Browser team." in answer.text
    assert context.jobs.all() == []
    assert viewer.post(f"/collections/homepage/{page}", {}).status_code == 403


def test_a_collection_without_a_list_asks_for_one(context, sample, analyst):
    (sample.definitions / "homepage.candidates.txt").unlink()
    for page in PAGES:
        answer = analyst.get(f"/collections/homepage/{page}")
        assert state_of(answer) == "no list"
        assert "Add candidates" in answer.text
    assert "No candidates yet" in analyst.get("/collections/homepage/candidates").text


def test_files_of_a_result_that_is_not_there_say_so(analyst):
    for name in ("diagnostics.csv", "diagnostics/cells.json"):
        viewer = Browser(analyst.context)
        viewer.log_in(Role.VIEWER)
        assert viewer.get(f"/collections/homepage/{name}").status_code == 409
    document = json.loads(analyst.get("/collections/homepage/diagnostics.json").text)
    assert document["state"] in ("loading", "ready")


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [
        "trends?alpha=2",
        "trends?from=yesterday",
        "trends.svg?chart=pie",
        "diagnostics?map=wind",
        "diagnostics?candidates=99",
        "candidates?correction=guess",
    ],
)
def test_an_address_that_cannot_be_read_is_a_400(analyst, path):
    answer = analyst.get(f"/collections/homepage/{path}")
    assert answer.status_code == 400
    assert "must be" in answer.text


def test_an_unknown_collection_is_a_404(analyst):
    for page in (*PAGES, "candidates"):
        assert analyst.get(f"/collections/nothing-here/{page}").status_code == 404


def check(browser, text, how="add"):
    answer = browser.post("/collections/homepage/candidates", {"text": text, "how": how})
    assert answer.status_code == 303, text_of(answer)
    return re.search(r"draft=([0-9a-f]{32})", answer.headers["location"])[1]


@pytest.mark.slow
def test_a_draft_is_added_to_the_present_list_or_replaces_it(context, analyst):
    digest = check(analyst, "extra\nv00\n")
    page = analyst.get(f"/collections/homepage/candidates?draft={digest}")
    assert "21 candidates · 1 added, 0 removed since v1" in text_of(page)
    saved = analyst.post("/collections/homepage/candidates/save", {"draft": digest})
    assert saved.headers["location"] == "/collections/homepage/candidates"
    assert context.state.candidates("homepage").strings == ("extra", *NAMES)
    digest = check(analyst, "extra\n", "replace")
    analyst.post("/collections/homepage/candidates/save", {"draft": digest, "then": "decode"})
    newest, before, _ = json.loads(analyst.get("/collections/homepage/candidates.json").text)[
        "versions"
    ]
    assert (newest["version"], newest["added"], newest["removed"]) == (3, 0, 20)
    assert (before["version"], before["added"], before["removed"]) == (2, 1, 0)
    assert newest["actor"] == "analyst analyst"
    old = analyst.get("/collections/homepage/candidates.csv?candidates=1").text
    assert old.splitlines() == ["string", *(f'"{name}"' for name in NAMES)]


@pytest.mark.slow
def test_a_newly_detected_string_whose_presence_alone_is_known_has_an_upper_limit(context, analyst):
    digest = check(analyst, "extra\n")
    address = f"/collections/homepage/candidates?draft={digest}"
    analyst.get(address)
    query = read_query({}, context.catalogue, context.state, "homepage")
    key = f"explain-{query.key}-{digest}"
    wait_for(lambda: context.state.result(key) is not None)
    meta = context.state.result(key).meta
    found = {"explained": [1.0, 0.956, 1.0], "new": [["sure", 0.037, 0.01, 0.055]]}
    found["new"].append(["there", 0.037, 0.0, 0.055])
    context.state.save_result(key, "explain", meta | {"after": meta["after"] | found}, None)
    page = text_of(analyst.get(address))
    assert "sure 3.7 % (1.0 – 5.5)" in page
    assert "there present, at most 5.5 %" in page
    assert "at least 95.6 % with this list" in page


@pytest.mark.parametrize("digest", ["", "0" * 32, "../../etc/passwd", "A" * 32])
def test_a_draft_that_is_forgotten_cannot_be_saved(context, analyst, digest):
    answer = analyst.post("/collections/homepage/candidates/save", {"draft": digest})
    assert answer.status_code == 404
    assert len(context.state.candidate_versions("homepage")) == 1


def test_a_list_that_cannot_be_read_is_shown_again_with_the_reason(analyst):
    answer = analyst.post("/collections/homepage/candidates", {"text": "  ", "how": "add"})
    assert answer.status_code == 400
    assert "This list was not accepted" in answer.text
    wrong = analyst.post("/collections/homepage/candidates", {"text": "a<b", "how": "maybe"})
    assert wrong.status_code == 400
    assert "how must be one of add, replace; got" in text_of(wrong).replace("How", "how")
    assert "a&lt;b</textarea>" in wrong.text


def test_others_than_analysts_save_nothing(context):
    for role in (Role.VIEWER, Role.OPERATOR, Role.OFFICER):
        browser = Browser(context)
        browser.log_in(role)
        for path in ("candidates", "candidates/save", "candidates/decode"):
            answer = browser.post(f"/collections/homepage/{path}", {"text": "a", "how": "add"})
            assert answer.status_code == 403
        assert "<textarea" not in browser.get("/collections/homepage/candidates").text
    assert len(context.state.candidate_versions("homepage")) == 1
