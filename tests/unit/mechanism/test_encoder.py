"""A4: what changes B', what does not, and what never shows."""

import subprocess
import sys

import pytest

from rappor import Encoder, Params, ParamsError, Report
from rappor.mechanism import memo_digest

PARAMS = Params(k=128, h=2, m=16, f=0.5, p=0.5, q=0.75)
SECRET = bytes(range(32))


def permanent(params=PARAMS, value="example.com", secret=SECRET, **shape):
    shape = {"collection": "homepage", "cohort": 3, **shape}
    return Encoder(params, secret=secret, **shape).trace(value).permanent


def test_the_same_client_and_value_have_one_memo_over_ten_thousand_reports():
    encoder = Encoder(PARAMS, secret=SECRET, collection="homepage")
    assert len({encoder.trace("example.com").permanent for _ in range(10_000)}) == 1
    assert len({encoder.encode("example.com") for _ in range(100)}) == 100


@pytest.mark.slow
def test_a_new_process_has_the_same_memo():
    code = (
        "from rappor import Encoder, Params\n"
        "e = Encoder(Params(128, 2, 16, 0.5, 0.5, 0.75), secret=bytes(range(32)),"
        " collection='homepage', cohort=3)\n"
        "print(e.trace('example.com').permanent)"
    )
    found = {
        int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(2)
    }
    assert found == {permanent()}


@pytest.mark.parametrize(
    "other",
    [
        {"params": Params(128, 2, 16, 0.25, 0.5, 0.75)},
        {"params": Params(128, 1, 16, 0.5, 0.5, 0.75)},
        {"params": Params(128, 2, 32, 0.5, 0.5, 0.75)},
        {"params": Params(129, 2, 16, 0.5, 0.5, 0.75)},
        {"dialect": "google"},
        {"collection": "homepage2"},
        {"cohort": 4},
        {"secret": bytes(32)},
        {"value": "example.org"},
        {"value": b"example.co"},
        {"period": "2026-W07"},
        {"kind": "bits", "value": 0, "params": Params(128, 1, 16, 0.5, 0.5, 0.75)},
    ],
)
def test_what_shapes_the_memo_gives_an_independent_one(other):
    flips = permanent(**other) ^ permanent()
    assert 25 <= flips.bit_count() <= 75  # expected 48 + signal bits, standard deviation 5.5


@pytest.mark.parametrize(
    "other", [{"params": Params(128, 2, 16, 0.5, 0.25, 0.9)}, {"value": b"example.com"}]
)
def test_p_and_q_and_bytes_for_text_do_not_change_the_memo(other):
    assert permanent(**other) == permanent()


def test_the_order_of_categories_and_the_edges_of_ranges_shape_the_memo():
    params = Params(3, 1, 1, 0.5, 0.5, 0.75)
    digests = {
        memo_digest(params, "category", categories=order)
        for order in (["a", "b", "c"], ["b", "a", "c"], ["ab", "c"], ["a", "bc"], ["a", "b"])
    }
    assert len(digests) == 5
    wide = Params(64, 1, 1, 0.5, 0.5, 0.75)
    names = [f"name {i}" for i in range(64)]
    one = permanent(wide, "name 5", kind="category", categories=names, cohort=0)
    two = permanent(wide, "name 5", kind="category", categories=names[::-1], cohort=0)
    assert 10 <= (one ^ two).bit_count() <= 45


def test_a_null_report_has_a_memo_of_its_own():
    params = Params(128, 2, 1, 0.5, 0.0, 1.0)  # S = B'
    encoder = Encoder(params, secret=SECRET, collection="homepage")
    null = {encoder.encode_null().bits for _ in range(5)}
    assert len(null) == 1
    empty = encoder.trace("")
    assert null != {empty.permanent ^ empty.signal}


def test_the_cohort_is_derived_from_the_secret_and_the_collection():
    made = [Encoder(PARAMS, secret=SECRET, collection="homepage").cohort for _ in range(3)]
    assert len(set(made)) == 1
    others = {Encoder(PARAMS, secret=SECRET, collection=f"c{i}").cohort for i in range(100)}
    assert len(others) == PARAMS.m


def test_a_report_is_a_cohort_and_bits_and_nothing_else():
    report = Encoder(PARAMS, secret=SECRET, collection="homepage", cohort=3).encode("x")
    assert isinstance(report, Report)
    assert report._fields == ("cohort", "bits")
    assert report == Report(3, report.bits)
    assert 0 <= report.bits < 1 << PARAMS.k


def test_neither_secret_nor_value_shows_in_a_repr():
    encoder = Encoder(PARAMS, secret=b"marker-secret-marker", collection="homepage")
    assert "marker" not in repr(encoder)
    assert not hasattr(encoder, "__dict__")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"secret": "text"}, "secret"),
        ({"secret": b""}, "secret"),
        ({"secret": None}, "secret"),
        ({"collection": ""}, "collection"),
        ({"collection": None}, "collection"),
        ({"cohort": 16}, "cohort"),
        ({"cohort": -1}, "cohort"),
        ({"cohort": True}, "cohort"),
        ({"cohort": 1.0}, "cohort"),
        ({"kind": "strings"}, "kind"),
        ({"dialect": "googel"}, "dialect"),
        ({"period": ""}, "period"),
        ({"categories": ["a"]}, "categories"),
        ({"kind": "category"}, "categories"),
    ],
)
def test_wrong_arguments_are_refused_by_name(wrong, named):
    shape = {"secret": SECRET, "collection": "homepage", **wrong}
    params = Params(128, 1, 16, 0.5, 0.5, 0.75)
    with pytest.raises(ParamsError, match=named):
        Encoder(params, **shape)
    with pytest.raises(ParamsError, match="params"):
        Encoder("windows", secret=SECRET, collection="homepage")
