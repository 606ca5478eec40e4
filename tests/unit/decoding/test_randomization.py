"""The law of a score under random placement, against enumeration and against sampling."""

from decimal import Decimal, localcontext
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr

import rappor
from rappor import Params
from rappor.decoding.randomization import NullScore, placement
from rappor.simulate import simulate

DISTINCT, INDEPENDENT = "rappor-v1", "google"


def sums_of_cohort(row, h, dialect):
    """The score of every placement of h hashes, all equally likely; a repeated bit counts once."""
    bits = range(len(row))
    placed = combinations(bits, h) if dialect == DISTINCT else product(bits, repeat=h)
    return np.array([row[list(set(each))].sum() for each in placed])


def every_sum(score, h, dialect):
    total = np.zeros(1)
    for row in score:
        total = (total[:, None] + sums_of_cohort(row, h, dialect)).ravel()
    return np.sort(total)


def centred(rng, m, k, outlier=0.0):
    """Scores as a fit leaves them: no mean; some rows may hold a heavy outlier."""
    score = rng.normal(size=(m, k))
    score[np.arange(m), rng.integers(0, k, m)] += outlier
    return score - score.mean(axis=1, keepdims=True)


def law_of(score, h, dialect):
    return NullScore(score, placement(score.shape[1], h, dialect, dialect != DISTINCT))


def tail_ratios(law, ordered, levels):
    """P-values that the law gives, over those that are true."""
    n = len(ordered)
    ratios = []
    for level in levels:
        place = round(n * (1 - level))
        point = (ordered[place - 1] + ordered[place]) / 2
        true = (ordered > point).mean()
        ratios.append(float(stats.norm.sf(law.deviates([point])[0]) / true))
    return np.array(ratios)


@pytest.mark.parametrize("dialect", [DISTINCT, INDEPENDENT])
@pytest.mark.parametrize(("k", "h", "m"), [(8, 1, 3), (8, 2, 3), (4, 3, 2), (16, 2, 2)])
def test_mean_and_variance_are_exact(dialect, k, h, m):
    rng = np.random.default_rng(k + h)
    score = centred(rng, m, k)
    sums = every_sum(score, h, dialect)
    law = law_of(score, h, dialect)
    assert law.centre == pytest.approx(sums.mean(), abs=1e-9)
    assert law.sd == pytest.approx(sums.std())


def test_the_mean_is_exact_for_scores_with_a_mean_too():
    score = np.random.default_rng(1).normal(3, 1, (2, 8))
    for dialect in (DISTINCT, INDEPENDENT):
        assert law_of(score, 2, dialect).centre == pytest.approx(
            every_sum(score, 2, dialect).mean()
        )


LEVELS = [0.2, 0.05, 1e-2, 1e-3]
FACTOR = 1.5  # what DECODING asks of null p-values


@pytest.mark.parametrize("seed", range(5))
def test_tails_of_smooth_scores_against_enumeration(seed):
    """65,536 placements of one hash, 1.7 million of two: within 20 %, down to 1e-2."""
    score = centred(np.random.default_rng(seed), 4, 16)
    ratios = tail_ratios(law_of(score, 1, DISTINCT), every_sum(score, 1, DISTINCT), LEVELS)
    assert (np.abs(ratios - 1) < 0.2).all(), ratios
    three = score[:3]
    ratios = tail_ratios(law_of(three, 2, DISTINCT), every_sum(three, 2, DISTINCT), LEVELS)
    assert (np.abs(ratios[:3] - 1) < 0.2).all(), ratios
    assert 1 / FACTOR < ratios[3] < 3, ratios


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dialect", "h"),
    [
        (DISTINCT, 1),
        (INDEPENDENT, 1),
        (DISTINCT, 2),
        pytest.param(INDEPENDENT, 2, marks=pytest.mark.long),
    ],
)
def test_tails_beside_outliers_against_enumeration(dialect, h):
    """Three or four cohorts with an outlier of 6 each: laws of separate humps, the hardest case.

    Two hashes hit an outlier at most once; the law does not know that, and errs on the safe side.
    """
    score = centred(np.random.default_rng(12), 5 - h, 16, 6.0)
    ratios = tail_ratios(law_of(score, h, dialect), every_sum(score, h, dialect), LEVELS)
    assert (ratios > 1 / FACTOR).all(), ratios
    assert (ratios[:3] < FACTOR).all(), ratios
    assert ratios[3] < 3, ratios


def sampled(score, dialect, rng, n=1_000_000):
    """Sums of two hashes for n random strings."""
    k, total = score.shape[1], np.zeros(n)
    for row in score:
        first = rng.integers(0, k, n)
        if dialect == DISTINCT:
            second = rng.integers(0, k - 1, n)
            second += second >= first
            total += row[first] + row[second]
        else:
            second = rng.integers(0, k, n)
            total += row[first] + np.where(second == first, 0, row[second])
    return np.sort(total)


@pytest.mark.slow
@pytest.mark.parametrize("dialect", [DISTINCT, INDEPENDENT])
@pytest.mark.parametrize("outlier", [0.0, 15.0])
def test_tails_against_a_million_strings(dialect, outlier):
    """At 1e-2, 1e-3, 1e-4 there are 10,000, 1,000 and 100 strings: 4.5 standard errors are 5, 14
    and 45 %. The law may be off by that and 10 % more, or 35 % on the safe side with outliers."""
    rng = np.random.default_rng(13)
    score = centred(rng, 8, 64, outlier)
    law = law_of(score, 2, dialect)
    ratios = tail_ratios(law, sampled(score, dialect, rng), [1e-1, 1e-2, 1e-3, 1e-4])
    sampling = np.array([0.015, 0.05, 0.14, 0.45])
    assert (ratios > 0.9 - sampling).all(), ratios
    assert (ratios < 1 + (0.35 if outlier else 0.1) + sampling).all(), ratios


def test_a_normal_law_would_fail_beside_outliers():
    rng = np.random.default_rng(13)
    score = centred(rng, 8, 64, 15.0)
    ordered = sampled(score, DISTINCT, rng, 200_000)
    z = (ordered[-200] - law_of(score, 2, DISTINCT).centre) / law_of(score, 2, DISTINCT).sd
    assert stats.norm.sf(z) < 0.1 * 1e-3


@pytest.mark.parametrize("outlier", [0.0, 15.0])
def test_one_sum_and_many_give_the_same(outlier):
    score = centred(np.random.default_rng(14), 8, 64, outlier)
    law = law_of(score, 2, DISTINCT)
    sums = law.centre + law.sd * np.array([-1.0, -0.5, 0.5, 1.0, 3.0, 5.0])
    assert law.deviates(sums) == pytest.approx([law.deviate(total) for total in sums], abs=0.01)


def test_deviates_rise_with_the_sum_and_end_where_the_law_ends():
    score = centred(np.random.default_rng(15), 8, 64)
    law = law_of(score, 2, DISTINCT)
    sums = np.linspace(law.centre - 8 * law.sd, law.most + law.sd, 500)
    deviates = law.deviates(sums)
    assert np.isfinite(deviates).all()
    assert (np.diff(deviates) >= 0).all()
    assert deviates[-1] == law.deviates([law.most * 2])[0]


def saddlepoint(score, place, tilt):
    """The sum at a tilt and the r* of its tail, in 200 digits: nothing cancels and nothing ends."""
    with localcontext(prec=200):
        law = [Decimal(chance) for chance in place.law.tolist()]
        t, shrink = Decimal(tilt), Decimal(place.shrink)
        cumulant = point = spread = Decimal(0)
        for row in score.tolist():
            entries = [Decimal(entry) for entry in row]
            mean = sum(chance * entry for chance, entry in zip(law, entries, strict=True))
            around = [(entry - mean) * shrink for entry in entries]
            weight = [chance * (t * entry).exp() for chance, entry in zip(law, around, strict=True)]
            total = sum(weight)
            first = sum(w * entry for w, entry in zip(weight, around, strict=True)) / total
            square = sum(w * entry**2 for w, entry in zip(weight, around, strict=True)) / total
            cumulant += place.draws * total.ln()
            point += place.draws * first
            spread += place.draws * (square - first**2)
        root = (2 * (t * point - cumulant)).sqrt()
        found = root + (t * spread.sqrt() / root).ln() / root
        centre = place.distinct * float((score @ place.law).sum())
        return centre + float(point), float(found)


DEEP = {
    "smooth": (64, 16, 0.0, (3.0, 10.0, 40.0, 150.0), -140),
    "outliers": (64, 16, 15.0, (3.0, 6.0, 10.0, 16.0), -135),
    "many cohorts": (128, 16, 0.0, (25.0, 150.0), -250),
}


@pytest.mark.slow
@pytest.mark.parametrize(("m", "k", "outlier", "tilts", "deepest"), DEEP.values(), ids=DEEP)
def test_tails_are_followed_to_the_end_of_floating_point(m, k, outlier, tilts, deepest):
    """Log10 of the tail within 10 % of the same saddlepoint in 200 digits, down to 1e-250."""
    score = centred(np.random.default_rng(3), m, k, outlier)
    law, place = law_of(score, 2, DISTINCT), placement(k, 2, DISTINCT, False)
    logs = []
    for tilt in tilts:
        point, deviate = saddlepoint(score, place, tilt / law.sd)
        logs.append(stats.norm.logsf(deviate) / np.log(10))
        for found in (law.deviate(point), law.deviates([point])[0]):
            assert stats.norm.logsf(found) / np.log(10) == pytest.approx(logs[-1], rel=0.1)
    assert logs == sorted(logs, reverse=True)
    assert logs[-1] < deepest


@pytest.mark.parametrize("outlier", [0.0, 6.0])
def test_a_sum_beyond_the_law_is_as_unlikely_as_its_end_and_not_more(outlier):
    """One hash in 8 cohorts of 16 bits: only the best bit of each gives the largest sum, 16**-8.

    Log10 of that is met within 10 %, which is what tails are said to keep.
    """
    score = centred(np.random.default_rng(16), 8, 16, outlier)
    law = law_of(score, 1, DISTINCT)
    assert law.most == pytest.approx(score.max(axis=1).sum())
    ends = [law.deviate(total) for total in (law.most, law.most + 1, law.most * 3)]
    assert len(set(ends)) == 1
    assert law.deviates([law.most, law.most * 3]) == pytest.approx(ends[:2])
    assert stats.norm.logsf(ends[0]) == pytest.approx(-8 * np.log(16), rel=0.1)
    below = law.deviates(np.linspace(law.most - 3 * law.sd, law.most, 50))
    assert (np.diff(below) >= 0).all()


@pytest.mark.slow
def test_the_ten_strongest_strings_have_ten_different_p_values():
    """The exponential population of the calibration (S1): a million reports, 100 strings, 100
    absent ones. A table of p-values that ended at the same number would hide which is stronger."""
    shares = 0.9505 ** np.arange(1, 101)
    population = {f"v{number}": share for number, share in enumerate(shares.tolist())}
    drawn = simulate(population, Params.preset("exponential"), 10**6, seed=1, dialect="google")
    names = [*population, *(f"absent{number}" for number in range(100))]
    found = rappor.decode(drawn.counts, names)
    strongest = found.detected[:10]
    assert len({row.p_value for row in strongest}) == 10
    assert all(0 < row.p_value < 1e-6 for row in strongest)
    assert (
        np.corrcoef([np.log(row.p_value) for row in strongest], [row.snr for row in strongest])[
            0, 1
        ]
        < -0.9
    )


@pytest.mark.long
def test_the_ten_strongest_strings_have_the_p_values_of_200_digits(monkeypatch):
    """S1 again: log10 of each p-value within 10 % of the same saddlepoint in 200 digits, for the
    table and the sum that the decoder judged the string by."""
    judged = {}
    plain = NullScore.deviate

    def recorded(law, total):
        found = plain(law, total)
        judged[float(ndtr(-found))] = law, total
        return found

    monkeypatch.setattr(NullScore, "deviate", recorded)
    population = {f"v{number}": 0.9505**number for number in range(1, 101)}
    drawn = simulate(population, Params.preset("exponential"), 10**6, seed=1, dialect="google")
    names = [*population, *(f"absent{number}" for number in range(100))]
    strongest = rappor.decode(drawn.counts, names).detected[:10]
    assert len({row.p_value for row in strongest}) == 10
    for row in strongest:
        law, total = judged[row.p_value]
        place, most = law._place, 200 / law.sd
        tilt = brentq(lambda t, law=law, total=total: law._moments(t)[1] - total, 1e-9, most)
        point, deviate = saddlepoint(law._around / place.shrink, place, tilt)
        assert point + law.centre == pytest.approx(total, abs=1e-3 * law.sd)
        exact = stats.norm.logsf(deviate) / np.log(10)
        assert np.log10(row.p_value) == pytest.approx(exact, rel=0.1)


def test_scores_without_spread_say_nothing():
    law = law_of(np.zeros((3, 16)), 2, DISTINCT)
    assert law.deviates([0.0, 5.0]).tolist() == [0.0, 0.0]
    assert law.deviate(5.0) == 0.0


def test_hashes_that_favour_bits_are_allowed_for():
    assert placement(100, 2, "google", True).law[:56] == pytest.approx(3 / 256)
    assert placement(100, 2, "google", True).law[56:] == pytest.approx(2 / 256)
    for k, dialect in ((128, "google"), (100, "rappor-v1")):
        assert placement(k, 2, dialect, False).law == pytest.approx(1 / k)


def test_the_number_of_distinct_bits():
    assert placement(8, 2, DISTINCT, False).distinct == 2
    assert placement(8, 2, INDEPENDENT, True).distinct == pytest.approx(2 - 1 / 8)
    assert placement(8, 2, None, False).distinct == 2  # a map in which no two hashes ever met
    assert placement(8, 2, None, True).distinct == pytest.approx(2 - 1 / 8)


@pytest.mark.parametrize(("k", "h"), [(8, 7), (6, 5), (8, 6)])
def test_nearly_full_filters_have_the_law_of_what_they_leave_out(k, h):
    """Every placement counted: h of k bits are all but k - h, and their outliers lie below."""
    rng = np.random.default_rng(0)
    score = rng.normal(size=(4, k))
    score[:, 0] += 8
    sums = np.zeros(1)
    for row in score:
        one = np.array([row[list(bits)].sum() for bits in combinations(range(k), h)])
        sums = np.add.outer(sums, one).ravel()
    law = NullScore(score, placement(k, h, "rappor-v1", False))
    assert law.sd == pytest.approx(sums.std())
    p_value = stats.norm.sf(law.deviates(sums))
    for level in (0.1, 0.03):
        assert (p_value <= level).mean() < 1.6 * level


def test_hashes_modulo_k_favour_the_lower_bits():
    assert placement(100, 2, "google", True).law[[0, 99]].tolist() == [3 / 256, 2 / 256]
    assert placement(4000, 2, "google", True).law[0] == 17 / 65536
    assert placement(100, 2, "google-java", True).law[0] == 656 / 65536
    assert placement(128, 2, "google", True).law[0] == 1 / 128
