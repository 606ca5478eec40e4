"""Full reports: the client's Bloom filters to the bit, B' shared as a client shares it."""

import numpy as np
import pytest

from rappor import Params
from rappor.errors import ParamsError
from rappor.mechanism import DIALECTS, bloom_positions
from rappor.mechanism.channel import channel
from rappor.simulate import Reports, reports, simulate, uniform
from rappor.wire import unpack

POPULATION = {"a.org": 6, "naïve ☃": 3, "c.org": 1}


def bits(packed, k):
    return np.unpackbits(packed, axis=1, bitorder="little")[:, :k]


def clear(k, h, m):
    """Parameters whose noise never shows: f/2 is 2^-120."""
    return Params(k, h, m, 2.0**-119, 0.0, 1.0)


@pytest.mark.parametrize("dialect", list(DIALECTS))
@pytest.mark.parametrize(("k", "h", "m"), [(7, 2, 3), (16, 3, 4), (100, 2, 5), (4096, 4, 2)])
def test_without_noise_reports_are_the_clients_bloom_filters(dialect, k, h, m):
    params = clear(k, h, m)
    made = reports(POPULATION, params, 300, seed=1, dialect=dialect, keep_steps=True)
    assert np.array_equal(made.packed, made.bloom)
    assert np.array_equal(made.packed, made.prr)
    for cohort, value, packed in zip(made.cohorts, made.values, made.packed, strict=True):
        positions = bloom_positions(made.names[value], int(cohort), params, dialect=dialect)
        expected = sum(1 << position for position in set(positions))
        assert unpack(packed.tobytes(), k) == expected


@pytest.mark.parametrize("kind", ["category", "ordinal"])
def test_without_noise_a_category_sets_the_bit_of_its_place(kind):
    made = reports(POPULATION, clear(9, 1, 2), 100, seed=2, kind=kind)
    assert np.array_equal(bits(made.packed, 9).argmax(axis=1), made.values)
    assert (bits(made.packed, 9).sum(axis=1) == 1).all()
    assert made.dialect is None


def test_without_noise_a_boolean_sets_its_bit_where_it_is_true():
    made = reports({"false": 3, "true": 1}, clear(1, 1, 1), 100, seed=3, kind="boolean")
    assert np.array_equal(bits(made.packed, 1)[:, 0], made.values == 1)


def test_reports_carry_what_a_collection_would_and_the_truth():
    params = Params(100, 2, 4, 0.5, 0.25, 0.75)
    made = reports(POPULATION, params, 1_000, seed=4, dialect="google")
    assert isinstance(made, Reports)
    assert made.packed.shape == (1_000, 13)
    assert made.packed.dtype == np.uint8
    assert (made.kind, made.dialect, made.names) == ("string", "google", tuple(POPULATION))
    assert made.cohorts.tolist() == sorted(made.cohorts.tolist())
    assert (made.bloom, made.prr) == (None, None)
    found = made.count()
    assert found.totals.tolist() == [250] * 4
    by_hand = [bits(made.packed[made.cohorts == j], 100).sum(axis=0) for j in range(4)]
    assert np.array_equal(found.ones, by_hand)
    assert sum(made.truth.values()) == 1_000


@pytest.mark.parametrize("k", [1, 7, 100, 4096])
def test_padding_bits_are_0_and_all_others_are_used(k):
    made = reports(["a"], Params(k, 1, 1, 0.5, 0.25, 0.75), 2_000, seed=5, kind="category")
    assert made.packed.shape == (2_000, (k + 7) // 8)
    if k % 8:
        assert not (made.packed[:, -1] >> (k % 8)).any()
    share = bits(made.packed, k).mean(axis=0)
    assert (share > 0.2).all()
    assert (share < 0.8).all()


@pytest.mark.parametrize(
    ("f", "p", "q"),
    [
        (0.0, 0.5, 0.75),
        (0.5, 0.0, 0.75),
        (0.5, 0.25, 1.0),
        (0.5, 0.0, 1.0),
        (0.3, 0.1234567, 0.7654321),
        (2.0**-40, 0.375, 0.40625),
        (0.999, 0.0009765625, 0.3),
    ],
)
def test_every_bit_has_the_mean_of_lemma_1(f, p, q):
    """40,000 reports of 24 bits: each within 5 standard errors."""
    params = Params(24, 1, 1, f, p, q)
    n = 40_000
    made = reports(["a"], params, n, seed=6, kind="category")
    p_star, q_star = map(float, channel(params))
    mean = np.full(24, p_star)
    mean[0] = q_star
    error = np.sqrt(np.maximum(mean * (1 - mean), 1e-12) / n)
    assert (np.abs(bits(made.packed, 24).mean(axis=0) - mean) <= 5 * error).all()


def test_the_permanent_response_flips_each_bit_alike():
    params = Params(24, 2, 2, 0.3, 0.25, 0.75)
    made = reports(POPULATION, params, 20_000, seed=7, keep_steps=True)
    flipped = bits(made.bloom ^ made.prr, 24)
    assert np.abs(flipped.mean(axis=0) - 0.15).max() < 5 * np.sqrt(0.15 * 0.85 / 20_000)


@pytest.mark.parametrize(
    "how",
    [
        {"reports_per_client": 4},
        {"clients": 333},
        {"values": "changing", "change": 0.5, "reports_per_client": 5},
        {"values": "distinct", "reports_per_client": 4},
    ],
    ids=str,
)
def test_a_clients_reports_on_one_value_share_b_prime_and_no_others_do(how):
    params = Params(128, 2, 3, 0.5, 0.5, 0.75)  # two B' of 128 bits are never equal by chance
    made = reports(uniform(4), params, 2_000, seed=8, keep_steps=True, **how)
    memos: dict[tuple[int, int], set[bytes]] = {}
    for client, value, prr in zip(made.clients, made.values, made.prr, strict=True):
        memos.setdefault((int(client), int(value)), set()).add(prr.tobytes())
    assert all(len(found) == 1 for found in memos.values())
    assert len(set().union(*memos.values())) == len(memos)
    assert len({row.tobytes() for row in made.packed}) == 2_000  # S is fresh every time


@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [{}, {"values": "changing", "change": 0.2, "reports_per_client": 10}], ids=str
)
def test_threads_do_not_change_the_reports(how):
    params = Params(512, 2, 5, 0.3, 0.2, 0.7)  # 64 bytes a report: several pieces
    one, two, five = (
        reports(POPULATION, params, 100_000, seed=9, threads=threads, **how)
        for threads in (1, 2, 5)
    )
    for other in (two, five):
        assert np.array_equal(one.packed, other.packed)
        assert np.array_equal(one.values, other.values)
        assert np.array_equal(one.clients, other.clients)


def test_a_seed_repeats_reports_and_another_does_not():
    params = Params(32, 2, 4, 0.5, 0.25, 0.75)
    same = [reports(POPULATION, params, 1_000, seed=[7, 1]).packed for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(reports(POPULATION, params, 1_000, seed=[7, 2]).packed, same[0])
    unseeded = [reports(POPULATION, params, 1_000).packed for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_no_reports_are_a_collection_too():
    made = reports(POPULATION, Params(32, 2, 4, 0.5, 0.25, 0.75), 0, seed=1)
    assert len(made) == 0
    assert made.count().reports == 0
    assert set(made.truth.values()) == {0}


def test_progress_adds_up_and_bad_threads_are_refused():
    params = Params(32, 2, 4, 0.5, 0.25, 0.75)
    told: list[int] = []
    reports(POPULATION, params, 5_000, seed=1, progress=told.append)
    assert sum(told) == 5_000
    with pytest.raises(ParamsError, match="threads must be a whole number from 1"):
        reports(POPULATION, params, 5_000, threads=0)


@pytest.mark.slow
def test_a_long_history_of_one_client_is_one_memo():
    params = Params(64, 2, 1, 0.5, 0.5, 0.75)
    made = reports({"a": 1}, params, 50_000, seed=2, reports_per_client=50_000, keep_steps=True)
    assert len(np.unique(made.prr, axis=0)) == 1
    share = bits(made.packed, 64).mean(axis=0)
    b_prime = bits(made.prr[:1], 64)[0]
    expected = np.where(b_prime == 1, 0.75, 0.5)
    assert np.abs(share - expected).max() < 5 * 0.5 / np.sqrt(50_000)


@pytest.mark.slow
def test_counts_of_reports_decode_like_drawn_ones():
    import rappor

    params = Params.preset("exponential")
    shape = rappor.simulate.exponential(absent=100)
    made = reports(shape, params, 200_000, seed=3)
    found = rappor.decode(made.count(), shape.candidates)
    assert found.detected[0].string in ("v1", "v2", "v3")
    assert found.reports == simulate(shape, params, 200_000, seed=3).counts.reports
