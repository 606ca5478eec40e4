"""Interop: every published vector, and our own golden ones, reproduced."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from rappor import EncodeError, Encoder, Params, ParamsError, Ranges, bloom_positions
from rappor.mechanism import derive_cohort, filter_bits, memo_digest
from rappor.wire import from_text, pack, to_text
from support import google_client
from support.golden_tuples import allotted
from support.tuple_cases import views_from

VECTORS = Path(__file__).parents[2] / "vectors"
GOOGLE = json.loads((VECTORS / "google.json").read_text("utf-8"))
DIALECTS = json.loads((VECTORS / "dialects.json").read_text("utf-8"))["vectors"]
OURS = json.loads((VECTORS / "rappor-v1.json").read_text("ascii"))
TUPLES = json.loads((VECTORS / "tuples.json").read_text("ascii"))


def params_of(row: dict) -> Params:
    f = row.get("f", 0.5)  # three of google's vectors have f = 1, which we refuse; bits ignore f
    return Params(row["k"], row["h"], row["m"], 0.5 if f == 1 else f, 0.5, 0.75)


@pytest.mark.parametrize("row", GOOGLE["u32"] + GOOGLE["long"])
def test_google_positions_are_reproduced(row):
    positions = bloom_positions(row["value"], row["cohort"], params_of(row), "google")
    assert list(positions) == row["bloom_bits"]


@pytest.mark.parametrize("row", GOOGLE["u32"])
def test_google_filters_and_permanent_responses_of_its_short_clients_are_reproduced(row):
    k, f, secret = row["k"], row["f"], row["secret"].encode()
    bloom = filter_bits(bloom_positions(row["value"], row["cohort"], params_of(row), "google"))
    assert (bloom, to_text(bloom, k)) == (row["bloom"], row["bloom_str"])

    python = google_client.python_masks(secret, bloom, k, f)
    assert python == (row["python"]["uniform"], row["python"]["f_mask"])
    prr = google_client.permanent(bloom, *python)
    assert (prr, to_text(prr, k)) == (row["python"]["prr"], row["python"]["prr_str"])

    cpp = google_client.cpp_masks(secret, row["cpp"]["encoder_id"], bloom, k, f)
    prr = google_client.permanent(bloom, *cpp)
    assert (prr, to_text(prr, k)) == (row["cpp"]["prr"], row["cpp"]["prr_str"])
    assert google_client.cpp_cohort(secret, row["m"]) == row["cpp"]["assigned_cohort"]


@pytest.mark.parametrize("row", GOOGLE["long"])
def test_google_filters_and_permanent_responses_of_its_long_client_are_reproduced(row):
    k, secret = row["k"], row["secret"].encode()
    bloom = filter_bits(bloom_positions(row["value"], row["cohort"], params_of(row), "google"))
    assert pack(bloom, k)[::-1].hex() == row["cpp"]["bloom_hex"]
    found = google_client.cpp_long_masks(secret, row["cpp"]["encoder_id"], bloom, k, row["f"])
    assert pack(google_client.permanent(bloom, *found), k)[::-1].hex() == row["cpp"]["prr_hex"]
    assert google_client.cpp_long_cohort(secret, row["m"]) == row["cpp"]["assigned_cohort"]


@pytest.mark.parametrize("dialect", ["google-java", "chromium"])
@pytest.mark.parametrize("row", DIALECTS)
def test_other_dialects_are_reproduced(row, dialect):
    assert (
        list(bloom_positions(row["value"], row["cohort"], params_of(row), dialect)) == row[dialect]
    )


def test_chromium_vectors_cover_every_length_branch():
    lengths = [len(row["value"].encode()) for row in DIALECTS]
    for low, high in ((0, 16), (17, 32), (33, 64), (65, 10**6)):
        assert sum(low <= length <= high for length in lengths) >= 4


@pytest.mark.parametrize(("value", "bits"), [("Test", 0x2A), ("Bar", 0xA8)])
def test_chromium_filters_of_its_own_unit_test(value, bits):
    params = Params(8, 4, 1, 0.5, 0.5, 0.75)
    assert filter_bits(bloom_positions(value, 0, params, "chromium")) == bits


@pytest.mark.parametrize("row", OURS["placements"])
def test_rappor_v1_positions_are_frozen(row):
    assert list(bloom_positions(row["value"], row["cohort"], params_of(row))) == row["positions"]


@pytest.mark.parametrize("row", OURS["memos"])
def test_memos_are_frozen(row):
    ranges = Ranges(Fraction(edge) for edge in row["edges"]) if "edges" in row else None
    encoder = Encoder(
        params_of(row),
        secret=bytes.fromhex(OURS["secret"]),
        collection=row["collection"],
        kind=row["kind"],
        categories=row.get("categories"),
        ranges=ranges,
        period=row["period"],
    )
    trace = encoder.trace(row["value"])
    k = row["k"]
    assert (encoder.memo_digest, encoder.cohort) == (row["memo_digest"], row["cohort"])
    assert to_text(trace.signal, k) == row["signal"]
    assert to_text(trace.permanent, k) == row["permanent"]
    assert pack(trace.permanent, k).hex() == row["packed_permanent"]
    assert encoder._null() == from_text(row["null_permanent"], k)


@pytest.mark.parametrize("row", TUPLES["allotments"])
def test_the_allotment_of_cohorts_to_views_is_frozen(row):
    assert list(allotted(row["shares"], row["m"])) == row["cohorts"]


@pytest.mark.parametrize("row", TUPLES["memos"])
def test_memos_of_tuples_are_frozen(row):
    views, k = views_from(row, row["m"]), row["k"]
    encoder = Encoder(
        params_of(row),
        secret=bytes.fromhex(TUPLES["secret"]),
        collection=row["collection"],
        cohort=row["cohort"],
        kind="tuple",
        fields=views.fields,
        views=views.views,
        period=row["period"],
    )
    trace = encoder.trace(row["value"])
    view = views.table(row["m"])[row["cohort"]]
    assert encoder.memo_digest == row["memo_digest"]
    assert views.encode(view, row["value"]).hex() == row["memo_input"]
    assert encoder.view == views.views[view].fields
    assert to_text(trace.signal, k) == row["signal"]
    assert to_text(trace.permanent, k) == row["permanent"]
    assert encoder._null() == from_text(row["null_permanent"], k)


@pytest.mark.parametrize("row", TUPLES["refused"])
def test_tuples_that_no_client_reports_are_refused_in_every_view(row):
    views = views_from(row, 8)
    for view in range(len(views.views)):
        with pytest.raises(EncodeError):
            views.encode(view, row["value"])


@pytest.mark.parametrize("row", OURS["cohorts"])
def test_cohorts_are_frozen(row):
    secret = bytes.fromhex(OURS["secret"])
    assert derive_cohort(secret, row["collection"], row["m"]) == row["cohort"]


@pytest.mark.parametrize("row", OURS["params_digests"])
def test_params_digests_are_frozen(row):
    assert Params.from_dict(row["params"]).digest == row["digest"]


@pytest.mark.parametrize("row", OURS["memo_digests"])
def test_memo_digests_are_frozen(row):
    params = Params.from_dict(OURS["params_digests"][0]["params"])
    assert memo_digest(params, "string", row["dialect"]) == row["digest"]


@pytest.mark.parametrize("row", OURS["bad"], ids=[row["why"] for row in OURS["bad"]])
def test_bad_vectors_are_refused(row):
    with pytest.raises((ParamsError, EncodeError)):
        bloom_positions(row["value"], row["cohort"], params_of(row))
