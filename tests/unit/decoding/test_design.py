"""The design matrix against X written out in full."""

import numpy as np
import pytest

from rappor import DecodeError, Params
from rappor.decoding import design as module
from rappor.decoding.candidates import Candidates
from rappor.decoding.design import build_design, design_of
from rappor.decoding.placement import place_all
from rappor.mechanism import bloom_positions
from rappor.mechanism.dialects import DIALECTS

STRINGS = [f"candidate {i}" for i in range(120)]


def some(k: int, h: int, m: int) -> Params:
    return Params(k, h, m, 0.5, 0.5, 0.75)


def dense(strings: list[str], params: Params, dialect: str) -> np.ndarray:
    """X in full, from the client's own placement."""
    matrix = np.zeros((params.m * params.k, len(strings)))
    for column, text in enumerate(strings):
        for cohort in range(params.m):
            for bit in bloom_positions(text, cohort, params, dialect):
                matrix[cohort * params.k + bit, column] = 1
    return matrix


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("k", "h", "m"), [(8, 4, 3), (128, 2, 16), (37, 3, 2), (2, 1, 1)])
def test_columns_and_gather_are_those_of_x(dialect, k, h, m):
    params = some(k, h, m)
    design = build_design(STRINGS, params, dialect)
    matrix = dense(list(design.strings), params, dialect)
    which = [5, 0, 117, 5]
    columns = design.columns(which)
    assert columns.format == "csc"
    assert columns.has_sorted_indices
    assert columns.has_canonical_format
    assert np.array_equal(columns.toarray(), matrix[:, which])
    table = np.zeros((m, k + 1))
    table[:, :k] = np.arange(m * k).reshape(m, k)  # whole numbers: sums are exact in any order
    assert design.gather(table).tolist() == (table[:, :k].ravel() @ matrix).tolist()


def test_no_columns_are_an_empty_matrix():
    design = build_design(STRINGS, some(8, 2, 3), "google")
    assert design.columns([]).shape == (24, 0)


def test_a_repeated_bit_is_k_where_it_comes_later_and_is_not_lost():
    params = some(8, 4, 3)
    design = build_design(STRINGS, params, "google")
    placed = place_all(design.strings.encoded(), params, "google")
    for row, column in np.ndindex(*placed.shape):
        earlier = placed[row - row % params.h : row, column]
        expected = params.k if placed[row, column] in earlier else placed[row, column]
        assert design.index[row, column] == expected
    assert np.array_equal(design.positions(), placed)
    assert design.collisions == (design.index == params.k).sum() > 100


def test_the_order_given_does_not_matter():
    params = some(8, 2, 3)
    one, other = (build_design(each, params, "google") for each in (STRINGS, STRINGS[::-1]))
    assert one.strings == other.strings
    assert np.array_equal(one.index, other.index)


def test_a_design_cannot_be_changed():
    design = build_design(STRINGS, some(8, 2, 3), "google")
    with pytest.raises(ValueError, match="read-only"):
        design.index[0, 0] = 1
    with pytest.raises(AttributeError):
        design.params = some(8, 1, 1)


def test_a_table_that_does_not_fit_is_refused():
    design = build_design(STRINGS, some(8, 2, 3), "google")
    with pytest.raises(DecodeError, match=r"shape \(3, 9\), got \(3, 8\)"):
        design.gather(np.zeros((3, 8)))
    with pytest.raises(DecodeError, match="last column of the table must be 0"):
        design.gather(np.ones((3, 9)))


def brute_groups(design) -> list[list[int]]:
    """Groups by sets of bits, one by one."""
    k, h = design.params.k, design.params.h
    found: dict[tuple, list[int]] = {}
    for number, column in enumerate(design.index.T.tolist()):
        cohorts = [column[start : start + h] for start in range(0, len(column), h)]
        found.setdefault(tuple(frozenset(c) - {k} for c in cohorts), []).append(number)
    return [group for group in found.values() if len(group) > 1]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("k", "h", "m"), [(4, 2, 2), (3, 2, 1), (8, 3, 1), (128, 2, 16)])
def test_groups_are_those_with_the_same_sets_of_bits(dialect, k, h, m):
    design = build_design(STRINGS, some(k, h, m), dialect)
    groups = [group.tolist() for group in design.groups()]
    assert groups == brute_groups(design)
    assert bool(groups) == (k < 128)


def test_groups_in_many_chunks_are_the_same(monkeypatch):
    design = build_design(STRINGS, some(4, 2, 2), "google")
    monkeypatch.setattr(module, "CHUNK", 3)
    assert [group.tolist() for group in design.groups()] == brute_groups(design)


@pytest.mark.parametrize("constant", [0, 1], ids=["all keys equal", "many keys equal"])
def test_keys_that_meet_do_not_make_groups(constant, monkeypatch):
    design = build_design(STRINGS, some(8, 2, 2), "google")
    words = np.full((2, 9), constant, np.uint64)
    words[:, 8] = 0
    monkeypatch.setattr(module, "_random_words", lambda params: words)
    assert [group.tolist() for group in design.groups()] == brute_groups(design)


def test_hashes_that_set_the_same_bits_in_another_order_are_one_group():
    placed = np.array([[1, 2, 1, 2], [2, 1, 3, 2], [4, 5, 4, 4], [5, 4, 5, 5]], np.uint16)
    design = design_of(Candidates.of("abcd"[i] for i in range(4)), placed, some(8, 2, 2), None)
    assert [group.tolist() for group in design.groups()] == [[0, 1]]


def test_random_words_differ_and_no_bit_has_none():
    words = module._random_words(some(4096, 2, 16))
    assert (words[:, -1] == 0).all()
    assert len(np.unique(words[:, :-1])) == 4096 * 16
