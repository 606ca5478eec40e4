"""Placement of many values at once is the placement of each."""

import numpy as np
import pytest

from rappor import Params, ParamsError
from rappor.decoding import placement
from rappor.decoding.placement import place_all
from rappor.mechanism.dialects import DIALECTS, make_place

# Every length that CityHash treats in its own way, several blocks long too; and odd bytes.
VALUES = [b"", b"\0", b"\xff\xfe", "Zürich".encode(), "日本語".encode()]
VALUES += [(b"%d/" % i * 60)[: i % 150] + b"%d" % i for i in range(300)]


def some(k: int, h: int, m: int) -> Params:
    return Params(k, h, m, 0.5, 0.5, 0.75)


def one_by_one(values: list[bytes], params: Params, dialect: str) -> np.ndarray:
    rows: list[list[int]] = []
    for cohort in range(params.m):
        place = make_place(dialect, cohort, params)
        rows.extend(zip(*(place(value) for value in values), strict=True))
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("k", "h", "m"),
    [
        (2, 1, 5),
        (3, 2, 4),
        (37, 3, 7),
        (128, 2, 16),
        (251, 5, 3),
        (256, 8, 2),
        (257, 8, 3),
        (1000, 4, 2),
        (4095, 7, 2),
        (4096, 8, 2),
    ],
)
def test_every_value_is_placed_as_a_client_places_it(dialect, k, h, m):
    params = some(k, h, m)
    placed = place_all(VALUES, params, dialect)
    assert placed.dtype == np.uint16
    assert placed.flags.c_contiguous
    assert np.array_equal(placed, one_by_one(VALUES, params, dialect))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "k"), [("rappor-v1", 17), ("rappor-v1", 4096), ("chromium", 100), ("google", 256)]
)
def test_sixteen_hashes_are_placed_as_a_client_places_them(dialect, k):
    params = some(k, 16, 3)
    assert np.array_equal(place_all(VALUES, params, dialect), one_by_one(VALUES, params, dialect))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_thousand_cohorts_are_placed_as_a_client_places_them(dialect):
    params, values = some(128, 2, 1024), VALUES[::40]
    assert np.array_equal(place_all(values, params, dialect), one_by_one(values, params, dialect))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_chunks_do_not_change_the_result_and_progress_adds_up(dialect, monkeypatch):
    params = some(128, 2, 6)
    whole = place_all(VALUES, params, dialect)
    monkeypatch.setattr(placement, "CHUNK", 7)
    told: list[int] = []
    assert np.array_equal(place_all(VALUES, params, dialect, told.append), whole)
    assert sum(told) == len(VALUES) * params.m
    assert len(told) >= len(VALUES) / 7


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_values_have_no_bits(dialect):
    assert place_all([], some(128, 2, 6), dialect).shape == (12, 0)


def test_what_a_client_refuses_is_refused():
    with pytest.raises(ParamsError, match="dialect must be one of"):
        place_all([b"a"], some(128, 2, 1), "murmur")
    with pytest.raises(ParamsError, match="h must be at most 8 in dialect 'google'"):
        place_all([b"a"], some(257, 9, 1), "google")
    with pytest.raises(ParamsError, match="strings need h < k"):
        place_all([b"a"], some(2, 2, 1), "rappor-v1")
