"""Populations: their shares, their candidate lists, their files, and what they refuse."""

import math

import pytest

from rappor import Params
from rappor.errors import ParamsError
from rappor.simulate import (
    GOOGLE_SHAPES,
    Population,
    exponential,
    google_shape,
    normal,
    read_population,
    simulate,
    uniform,
    zipf,
)

SHAPES = [uniform, normal, exponential, zipf, *GOOGLE_SHAPES]


def made(shape, strings=100, **more):
    if isinstance(shape, str):
        return google_shape(shape, strings, **more)
    return shape(strings, **more)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strings", [1, 7, 100])
def test_shares_add_up_to_1_over_numbered_strings(shape, strings):
    found = made(shape, strings, **({"mean": 2.0} if shape is normal else {}))
    assert found.strings == tuple(f"v{i}" for i in range(1, strings + 1))
    assert math.fsum(found.shares) == pytest.approx(1, abs=1e-12)
    assert found.candidates == found.strings
    assert (found.absent, found.unlisted) == ((), ())


def test_the_exponential_shape_is_that_of_table_1():
    """The truth column of the paper's Table 1: 49,884 of a million, then 4.95 % less each time."""
    shares = exponential().shares
    assert shares[0] * 10**6 == pytest.approx(49_884, rel=0.005)
    assert shares[1] / shares[0] == pytest.approx(0.9505)
    assert shares[99] / shares[98] == pytest.approx(0.9505)


def test_the_normal_shape_is_a_rounded_normal():
    shares = normal().shares
    mean = sum(i * share for i, share in enumerate(shares, 1))
    variance = sum((i - mean) ** 2 * share for i, share in enumerate(shares, 1))
    assert mean == pytest.approx(50, abs=1e-3)
    assert variance == pytest.approx(100 + 1 / 12, abs=0.01)  # rounding adds 1/12
    assert shares[39] == pytest.approx(shares[59])
    assert 0 < normal(100, sd=2.0).shares[99] < 1e-100  # the far tail is not lost to 0


def test_zipf_is_a_power_of_the_shifted_rank():
    shares = zipf(50, power=1.6, shift=10).shares
    for rank in (1, 10, 50):
        assert shares[rank - 1] / shares[0] == pytest.approx(((rank + 10) / 11) ** -1.6)


def test_googles_shapes_are_its_density_functions():
    """Its tests/gen_counts.R: dexp(rate 5/n), dnorm(-n/2+1 .. n/2, sd n/6), 1/x, 1/x^1.5."""
    exp, gauss = google_shape("exp").shares, google_shape("gauss").shares
    assert exp[20] / exp[0] == pytest.approx(math.exp(-1))
    assert max(gauss) == gauss[49]
    assert gauss[49 + 25] / gauss[49] == pytest.approx(math.exp(-(1.5**2) / 2))
    for power, shape in ((1, "zipf1"), (1.5, "zipf1.5")):
        shares = google_shape(shape).shares
        assert shares[0] / shares[8] == pytest.approx(9**power)
    assert set(google_shape("unif", 4).shares) == {0.25}


def test_absent_candidates_are_numbered_on_and_held_by_nobody():
    found = exponential(3, absent=2, prefix="site")
    assert found.candidates == ("site1", "site2", "site3", "site4", "site5")
    assert found.absent == ("site4", "site5")
    assert len(found.strings) == len(found.shares) == 3


@pytest.mark.parametrize(
    ("out", "ranks"), [(1, {50}), (2, {25, 75}), (4, {12, 37, 62, 87}), (100, set(range(100)))]
)
def test_unlisted_strings_are_spread_over_the_ranks(out, ranks):
    found = uniform(100, absent=1, unlisted=out)
    assert found.unlisted == tuple(f"v{rank + 1}" for rank in sorted(ranks))
    assert len(found.candidates) == 101 - out
    assert not set(found.unlisted) & set(found.candidates)


def test_strings_can_be_taken_off_the_list():
    nines = [f"v{i}" for i in range(9, 101, 10)]
    found = uniform(100, absent=10).leaving_out(nines)
    assert found.unlisted == tuple(nines)
    assert len(found.candidates) == 100
    with pytest.raises(ParamsError, match="not on the candidate list: 'w'"):
        found.leaving_out(["w"])
    with pytest.raises(ParamsError, match="at least one"):
        uniform(1).leaving_out(["v1"])


def test_a_population_is_taken_wherever_shares_are():
    params = Params(32, 2, 4, 0.5, 0.25, 0.75)
    shape = exponential(5, absent=2, unlisted=1)
    one = simulate(shape, params, 10_000, seed=1)
    other = simulate(dict(zip(shape.strings, shape.shares, strict=True)), params, 10_000, seed=1)
    assert one.counts == other.counts
    assert one.truth == other.truth | {"v6": 0, "v7": 0}


def test_a_category_of_a_population_has_the_bit_of_its_candidate():
    clear = Params(4, 1, 1, 0.0, 1e-12, 1 - 1e-12)
    shape = Population("x", ("a", "b"), (1, 3), ("nobody", "b", "a"))
    made = simulate(shape, clear, 1_000, seed=2, kind="category")
    assert made.counts.ones[0].tolist() == [0, made.truth["b"], made.truth["a"], 0]
    with pytest.raises(ParamsError, match="no string is unlisted"):
        simulate(shape.leaving_out(["a"]), clear, 1_000, kind="category")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: uniform(0), "strings must be a whole number from 1"),
        (lambda: uniform(2.5), "strings must be a whole number"),
        (lambda: uniform(3, absent=-1), "absent must be a whole number from 0"),
        (lambda: uniform(3, unlisted=4), "unlisted must be a whole number from 0 to 3"),
        (lambda: uniform(3, unlisted=3), "unlisted must leave a candidate"),
        (lambda: uniform(3, prefix=7), "prefix must be a string"),
        (lambda: exponential(decay=1.5), "decay must be a number above 0 and at most 1"),
        (lambda: exponential(decay=0), "decay must be a number above 0"),
        (lambda: zipf(power=-1), "power must be a number above 0"),
        (lambda: zipf(shift=-1), "shift must be a number above -1"),
        (lambda: zipf(shift=math.nan), "shift must be a finite number"),
        (lambda: normal(sd=0), "sd must be a number above 0"),
        (lambda: normal(mean=1e9), "mean must be near the range 1 to 100"),
        (lambda: google_shape("bell"), "shape must be one of unif, exp"),
        (lambda: Population("", ("a",), (1,)), "name must be a non-empty string"),
        (lambda: Population("x", ("a", "a"), (1, 1)), "strings must be different"),
        (lambda: Population("x", ("a",), (1, 2)), "1 strings need 1 shares"),
        (lambda: Population("x", ("a",), (0,)), "not all 0"),
        (lambda: Population("x", ("a",), (math.inf,)), "shares must be numbers from 0 on"),
        (lambda: Population("x", ("a",), ("b",)), "shares must be numbers from 0 on"),
        (lambda: Population("x", "abc", (1, 2, 3)), "strings must be one or more strings"),
        (lambda: Population("x", ("a",), (1,), (3,)), "candidates must be one or more strings"),
    ],
)
def test_what_is_no_population_is_refused_by_name(make, message):
    with pytest.raises(ParamsError, match=message):
        make()


def test_a_csv_of_frequencies_is_read_largest_first(tmp_path):
    file = tmp_path / "visits.csv"
    file.write_text('\ufeffstring,frequency\nb.org,1\n"a,b",2.5\n\nc.org,0\nv1,1.5\n', "utf-8")
    found = read_population(file, absent=1, unlisted=1)
    assert found.strings == ("a,b", "v1", "b.org", "c.org")
    assert found.shares == (0.5, 0.3, 0.2, 0.0)
    assert found.candidates == ("a,b", "v1", "c.org", "absent1")
    assert found.name == "visits.csv"


def test_lines_of_text_count_as_often_as_they_repeat(tmp_path):
    file = tmp_path / "values.txt"
    file.write_text("x\ny\n\nx\nx\r\n", "utf-8")
    found = read_population(file)
    assert dict(zip(found.strings, found.shares, strict=True)) == {"x": 0.75, "y": 0.25}


def test_added_names_avoid_those_that_are_held(tmp_path):
    file = tmp_path / "values.txt"
    file.write_text("absent1\nother\n", "utf-8")
    assert read_population(file, absent=2).absent == ("absent2", "absent3")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "value,count\nx,1\n", "line 1: expected the header string,frequency"),
        ("a.csv", "string,frequency\nx,one\n", "line 2: the frequency must be a number from 0"),
        ("a.csv", "string,frequency\nx,-1\n", "line 2: the frequency must be a number from 0"),
        ("a.csv", "string,frequency\nx,nan\n", "line 2: the frequency must be a number from 0"),
        ("a.csv", "string,frequency\nx,1\nx,2\n", "line 3: 'x' is listed twice"),
        ("a.csv", "string,frequency\nx\n", "line 2: expected a string and a frequency"),
        ("a.csv", 'string,frequency\n"x,1\n', "not CSV"),
        ("a.csv", "string,frequency\nx,0\n", "all frequencies are 0"),
        ("a.csv", "string,frequency\n", "no strings in it"),
        ("a.csv", "", "expected the header"),
        ("a.txt", "\n\n", "no strings in it"),
    ],
)
def test_files_that_are_no_population_say_the_line(tmp_path, name, text, message):
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(ParamsError, match=message):
        read_population(tmp_path / name)


def test_a_file_that_cannot_be_read_says_which(tmp_path):
    with pytest.raises(ParamsError, match=r"cannot read .*none\.csv"):
        read_population(tmp_path / "none.csv")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParamsError, match="not UTF-8"):
        read_population(tmp_path / "b.txt")
