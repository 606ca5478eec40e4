"""The page Ingest in a real browser, next to a real collector."""

import pytest

from rappor.dashboard.auth.roles import Role
from support.collecting import batch, client_of
from support.waiting import wait_for

pytestmark = pytest.mark.long

PATIENCE = 120  # seconds


@pytest.fixture(scope="module")
def watched(collecting, dashboard):
    """A dashboard that watches a collector which took some batches."""
    with client_of(collecting) as client:
        for _ in range(35):
            client.send(batch())
    visit = dashboard.browser(Role.OPERATOR)
    wait_for(lambda: "Healthy" in visit.get("/ingest").text, PATIENCE)
    return dashboard


@pytest.fixture(scope="module")
def counted(watched):
    """The dashboard, after it looked at the collector twice: it then has something to draw."""
    visit = watched.browser(Role.OPERATOR)
    wait_for(lambda: "data-chart" in visit.get("/ingest").text, PATIENCE)
    return watched


@pytest.fixture(scope="module")
def refusing(collecting, watched):
    """The dashboard, after the collector refused some batches; a new day forgets refusals."""
    visit = watched.browser(Role.OPERATOR)
    with client_of(collecting) as client:

        def refused() -> bool:
            client.send(b"nonsense")
            client.send(batch(period="2020-01-01"))
            return "malformed-batch" in visit.get("/ingest").text

        wait_for(refused, PATIENCE)
    return watched


def test_a_healthy_collector_is_said_to_be_so(open_as, watched) -> None:
    tab = open_as(Role.OPERATOR, at=watched)
    tab.goto("/ingest")
    assert tab.page.get_by_text("Healthy").first.is_visible()
    assert tab.violations() == []


@pytest.mark.long
def test_ingest_looks_right(open_as, refusing, look) -> None:
    kind, options = look
    tab = open_as(Role.OPERATOR, at=refusing, **options)
    tab.goto("/ingest")
    tab.drawn()
    assert tab.page.get_by_text("Healthy").first.is_visible()
    assert tab.page.get_by_text("The body is not a batch.").is_visible()
    assert tab.sideways() == 0
    assert tab.violations() == []
    tab.screenshot(f"ingest-{kind}")


def test_an_operator_makes_a_token_and_revokes_it(open_as, watched) -> None:
    tab = open_as(Role.OPERATOR, at=watched)
    page = tab.page
    tab.goto("/ingest")
    page.get_by_label("New account").fill("grace")
    page.get_by_label("Role").select_option("viewer")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("code.value").inner_text()
    assert token.startswith("rpd_")
    tab.screenshot("ingest-token")
    page.get_by_role("button", name="One-time link for grace").click()
    page.locator("code.value").filter(has_text="/login?link=").wait_for()
    tab.confirms = True
    page.get_by_role("button", name="Revoke grace").click()
    page.wait_for_url("**/ingest#accounts")
    row = page.locator("#accounts tbody tr").filter(has_text="grace")
    row.filter(has_text="Revoked").wait_for()


@pytest.mark.long
def test_a_name_that_is_none_is_said_before_it_is_sent(open_as, watched) -> None:
    tab = open_as(Role.OPERATOR, at=watched)
    tab.goto("/ingest")
    tab.page.get_by_label("New account").fill("Grace Hopper")
    tab.page.get_by_role("button", name="Make a token").click()
    assert tab.page.url.endswith("/ingest")
    assert tab.page.evaluate("document.querySelector('#name').validity.patternMismatch")


def test_figures_are_fetched_again_while_the_page_is_open(open_as, counted) -> None:
    tab = open_as(Role.OPERATOR, at=counted)
    tab.page.clock.install()
    tab.goto("/ingest")
    tab.drawn()
    before = tab.page.locator("#live dl").element_handle()
    with tab.page.expect_response("**/ingest"):
        tab.page.clock.run_for(10_500)
    tab.page.wait_for_function("old => !old.isConnected", arg=before)
    tab.drawn()


@pytest.mark.long
def test_nobody_watched_is_said(open_as, other) -> None:
    tab = open_as(Role.OPERATOR, at=other)
    tab.goto("/ingest")
    assert tab.page.get_by_role("heading", name="Not watched").is_visible()
    tab.screenshot("ingest-not-watched")


@pytest.mark.long
def test_an_officer_reads_the_audit_log_and_gives_no_role_of_others(officer) -> None:
    officer.goto("/ingest")
    assert officer.page.get_by_role("heading", name="Audit log").is_visible()
    assert officer.page.get_by_role("button", name="Make a token").count() == 1
    roles = officer.page.get_by_label("Role").locator("option").all_inner_texts()
    assert "operator" not in roles
