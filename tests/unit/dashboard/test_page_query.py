"""PageQuery: one address for a query, every part checked, and a key of what changes numbers."""

import pytest

from rappor.dashboard.catalogue import Catalogue
from rappor.dashboard.query_reading import read_query
from rappor.dashboard.state import DashboardState
from rappor.dashboard.trends import trend
from rappor.decoding import options
from rappor.errors import ParamsError
from support.dashboard import sample_folder, week


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    sample = sample_folder(tmp_path_factory.mktemp("view"))
    state = DashboardState(sample.data / "dashboard.sqlite", sample.definitions)
    state.save_candidates("homepage", ["a.org"], "test")
    yield Catalogue(sample.data, sample.definitions), state
    state.close()


def view(stored, name="homepage", **query):
    return read_query(query, *stored, name)


def test_the_usual_view_has_an_empty_address(stored):
    usual = view(stored)
    assert usual.query_string() == ""
    assert usual.path() == "/collections/homepage"
    assert (usual.first, usual.last, usual.periods) == (week(0), week(0), (week(0),))
    assert (usual.unit, usual.scale, usual.correction, usual.alpha) == (
        "share",
        "linear",
        "fdr",
        0.05,
    )
    assert usual.candidates == 2


def test_addresses_have_one_order_and_leave_out_what_is_usual(stored):
    given = {
        "sort": "string",
        "q": "a b&c",
        "candidates": "1",
        "method": "lasso",
        "alpha": "0.01",
        "correction": "holm",
        "scale": "log",
        "unit": "count",
        "vs": week(5),
        "country": "NZ",
        "to": week(1),
        "from": week(2),
        "page": "3",
        "show": "all",
    }
    shown = view(stored, **given)
    assert shown.query_string() == (
        f"from={week(2)}&to={week(1)}&country=NZ&vs={week(5)}&unit=count&scale=log&correction=holm"
        "&alpha=0.01&method=lasso&candidates=1&q=a+b%26c&sort=string&show=all&page=3"
    )
    assert view(stored, **shown.fields()) == shown
    usual = {"unit": "share", "scale": "linear", "alpha": "0.05", "to": week(0), "page": "1"}
    assert view(stored, **usual).query_string() == ""


def test_a_change_goes_back_to_the_first_page(stored):
    shown = view(stored, page="3", show="all")
    assert "page" not in shown.query_string(sort="string")
    assert shown.query_string(page=4).endswith("page=4")


def test_ends_in_the_wrong_order_are_turned_round(stored):
    shown = view(stored, **{"from": week(1), "to": week(3)})
    assert (shown.first, shown.last) == (week(3), week(1))
    assert len(shown.periods) == 3


def test_the_key_holds_what_changes_numbers_and_nothing_else(stored):
    usual = view(stored)
    for same in ({"unit": "count"}, {"scale": "log"}, {"q": "x"}, {"sort": "snr"}, {"page": "2"}):
        assert view(stored, **same).key == usual.key
    changed = [
        {"to": week(1)},
        {"country": "NZ"},
        {"vs": week(1)},
        {"correction": "none"},
        {"alpha": "0.1"},
        {"method": "lasso"},
        {"candidates": "1"},
    ]
    keys = {view(stored, **each).key for each in changed} | {usual.key}
    assert len(keys) == len(changed) + 1


def test_results_of_another_decoder_are_made_again(stored, monkeypatch):
    """Saved numbers are found by a key that names the version of the decoder."""
    shown = view(stored)
    over_time = trend.TrendQuery(shown, None, (), ())
    before = shown.key, over_time.key
    for module in (options, trend):
        monkeypatch.setattr(module, "DECODER_VERSION", options.DECODER_VERSION + 1)
    assert shown.key != before[0]
    assert over_time.key != before[1]


@pytest.mark.parametrize(
    ("query", "about"),
    [
        ({"from": "2026-13-45"}, "from"),
        ({"to": "2026-11-16"}, "to"),  # a day, where weeks are collected
        ({"country": "XX"}, "country"),
        ({"unit": "litres"}, "unit"),
        ({"scale": "cubic"}, "scale"),
        ({"correction": "bogus"}, "correction"),
        ({"alpha": "0"}, "alpha"),
        ({"alpha": "nan"}, "alpha"),
        ({"alpha": "many"}, "alpha"),
        ({"method": "magic"}, "method"),
        ({"candidates": "7"}, "candidates"),
        ({"sort": "colour"}, "sort"),
        ({"page": "0"}, "page"),
        ({"page": "9" * 40}, "page"),
        ({"version": "9"}, "version"),
        ({"vs": "planet=Mars"}, "vs"),
        ({"vs": "country=NZ"}, "vs"),  # part of all
        ({"vs": "country=NZ", "country": "NZ"}, "vs"),
        ({"vs": "soon"}, "vs"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(stored, query, about):
    with pytest.raises(ParamsError, match=about):
        view(stored, **query)


def test_a_comparison_shares_no_report_with_what_is_shown(stored):
    with pytest.raises(ParamsError, match="part of what is shown"):
        view(stored, **{"from": week(2), "to": week(0), "vs": week(1)})
    other = view(stored, country="NZ", vs="country=DE").against
    assert other is not None
    assert other.dimensions == (("country", "DE"),)
    earlier = view(stored, vs=f"{week(4)}..{week(3)}").against
    assert earlier is not None
    assert earlier.periods == (week(4), week(3))


def test_ranges_are_read_from_low_to_high(stored):
    assert view(stored, "start-time").sort == "place"
    assert view(stored, "start-time").query_string() == ""
    assert view(stored, "start-time").candidates is None
    assert view(stored, "start-time", method="lasso").method == "auto"


def test_an_unknown_collection_is_said(stored):
    with pytest.raises(ParamsError, match="no collection"):
        view(stored, "nowhere")
