"""The page Ingest: the collector's figures over time, accounts, jobs, who did what."""

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.collector.metrics import Metrics
from rappor.dashboard.auth.roles import Role
from rappor.dashboard.context import Context
from rappor.dashboard.ingest.watch import EVERY_SECONDS, Sample, Watch, parse, quantile
from rappor.dashboard.jobs.queue import Job
from rappor.wire import PROBLEMS
from support.dashboard_context import Browser, entered, made_context, until_over

NOON = 1_794_830_400.0  # 2026-11-16 12:00 UTC


class Collector:
    """A collector whose figures are told."""

    def __init__(self, folder: Path) -> None:
        self.metrics, self.folder = Metrics(), folder
        self.now, self.down, self.healthy, self.queue = NOON, False, True, 0
        self.watch = Watch("http://127.0.0.1:1", self.look, lambda: self.now)

    def look(self, _: str, at: float) -> Sample:
        if self.down:
            raise ConnectionRefusedError(111, "Connection refused")
        text = self.metrics.text(
            healthy=self.healthy, queue_batches=self.queue, queue_bytes=100, data=self.folder
        )
        return parse(text.decode(), at)

    def go(self, seconds: float, reports_a_second: int = 0) -> None:
        """Time goes by, with reports."""
        for _ in range(int(seconds / EVERY_SECONDS)):
            self.now += EVERY_SECONDS
            for _ in range(int(EVERY_SECONDS)):
                self.metrics.commit(0.004, 1, 0, reports_a_second)
            self.watch.look()


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    return Collector(tmp_path)


@pytest.fixture
def context(tmp_path: Path, collector: Collector) -> Iterator[Context]:
    with made_context(tmp_path / "folder") as context:
        context.watch = collector.watch
        yield context


@pytest.fixture
def operator(context: Context) -> Browser:
    browser = Browser(context)
    browser.log_in(Role.OPERATOR)
    return browser


def test_rates_come_from_two_looks_and_by_minute(collector: Collector) -> None:
    collector.watch.look()
    assert collector.watch.figures().rate is None
    collector.go(120, reports_a_second=40)
    figures = collector.watch.figures()
    assert (figures.health, figures.rate) == ("Healthy", 40.0)
    assert [rate for _, rate in figures.minutes] == [40.0, 40.0, 40.0]
    assert [start - NOON for start, _ in figures.minutes] == [0, 60, 120]
    collector.go(60)
    assert collector.watch.figures().rate == 0.0


def test_an_hour_is_remembered_and_no_more(collector: Collector) -> None:
    collector.watch.look()
    collector.go(70 * 60, reports_a_second=2)
    minutes = collector.watch.figures().minutes
    assert len(minutes) == 60
    assert minutes[-1][0] == NOON + 70 * 60


def test_a_restarted_collector_does_not_take_reports_back(collector: Collector) -> None:
    collector.watch.look()
    collector.go(60, reports_a_second=10)
    collector.metrics = Metrics()
    collector.go(60, reports_a_second=10)
    figures = collector.watch.figures()
    assert figures.rate == 10.0
    assert figures.batches == 100  # 60 and 60, each in whole steps of 50


def test_rejects_are_counted_by_reason_and_anew_each_day(collector: Collector) -> None:
    collector.watch.look()
    collector.metrics.refuse("period-closed")
    collector.metrics.refuse("period-closed")
    collector.metrics.refuse("rate-limited")
    collector.go(50)
    figures = collector.watch.figures()
    assert figures.refused == {"period-closed": 2, "rate-limited": 1}
    assert figures.refused_share == 3 / 53
    collector.now += 86_400
    collector.watch.look()
    assert collector.watch.figures().refused_share is None


def test_a_collector_that_does_not_answer_is_said_and_comes_back(collector: Collector) -> None:
    assert collector.watch.figures().health == "Looking"
    collector.watch.look()
    collector.down = True
    collector.go(10)
    figures = collector.watch.figures()
    assert figures.health == "Not answering"
    assert "Connection refused" in figures.reason
    collector.down, collector.healthy = False, False
    collector.go(10)
    assert collector.watch.figures().health == "Failing"


def test_without_an_address_nothing_is_watched() -> None:
    watch = Watch(None)
    watch.start()
    watch.look()
    assert watch.figures().health == "Not watched"
    watch.close()


def test_percentiles_are_read_between_bounds() -> None:
    metrics = Metrics()
    for _ in range(99):
        metrics.commit(0.004, 1, 0, 1)
    metrics.commit(0.04, 1, 0, 1)
    sample = parse(
        metrics.text(healthy=True, queue_batches=0, queue_bytes=0, data=Path()).decode(), 0
    )
    buckets = sample.labels("rappor_commit_seconds_bucket")
    assert quantile(buckets, 0.99) == pytest.approx(0.005)
    assert quantile(buckets, 1.0) == pytest.approx(0.05)
    assert quantile({}, 0.99) is None
    assert quantile({"1": 0.0, "+Inf": 3.0}, 0.5) == 1.0


def test_the_page_shows_the_figures(collector: Collector, operator: Browser) -> None:
    collector.watch.look()
    collector.queue = 57
    collector.metrics.refuse("wrong-params")
    collector.go(60, reports_a_second=1240)
    text = operator.get("/ingest").text
    plain = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))
    assert "Ingest Healthy No addresses, ids or exact times are kept" in plain
    assert "Reports per second 1,240 " in plain
    assert "Commit, 99th percentile 5 ms" in plain
    assert "Waiting for a commit 50 batches" in plain
    assert f"wrong-params 1 {PROBLEMS['wrong-params'].title} drops the batch" in plain
    assert 'data-chart="rates-spec"' in text
    document = json.loads(operator.get("/ingest.json").body)
    assert document["reports_per_second"] == 1240
    rows = list(csv.reader(io.StringIO(operator.get("/ingest.csv").text)))
    assert ["refused_today", "wrong-params", "1"] in rows


def test_an_operator_makes_a_token_that_works_and_is_shown_once(
    context: Context, operator: Browser
) -> None:
    answer = operator.post("/ingest/accounts", {"name": "ada", "role": "privacy officer"})
    found = re.search(r'<code class="value">(rpd_[^<]+)</code>', answer.text)
    assert found is not None
    assert found[1] not in operator.get("/ingest").text
    ada = Browser(context)
    assert ada.post("/login", {"token": found[1]}).status_code == 303
    assert "privacy officer" in ada.get("/").text
    assert ("operator operator", "access-new", "ada: privacy officer") in [
        tuple(each)[1:] for each in context.state.audit_log()
    ]


def escalations(context: Context, operator: Browser) -> list[int]:
    """Every way for an operator to get at the powers of another role: what each is answered."""
    found = [
        operator.post("/ingest/accounts", {"name": "mine", "role": "privacy officer"}).status_code,
        operator.post("/ingest/links", {"name": "olga"}).status_code,
        operator.post("/ingest/revoke", {"name": "olga"}).status_code,
        operator.post("/ingest/accounts", {"name": "mine", "role": "analyst"}).status_code,
        operator.post("/ingest/links", {"name": "anna"}).status_code,
    ]
    assert "mine" not in {account.name for account in context.state.accounts()}
    return found


def test_nobody_gives_a_role_that_they_do_not_have(context: Context, operator: Browser) -> None:
    context.state.add_account("olga", Role.OFFICER, "test")
    context.state.add_account("anna", Role.ANALYST, "test")
    assert escalations(context, operator) == [400] * 5
    assert ("olga", Role.OFFICER, None) in [
        (account.name, account.role, account.revoked) for account in context.state.accounts()
    ]
    context.state.revoke("olga", "test")  # also a role whose last account is gone was somebody's
    context.state.revoke("anna", "test")
    assert escalations(context, operator) == [400] * 5
    answer = operator.post("/ingest/accounts", {"name": "otto", "role": "operator"})
    assert answer.status_code == 200
    assert "privacy officer" not in re.findall(r'<option value="([^"]+)"', answer.text)


def test_officers_give_their_role_and_see_every_grant(context: Context, operator: Browser) -> None:
    officer = entered(context, Role.OFFICER)
    operator.post("/ingest/accounts", {"name": "otto", "role": "operator"})
    answer = officer.post("/ingest/accounts", {"name": "olga", "role": "privacy officer"})
    assert answer.status_code == 200
    assert officer.post("/ingest/accounts", {"name": "x", "role": "operator"}).status_code == 400
    assert officer.post("/ingest/revoke", {"name": "olga"}).status_code == 303
    context.state.new_link("lena", "user root", Role.ANALYST)
    seen = officer.get("/ingest/audit.csv").text
    for grant in ("otto: operator", "olga: privacy officer", "lena: analyst"):
        assert f'"access-new","{grant}"' in seen


def test_an_operator_makes_a_link_and_revokes(context: Context, operator: Browser) -> None:
    context.state.add_account("ada", Role.VIEWER, "test")
    answer = operator.post("/ingest/links", {"name": "ada"})
    found = re.search(r"/login\?link=([^<]+)</code>", answer.text)
    assert found is not None
    ada = Browser(context)
    assert ada.post("/login", {"link": found[1]}).status_code == 303
    assert operator.post("/ingest/revoke", {"name": "ada"}).status_code == 303
    assert ada.get("/").status_code == 303
    assert "Revoked" in operator.get("/ingest").text


@pytest.mark.parametrize(
    ("path", "fields", "said"),
    [
        ("accounts", {"name": "<b>", "role": "viewer"}, "name of an account must match"),
        ("accounts", {"name": "eve", "role": "root"}, "role must be one of viewer"),
        ("links", {"name": "nobody"}, "there is no account"),
        ("revoke", {"name": "nobody"}, "there is no account"),
        ("revoke", {"name": "operator"}, "You cannot revoke your own account"),
    ],
)
def test_what_cannot_be_done_is_said_on_the_page(
    operator: Browser, path: str, fields: dict[str, str], said: str
) -> None:
    answer = operator.post(f"/ingest/{path}", fields)
    assert answer.status_code == 400
    assert said in answer.text
    assert "<b>" not in answer.text
    assert operator.get(f"/ingest/{path}").headers["location"] == "/ingest"


def test_an_officer_is_offered_no_grant_but_their_own(context: Context) -> None:
    for role in Role:
        context.state.add_account(f"some-{role.value.replace(' ', '-')}", role, "test")
    text = entered(context, Role.OFFICER).get("/ingest").text
    assert "Audit log" in text
    assert re.findall(r'<option value="([^"]+)"', text) == ["viewer", "privacy officer"]
    assert 'aria-label="One-time link for some-operator"' not in text


def test_the_audit_log_is_that_of_store_and_dashboard_newest_first(
    context: Context, operator: Browser
) -> None:
    rows = list(csv.DictReader(io.StringIO(operator.get("/ingest/audit.csv").text)))
    assert {"define", "login"} <= {row["action"] for row in rows}
    assert [row["when"] for row in rows] == sorted((row["when"] for row in rows), reverse=True)
    assert context.state.audit_log()[-1].action == "export"


def test_jobs_of_before_are_listed_too(context: Context, operator: Browser) -> None:
    document = {
        "id": "old",
        "label": "Decoding 12 candidates",
        "collection": "homepage",
        "state": "failed",
        "share": 0.5,
        "text": "",
        "doing": "",
        "error": "It broke.",
        "seconds": 2.0,
        "actor": "analyst ada",
    }
    context.state.save_job("old", "decode", "k", "failed", document)
    text = operator.get("/ingest").text
    assert "Decoding 12 candidates" in text
    assert "It broke." in text


def test_jobs_of_an_earlier_process_are_listed_with_who_started_them(
    context: Context, operator: Browser
) -> None:
    job = context.jobs.start(
        "nothing", {}, "key", label="Decoding 41 candidates", actor="analyst ada"
    )
    until_over(context.jobs, job)
    context.state.save_job("old", "decode", "key", "done", {"id": "old", **_without_actor(job)})
    context.jobs._jobs.clear()  # what a restart forgets
    page = operator.get("/ingest")
    assert page.status_code == 200
    assert page.text.count("Decoding 41 candidates") >= 2
    assert "<td>analyst ada</td>" in page.text


def _without_actor(job: Job) -> dict[str, object]:
    """A job as versions before this one kept it."""
    return {name: value for name, value in job.document().items() if name != "id"}
