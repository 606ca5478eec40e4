"""Owners, descriptions, file names, audit entries and addresses that attack: shown as texts."""

import csv
import io
from urllib.parse import quote

import pytest

from rappor.collection import Collection
from rappor.dashboard.auth.roles import Role
from rappor.errors import ParamsError
from support.dashboard import STRINGS
from support.payloads import PAYLOADS, WATCHED

pytestmark = pytest.mark.long


def quiet(tab) -> None:
    """Nothing ran, and nothing of ours is broken."""
    assert tab.page.evaluate("window.fired") == []
    assert tab.page.locator("main h1").count() == 1


@pytest.mark.parametrize("path", ["/", "/?sort=owner", "/ingest", "/ingest?page=2"])
def test_stored_payloads_do_nothing(open_as, other, path) -> None:
    tab = open_as(Role.OPERATOR, at=other)
    tab.page.add_init_script(WATCHED)
    tab.goto(path)
    quiet(tab)
    shown = tab.page.locator("main").inner_text()
    assert "fire(" in shown
    assert "{{ 7*7 }}" in shown or path.startswith("/ingest")
    for each in tab.page.locator("main td, main th").all()[:40]:
        each.hover()
    quiet(tab)


def test_payloads_in_addresses_do_nothing(open_as, other) -> None:
    tab = open_as(Role.OPERATOR, at=other)
    tab.page.add_init_script(WATCHED)
    for text in PAYLOADS:
        given = quote(text, safe="")
        tab.goto(f"/?q={given}&state={given}&sort={given}&page={given}")
        quiet(tab)
    for text in PAYLOADS[::6]:
        given = quote(text, safe="")
        for path in (f"/collections/{given}", f"/{given}", f"/login?next={given}&link={given}"):
            tab.goto(path)
            quiet(tab)


PAIRS = "/collections/pairs/associations"


def test_payloads_as_values_of_a_tuple_do_nothing(open_as, other) -> None:
    """Candidates of one field and categories of the other: in charts, tables, menus, and files."""
    tab = open_as(Role.ANALYST, at=other)
    tab.page.add_init_script(WATCHED)
    tab.ready(PAIRS, charts=2)
    quiet(tab)
    shown = tab.page.locator("main").inner_text()
    assert "fire(" in shown
    for each in tab.page.locator("main td, main th, main svg text").all()[:60]:
        each.hover(force=True)
    quiet(tab)
    for text in PAYLOADS[::8]:
        given = quote(text, safe="")
        for address in (f"?given={given}", f"?q={given}", f"?fields=group%2Cword&given={given}"):
            tab.goto(PAIRS + address)
            tab.settle()
            quiet(tab)
        tab.goto(f"{PAIRS}?fields={given}")  # an error, with the text in it
        quiet(tab)
    drawn = tab.page.request.get(f"{other.url}{PAIRS}.svg?chart=joint").text()
    assert "<script" not in drawn
    assert "<img" not in drawn
    assert formulas(tab.page.request.get(f"{other.url}{PAIRS}.csv").text()) == []


def test_payloads_as_names_are_refused(other) -> None:
    for text in PAYLOADS:
        with pytest.raises(ParamsError):
            other.state.add_account(text, Role.VIEWER, "test")
        with pytest.raises(ParamsError):
            Collection(text, 1, STRINGS)
        if set(text) & set("<>\"'&=@"):
            with pytest.raises(ParamsError):
                Collection("homepage", 1, STRINGS, dimensions={"country": (text,)})


def formulas(text: str) -> list[str]:
    """The cells of a CSV file that a spreadsheet would take for formulas."""
    rows = csv.reader(io.StringIO(text, newline=""))
    return [
        cell
        for row in rows
        for cell in row
        if cell.startswith(("=", "+", "@", "\t", "\r"))
        or (cell.startswith("-") and not cell[1:2].isdigit())
    ]


def test_no_cell_of_a_file_runs_in_a_spreadsheet(other) -> None:
    visit = other.browser(Role.OPERATOR)
    for path in ("/collections.csv", "/ingest/audit.csv", "/ingest.csv"):
        assert formulas(visit.get(path).body.decode()) == [], path
    assert visit.get("/collections.json").headers["content-type"] == "application/json"
