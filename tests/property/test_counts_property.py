"""Counts are a commutative monoid; counting respects it; engines agree, on any bytes too."""

from collections.abc import Callable
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rappor import Params
from rappor.aggregate import (
    Counts,
    _engine,
    count,
    kernel_numba,
    kernel_numpy,
    read_csv,
    read_jsonl,
)
from rappor.aggregate.file_parts import FilePart

SMALL = Params(5, 1, 3, 0.5, 0.5, 0.75)


@st.composite
def counts(draw: st.DrawFn) -> Counts:
    totals = draw(st.lists(st.integers(0, 2**61), min_size=3, max_size=3))
    ones = [draw(st.lists(st.integers(0, n), min_size=5, max_size=5)) for n in totals]
    return Counts(SMALL, totals, ones, reports_per_client=draw(st.none() | st.integers(1, 9)))


@st.composite
def reports(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Params]:
    """Reports of any width in runs of any length."""
    k, m = draw(st.integers(1, 300)), draw(st.integers(1, 9))
    runs = draw(st.lists(st.tuples(st.integers(0, m - 1), st.integers(1, 400)), max_size=8))
    cohorts = np.repeat([c for c, _ in runs], [n for _, n in runs]).astype(np.int64)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    packed = rng.integers(0, 256, (len(cohorts), -(-k // 8)), np.uint8)
    packed[:, -1] &= 255 >> (-k % 8)
    return packed, cohorts, Params(k, 1, m, 0.5, 0.5, 0.75)


@pytest.mark.slow
@given(counts(), counts(), counts())
def test_adding_is_associative(a: Counts, b: Counts, c: Counts) -> None:
    assert (a + b) + c == a + (b + c)


@pytest.mark.slow
@given(counts(), counts())
def test_adding_is_commutative(a: Counts, b: Counts) -> None:
    assert a + b == b + a


@pytest.mark.slow
@given(counts())
def test_zero_is_neutral(a: Counts) -> None:
    zero = Counts.zero(SMALL)
    assert (a + zero).totals.tolist() == a.totals.tolist()
    assert a + zero == zero + a == a


@pytest.mark.slow
@given(counts(), counts())
def test_adding_changes_neither_part(a: Counts, b: Counts) -> None:
    before = a.totals.copy(), a.ones.copy()
    total = a + b
    assert np.array_equal(total.ones - b.ones, before[1])
    assert np.array_equal(a.totals, before[0])
    assert np.array_equal(a.ones, before[1])


@pytest.mark.slow
@given(reports(), st.data())
def test_counts_of_parts_add_up_to_counts_of_the_whole(
    made: tuple[np.ndarray, np.ndarray, Params], data: st.DataObject
) -> None:
    packed, cohorts, params = made
    cut = data.draw(st.integers(0, len(cohorts)))
    parts = count(packed[:cut], cohorts[:cut], params) + count(packed[cut:], cohorts[cut:], params)
    assert parts == count(packed, cohorts, params)


@pytest.mark.slow
@given(reports(), st.integers(0, 2**32))
def test_the_order_of_reports_does_not_matter(
    made: tuple[np.ndarray, np.ndarray, Params], seed: int
) -> None:
    packed, cohorts, params = made
    order = np.random.default_rng(seed).permutation(len(cohorts))
    assert count(packed[order], cohorts[order], params) == count(packed, cohorts, params)


@pytest.mark.slow
@given(reports())
def test_the_engines_agree(made: tuple[np.ndarray, np.ndarray, Params]) -> None:
    packed, cohorts, params = made
    fast, slow = (
        engine.count_rows(packed, cohorts, -1, params.m) for engine in (kernel_numba, kernel_numpy)
    )
    assert np.array_equal(fast[0], slow[0])
    assert np.array_equal(fast[1][:, : params.k], slow[1][:, : params.k])


# Lines that are almost right are where two readers would differ.
CSV_PIECES = [
    b"a,1,01010",
    b"1",
    b"01010",
    b"0",
    b",",
    b'"',
    b'""',
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"a",
]
JSON_PIECES = [
    b'{"cohort":',
    b'"bits":',
    b'"irr":',
    b"1",
    b'"01010"',
    b'{"cohort": 2, "bits": "11111"}',
]
JSON_PIECES += [b"{", b"}", b",", b'"', b" ", b"0", b"\t", b"\r", b"\n", b".5", b"\\u0030"]


def from_csv(data: bytes) -> FilePart:
    return read_csv.parse_piece(data, read_csv.CsvColumns(3, 1, 2), SMALL)


def from_json(data: bytes) -> FilePart:
    return read_jsonl.parse_piece(data, SMALL)


def facts(part: FilePart) -> object:
    reports = sorted(zip(part.cohorts.tolist(), map(bytes, part.packed), strict=True))
    return reports, part.lines, part.wrong


@pytest.mark.slow
@pytest.mark.parametrize(
    ("read", "pieces"), [(from_csv, CSV_PIECES), (from_json, JSON_PIECES)], ids=["csv", "json"]
)
@given(data=st.data())
def test_lines_mean_the_same_with_and_without_numba(
    read: Callable[[bytes], FilePart], pieces: list[bytes], data: st.DataObject
) -> None:
    written = b"".join(data.draw(st.lists(st.sampled_from(pieces), min_size=1, max_size=30)))
    quick = facts(read(written))
    with mock.patch.object(_engine, "load", return_value=None):
        assert facts(read(written)) == quick


@given(st.binary(min_size=1, max_size=60))
@example(b"\r")
@example(b"\n\n")
@example(b"a,1,01010\r")
def test_any_bytes_are_reports_or_accounted_for(data: bytes) -> None:
    for read in (from_csv, from_json):
        part = read(data)
        filled = [line for line in data.split(b"\n") if line.removesuffix(b"\r").strip(b" \t")]
        assert len(part.packed) + part.wrong.count == len(filled)
        assert part.lines == data.count(b"\n") + (not data.endswith(b"\n"))
