"""The page Ingest in a real browser, beside a real collector."""

import contextlib

import pytest

from rappor.dashboard.access.roles import Role
from support.collecting import batch, client_of, collector, write_collections
from support.dashboard import Sample, serving


@pytest.fixture(scope="module")
def watched(tmp_path_factory):
    """A dashboard that watches a collector which took and refused some batches."""
    folder = tmp_path_factory.mktemp("ingest")
    write_collections(folder)
    with contextlib.ExitStack() as stack:
        process = stack.enter_context(collector(folder))
        address = f"http://127.0.0.1:{process.port}"
        dashboard = stack.enter_context(serving(Sample(folder), "--collector", address))
        visit = dashboard.browser(Role.OPERATOR)
        wait_until(visit, "Healthy")
        with client_of(process) as client:
            for number in range(40):
                client.send(batch() if number % 8 else b"nonsense")
            client.send(batch(period="2020-01-01"))
        wait_until(visit, "malformed-batch")
        yield dashboard


def wait_until(visit, text: str) -> None:
    from support.collecting import wait_for

    wait_for(lambda: text in visit.get("/ingest").text, 30)


def test_screenshots_of_ingest(open_as, watched, look) -> None:
    kind, options = look
    tab = open_as(Role.OPERATOR, at=watched, **options)
    tab.goto("/ingest")
    tab.drawn()
    assert tab.page.get_by_text("Healthy").first.is_visible()
    assert tab.page.get_by_text("The body is not a batch.").is_visible()
    assert tab.sideways() == 0
    assert tab.violations() == []
    tab.screenshot(f"ingest-{kind}")


def test_figures_are_fetched_anew_while_the_page_is_open(open_as, watched) -> None:
    tab = open_as(Role.OPERATOR, at=watched)
    tab.page.clock.install()
    tab.goto("/ingest")
    tab.drawn()
    before = tab.page.locator("#live dl").element_handle()
    with tab.page.expect_response("**/ingest"):
        tab.page.clock.run_for(10_500)
    tab.page.wait_for_function("old => !old.isConnected", arg=before)
    tab.drawn()


def test_an_operator_makes_a_token_and_revokes_it(open_as, watched) -> None:
    tab = open_as(Role.OPERATOR, at=watched)
    page = tab.page
    tab.goto("/ingest")
    page.get_by_label("New account").fill("grace")
    page.get_by_label("Role").select_option("privacy officer")
    page.get_by_role("button", name="Make a token").click()
    token = page.locator("code.value").inner_text()
    assert token.startswith("rpd_")
    tab.screenshot("ingest-token")
    page.get_by_role("button", name="One-time link for grace").click()
    assert "/login?link=" in page.locator("code.value").inner_text()
    tab.confirms = True
    page.get_by_role("button", name="Revoke grace").click()
    page.wait_for_url("**/ingest#accounts")
    row = page.locator("#accounts tbody tr").filter(has_text="grace")
    assert "Revoked" in row.inner_text()


def test_a_name_that_is_none_is_said_before_it_is_sent(open_as, watched) -> None:
    tab = open_as(Role.OPERATOR, at=watched)
    tab.goto("/ingest")
    tab.page.get_by_label("New account").fill("Grace Hopper")
    tab.page.get_by_role("button", name="Make a token").click()
    assert tab.page.url.endswith("/ingest")
    assert tab.page.evaluate("document.querySelector('#name').validity.patternMismatch")


def test_nobody_watched_is_said(operator) -> None:
    operator.goto("/ingest")
    assert operator.page.get_by_role("heading", name="Not watched").is_visible()
    operator.screenshot("ingest-not-watched")


def test_an_officer_reads_and_changes_nothing(officer) -> None:
    officer.goto("/ingest")
    assert officer.page.get_by_role("heading", name="Audit log").is_visible()
    assert officer.page.get_by_role("button", name="Make a token").count() == 0
