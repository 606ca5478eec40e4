"""map.csv: google/rappor's own files, both ways, and what is wrong with others."""

from pathlib import Path

import numpy as np
import pytest

from rappor import DecodeError, Params
from rappor.decoding import mapfile
from rappor.decoding.candidates import Candidates
from rappor.decoding.design import build_design
from rappor.decoding.mapfile import map_lines, read_map, write_map

REFERENCE = Path(__file__).parents[2] / "vectors" / "reference"
SMALL = Params(8, 2, 2, 0.5, 0.5, 0.75)  # positions 1..8 and 9..16


def equal(one, other) -> bool:
    return (
        one.strings.strings == other.strings.strings
        and np.array_equal(one.index, other.index)
        and np.array_equal(one.repeated, other.repeated)
    )


@pytest.fixture
def read(tmp_path):
    def reader(data: str | bytes, params: Params = SMALL):
        path = tmp_path / "map.csv"
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return read_map(path, params)

    return reader


@pytest.mark.parametrize("name", ["exponential/1", "windows/1", "windows/2"])
def test_googles_maps_are_reproduced_to_the_byte(name, tmp_path):
    folder = REFERENCE / name
    params = Params.from_csv(folder / "params.csv")
    listed = (folder / "candidates.txt").read_text().split()
    design = build_design(listed, params, "google")
    order = [design.strings.strings.index(text) for text in listed]
    write_map(design, tmp_path / "map.csv", order)
    assert (tmp_path / "map.csv").read_bytes() == (folder / "map.csv").read_bytes()
    assert design.collisions > 0  # repeated positions are among them


@pytest.mark.parametrize("name", ["exponential/2", "exponential/3", "windows/1"])
def test_googles_maps_are_read_as_the_candidates_placed(name):
    folder = REFERENCE / name
    params = Params.from_csv(folder / "params.csv")
    design = read_map(folder / "map.csv", params)
    assert design.dialect is None
    assert design.strings.notes == ()
    assert equal(design, build_design(Candidates.read(folder / "candidates.txt"), params, "google"))


@pytest.mark.parametrize("chunk", [3, 1 << 14])
def test_any_string_comes_back_and_repeats_of_several_hashes_too(tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(mapfile, "CHUNK", chunk)
    params = Params(8, 5, 3, 0.5, 0.5, 0.75)
    texts = ["", " a ", "a,b", 'a"b', "two\nlines", "cr\rlf\r\n", "\ufeffmark", "é", "7", "#", "'"]
    for number in range(len(texts)):  # each of them first, where a mark would be dropped
        design = build_design(texts, params, "google")
        order = np.roll(np.arange(len(texts)), number)
        write_map(design, tmp_path / "map.csv", order)
        assert equal(read_map(tmp_path / "map.csv", params), design)
    assert design.collisions > len(texts)


def test_only_the_columns_asked_for_are_written():
    design = build_design(["V_1", "V_2"], SMALL, "google")
    assert [line.split(",")[0] for line in map_lines(design, [1])] == ["V_2"]


def test_a_map_may_have_a_mark_other_line_ends_quotes_and_blank_lines(read):
    design = read('\ufeff"b",1,2,9,10\n\n"a",3,3,11,16\n')
    assert design.strings.strings == ("a", "b")
    assert design.strings.notes == ("1 blank line was skipped",)
    assert design.index.tolist() == [[2, 0], [8, 1], [2, 0], [7, 1]]
    assert design.repeated.tolist() == [2]


def test_the_same_row_twice_is_merged_also_with_its_bits_in_another_order(read):
    design = read("a,1,2,9,10\nb,1,1,9,9\na,2,1,9,10\n")
    assert design.strings.strings == ("a", "b")
    assert design.strings.merged == 1
    assert design.strings.notes == ("1 duplicate candidate was merged, such as 'a'",)
    assert design.positions().T.tolist() == [[0, 1, 0, 1], [0, 0, 0, 0]]


@pytest.mark.parametrize("second", ["a,1,1,9,10", "a,1,3,9,10", "a,1,2,9,11"])
def test_a_string_with_two_sets_of_bits_is_refused(read, second):
    with pytest.raises(DecodeError, match=r"map.csv, line 3: 'a' has other bits .* on line 1"):
        read(f"a,1,2,9,10\nb,1,2,9,10\n{second}\n")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a,1,2,9,10\nb,1,2,9\n", r"line 2: 3 positions .* m \* h = 2 \* 2 = 4"),
        ("a,1,2,9,10,17,18\n", r"line 1: 6 positions"),
        ("a\n", r"line 1: 0 positions"),
        ('"x\ny",1,2,9,10\nb,1,2,9,5000\n', r"line 3: position 5000 lies outside 1\.\.16: is the"),
        ("a,1,2,9,10\nb,0,2,9,10\n", r"line 2: position 0 lies outside 1\.\.16"),
        ("a,1,2,9,17\n", r"position 17 lies outside 1\.\.16"),
        ("a,1,2,8,10\n", r"position 8 lies outside 9\.\.16, which is cohort 1: is the map of ano"),
        ("a,1,9,9,10\n", r"position 9 lies outside 1\.\.8, which is cohort 0"),
        ("a,1,2,9,9999999999\n", r"line 1: .* at most 9 digits, got '9999999999'"),
        ("a,1,2,9,-9\n", r"line 1: a position must be a whole number .* got '-9'"),
        ("a,1,2,9,1_0\n", r"got '1_0'"),
        ("a,1,2,9,\n", r"got ''"),
        ("a,1,2,9,9.5\n", r"got '9.5'"),
        ("a,1,2,9,١\n", r"got '١'"),
        ("string,p1,p2,p3,p4\n", r"line 1: .* got 'p1'"),
        ('a,1,2,9,"9,9"\n', r"got '9,9'"),
        ('a,1,2,9,"9\n', r"line 1: not CSV"),
        ("", r"map.csv: no candidates"),
        (b"a,1,2,9,10\n\xff,1,2,9,10\n", r"map.csv, line 2: not UTF-8"),
    ],
)
def test_what_is_no_map_for_these_params_is_refused_with_its_line(read, rows, message):
    with pytest.raises(DecodeError, match=message):
        read(rows)


def test_the_first_bad_line_is_named_and_lines_of_later_chunks_too(read, monkeypatch):
    monkeypatch.setattr(mapfile, "CHUNK", 2)
    good = "".join(f"{number},1,2,9,10\n" for number in range(5))
    with pytest.raises(DecodeError, match="line 6: position 99"):
        read(good + "x,1,2,9,99\ny,1,2,9,98\n")


def test_maps_of_other_params_are_refused():
    folder = REFERENCE / "windows" / "1"
    for other, message in (
        (Params(128, 2, 16, 0.5, 0.5, 0.75), r"line 1: 16 positions .* 16 \* 2 = 32"),
        (Params(64, 2, 8, 0.5, 0.5, 0.75), r"line \d+: position \d+ lies outside"),
        (Params(256, 2, 8, 0.5, 0.5, 0.75), r"line \d+: position \d+ lies outside 257\.\.512"),
        (Params(128, 4, 4, 0.5, 0.5, 0.75), r"lies outside 1\.\.128, which is cohort 0"),
    ):
        with pytest.raises(DecodeError, match=message):
            read_map(folder / "map.csv", other)
