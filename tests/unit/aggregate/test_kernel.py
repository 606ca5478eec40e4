"""Counting bits: exact for every width, order and engine, and strict about what it is given."""

import subprocess
import sys

import numpy as np
import pytest

from rappor import Params, WireError
from rappor.aggregate import Counts, count, kernel_numba, kernel_numpy
from rappor.wire import pack

WIDTHS = [1, 7, 8, 9, 63, 64, 65, 127, 128, 129, 192, 1024, 1025, 4096]


def params_of(k: int, m: int = 3) -> Params:
    return Params(k, 1, m, 0.5, 0.5, 0.75)


def random_reports(n: int, k: int, seed: int = 1) -> list[int]:
    """Reports as whole numbers, with every density of bits from all 0 to all 1."""
    rng = np.random.default_rng(seed)
    made = [int.from_bytes(rng.bytes(-(-k // 8)), "little") % (1 << k) for _ in range(n)]
    return [(0, (1 << k) - 1, bits)[min(i % 7, 2)] for i, bits in enumerate(made)]


def packed_of(reports: list[int], k: int) -> np.ndarray:
    blob = b"".join(pack(bits, k) for bits in reports)
    return np.frombuffer(blob, np.uint8).reshape(len(reports), -(-k // 8))


def naive(reports: list[int], cohorts: list[int], params: Params) -> Counts:
    """One bit after the other."""
    totals = [0] * params.m
    ones = [[0] * params.k for _ in range(params.m)]
    for bits, cohort in zip(reports, cohorts, strict=True):
        totals[cohort] += 1
        for bit in range(params.k):
            ones[cohort][bit] += bits >> bit & 1
    return Counts(params, totals, ones, reports_per_client=None)


@pytest.mark.parametrize("k", WIDTHS)
@pytest.mark.parametrize("order", ["mixed", "grouped", "one"])
def test_counts_are_those_of_a_naive_loop(k: int, order: str, engine: str) -> None:
    params = params_of(k)
    n = 300 if k < 1000 else 70
    reports = random_reports(n, k)
    cohorts = [(i * i + i // 5) % 3 for i in range(n)]
    if order == "grouped":
        cohorts.sort()
    given: object = cohorts
    if order == "one":
        given, cohorts = 2, [2] * n
    assert count(packed_of(reports, k), given, params) == naive(reports, cohorts, params)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 8, 13, 64, 128, 192, 1024, 1040])
def test_the_engines_agree_on_many_reports_in_runs_of_every_length(k: int) -> None:
    rng = np.random.default_rng(k)
    n, m = 40_000 if k < 500 else 6_000, 5
    packed = rng.integers(0, 256, (n, -(-k // 8)), np.uint8)
    packed[:, -1] &= 255 >> (-k % 8)
    lengths = rng.integers(1, 2_000, n) ** 2 // 2_000 + 1  # from single reports to long runs
    cohorts = np.repeat(rng.integers(0, m, n), lengths)[:n]
    fast = kernel_numba.count_rows(packed, cohorts, -1, m)
    slow = kernel_numpy.count_rows(packed, cohorts, -1, m)
    assert fast[2] == slow[2] == -1
    np.testing.assert_array_equal(fast[0], slow[0])
    np.testing.assert_array_equal(fast[1][:, :k], slow[1][:, :k])
    assert not fast[1][:, k:].any()


@pytest.mark.parametrize("k", [64, 128, 1024])
@pytest.mark.parametrize("alternating", [False, True])
def test_vertical_counters_never_overflow(k: int, alternating: bool) -> None:
    """Two and a half times the steps after which the planes are full, with every bit set."""
    steps = 5 * kernel_numba._FULL // 2
    n = steps * kernel_numba.STEP * 64 // k + 3
    packed = np.full((n, k // 8), 255, np.uint8)
    cohorts = np.arange(n) % 2 if alternating else np.zeros(n, np.int64)
    found = count(packed, cohorts, params_of(k, 2))
    expected = np.bincount(cohorts, minlength=2)
    np.testing.assert_array_equal(found.totals, expected)
    np.testing.assert_array_equal(found.ones, np.repeat(expected[:, None], k, axis=1))


def test_planes_are_emptied_between_steps_that_differ(engine: str) -> None:
    """Bit i is set in every (i+1)-th report: each count is known without counting."""
    n, k = 300_000, 16
    bits = (np.arange(1, n + 1)[:, None] % np.arange(1, k + 1) == 0).astype(np.uint8)
    found = count(np.packbits(bits, axis=1, bitorder="little"), 0, params_of(k, 1))
    assert found.ones[0].tolist() == [n // (i + 1) for i in range(k)]


@pytest.mark.parametrize("given", [b"", bytearray(), np.empty((0, 2), np.uint8)])
@pytest.mark.parametrize("cohorts", [[], 1, np.empty(0, np.uint8)])
def test_no_reports_are_zero_counts(given: object, cohorts: object, engine: str) -> None:
    params = params_of(9)
    assert count(given, cohorts, params) == Counts.zero(params, reports_per_client=None)


def test_every_form_of_input_gives_the_same_counts(engine: str) -> None:
    params = params_of(12, 200)
    reports = random_reports(500, 12)
    packed = packed_of(reports, 12)
    cohorts = np.arange(500) * 7 % 200
    expected = naive(reports, cohorts.tolist(), params)
    blob = packed.tobytes()
    padded = np.zeros((500, 5), np.uint8)
    padded[:, 1:3] = packed
    odd_address = np.frombuffer(b"x" + blob, np.uint8)[1:]
    for form in (packed, blob, bytearray(blob), memoryview(blob), packed.reshape(-1)):
        assert count(form, cohorts, params) == expected
    for form in (padded[:, 1:3], np.asfortranarray(packed), odd_address, packed.tolist()):
        given = np.array(form, np.uint8) if isinstance(form, list) else form
        assert count(given, cohorts, params) == expected
    assert count(packed, cohorts.tolist(), params) == expected
    assert count(packed, np.repeat(cohorts, 2)[::2], params) == expected


@pytest.mark.parametrize(
    "kind", [np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
)
def test_cohorts_of_every_whole_type_give_the_same_counts(kind: type, engine: str) -> None:
    """The first time on a machine, three of them take a second or two to compile."""
    params = params_of(12, 200)
    reports = random_reports(500, 12)
    cohorts = np.arange(500) * 7 % 200
    expected = naive(reports, cohorts.tolist(), params)
    assert count(packed_of(reports, 12), cohorts.astype(kind), params) == expected


def test_words_at_an_odd_address_are_counted_right(engine: str) -> None:
    params = params_of(128)
    reports = random_reports(400, 128)
    shifted = np.frombuffer(b"abc" + packed_of(reports, 128).tobytes(), np.uint8)[3:]
    assert count(shifted, 1, params) == naive(reports, [1] * 400, params)


def test_the_label_goes_with_the_counts() -> None:
    found = count(
        b"\1",
        0,
        params_of(8),
        kind="category",
        dialect="google",
        collection="home",
        version=3,
        reports_per_client=7,
    )
    assert (found.kind, found.dialect, found.collection) == ("category", "google", "home")
    assert (found.version, found.reports_per_client) == (3, 7)
    assert count(b"\1", 0, params_of(8)).reports_per_client is None


@pytest.mark.parametrize("n", [10, 1_000])
@pytest.mark.parametrize("wrong", [3, -1, 255, 2**40])
@pytest.mark.parametrize("k", [9, 128])
def test_a_cohort_out_of_range_is_named_by_its_index(
    wrong: int, n: int, k: int, engine: str
) -> None:
    cohorts = np.zeros(n, np.int64)
    cohorts[[n - 3, n - 1]] = wrong
    packed = np.zeros((n, -(-k // 8)), np.uint8)
    with pytest.raises(WireError, match=rf"report {n - 3}: .* from 0 to 2, got {wrong}$"):
        count(packed, cohorts, params_of(k))


def test_a_run_of_a_cohort_that_is_not_there_is_refused(engine: str) -> None:
    with pytest.raises(WireError, match=r"report 0: .* from 0 to 2, got 3$"):
        count(np.zeros((1_000, 16), np.uint8), np.full(1_000, 3, np.uint8), params_of(128))


def test_a_cohort_beyond_64_bits_is_refused_and_not_wrapped(engine: str) -> None:
    with pytest.raises(WireError, match=r"report 1: .* from 0 to 2"):
        count(b"\0\0", np.array([0, 2**64 - 1], np.uint64), params_of(8))


@pytest.mark.parametrize("k", [1, 9, 127, 1025])
def test_a_set_padding_bit_is_refused(k: int, engine: str) -> None:
    packed = np.zeros((500, -(-k // 8)), np.uint8)
    packed[321, -1] = 128
    packed[400, -1] = 128
    with pytest.raises(WireError, match=rf"report 321: .* of {k} bits .* {-k % 8} padding bits 0"):
        count(packed, 0, params_of(k))


@pytest.mark.parametrize(
    ("packed", "cohorts", "message"),
    [
        (b"\0\0\0", 0, "take 2 bytes each; 3 bytes are not a whole number"),
        (np.zeros((4, 3), np.uint8), 0, r"shape \(N, 2\), got \(4, 3\)"),
        (np.zeros((1, 4, 2), np.uint8), 0, r"shape \(N, 2\)"),
        (np.zeros((4, 2), np.int64), 0, "must be bytes"),
        ("01", 0, "must be bytes"),
        (np.zeros((4, 2), np.uint8), [0, 0], "4 reports need 4 cohorts"),
        (np.zeros((4, 2), np.uint8), np.zeros((4, 1), int), "4 reports need 4 cohorts"),
        (np.zeros((2, 2), np.uint8), [0.0, 1.0], "cohorts must be whole numbers, got float64"),
        (np.zeros((2, 2), np.uint8), [True, False], "cohorts must be whole numbers, got bool"),
        (np.zeros((2, 2), np.uint8), 3, "cohort must be from 0 to 2, got 3"),
        (np.zeros((2, 2), np.uint8), -1, "cohort must be from 0 to 2, got -1"),
        (np.zeros((2, 2), np.uint8), True, "cohorts must be whole numbers"),
    ],
)
def test_what_is_no_reports_is_refused(packed: object, cohorts: object, message: str) -> None:
    with pytest.raises(WireError, match=message):
        count(packed, cohorts, params_of(9))


@pytest.mark.slow
def test_without_numba_counting_still_works() -> None:
    code = """
import sys
sys.modules["numba"] = None
from rappor import Params
from rappor.aggregate import count, kernel
found = count(bytes([3, 1]), 0, Params(2, 1, 1, 0.5, 0.5, 0.75))
print(kernel.engine().__name__, found.ones.tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["rappor.aggregate.kernel_numpy", "[[2,", "1]]"]


@pytest.mark.slow
def test_importing_the_package_does_not_load_numba_or_pyarrow() -> None:
    code = "import sys, rappor.aggregate; print({'numba', 'pyarrow', 'tqdm'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
