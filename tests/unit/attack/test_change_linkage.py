"""Seeing a change and linking windows: recorded figures, and enumeration for small cases."""

from itertools import product

import numpy as np
import pytest

from rappor import Params, ParamsError
from rappor.attack import change, linkage
from rappor.attack.change import balanced_accuracy, by_noise_alone, rates
from rappor.attack.linkage import linked_share, pairwise

WINDOWS = Params.preset("windows")
TINY = Params(3, 1, 1, 0.5, 0.25, 0.75)


def chance(params: Params, filter_bits: tuple[int, ...], memo: tuple[int, ...]) -> float:
    """P(B' | B)."""
    flips = sum(a != b for a, b in zip(filter_bits, memo, strict=True))
    return (params.f / 2) ** flips * (1 - params.f / 2) ** (params.k - flips)


def seen_chance(params: Params, memo: tuple[int, ...], report: tuple[int, ...]) -> float:
    """P(S | B')."""
    one = [params.q if bit else params.p for bit in memo]
    return float(np.prod([r if bit else 1 - r for r, bit in zip(one, report, strict=True)]))


def test_a_change_is_seen_as_well_as_recorded() -> None:
    assert balanced_accuracy(WINDOWS, 7) == pytest.approx(0.955, abs=0.005)
    assert by_noise_alone(WINDOWS, 7) == pytest.approx(0.955, abs=0.0005)


def test_rates_are_what_enumerating_two_single_reports_gives() -> None:
    scores = change.rule(TINY, 1)
    every = list(product((0, 1), repeat=3))
    unchanged = changed = 0.0
    for first, second in product(every, repeat=2):
        total = sum(scores[a, b] for a, b in zip(first, second, strict=True))
        same = sum(
            chance(TINY, (1, 0, 0), memo)
            * seen_chance(TINY, memo, first)
            * seen_chance(TINY, memo, second)
            for memo in every
        )
        one = sum(chance(TINY, (1, 0, 0), m) * seen_chance(TINY, m, first) for m in every)
        two = sum(chance(TINY, (0, 1, 0), m) * seen_chance(TINY, m, second) for m in every)
        said_same = 1.0 if total > 0 else 0.5 if total == 0 else 0.0
        unchanged += same * said_same
        changed += one * two * (1 - said_same)
    assert rates(TINY, 1) == pytest.approx((unchanged, changed), abs=1e-12)


@pytest.mark.slow
def test_more_reports_and_more_bits_show_a_change_better() -> None:
    by_reports = [balanced_accuracy(WINDOWS, n) for n in (1, 3, 7, 14)]
    assert by_reports == sorted(by_reports)
    fewer = balanced_accuracy(Params(16, 2, 1, 0.5, 0.5, 0.75), 7)
    assert fewer < balanced_accuracy(WINDOWS, 7)


def test_values_that_must_share_bits_are_placed_so() -> None:
    before, after = change.signals(Params(5, 3, 1, 0.5, 0.5, 0.75))
    assert before.tolist() == [True, True, True, False, False]
    assert after.tolist() == [False, False, True, True, True]
    before, after = change.signals(WINDOWS)
    assert not (before & after).any()
    assert before.sum() == after.sum() == 2


def test_linking_is_as_likely_as_recorded() -> None:
    share, error = linked_share(WINDOWS, 7, 400)
    assert error < 0.002
    assert share == pytest.approx(0.63, abs=0.02)
    assert linked_share(WINDOWS, 14, 400)[0] > 0.99


def test_preferring_to_one_stranger_is_what_enumeration_gives() -> None:
    params = Params(2, 1, 1, 0.5, 0.25, 0.75)
    scores = linkage.rule(params, 1)
    every = list(product((0, 1), repeat=2))

    def total(first: tuple[int, ...], second: tuple[int, ...]) -> int:
        return int(scores[1][first[0], second[0]] + scores[0][first[1], second[1]])

    won = 0.0
    for first, own, other in product(every, repeat=3):
        pair = sum(
            chance(params, (1, 0), m) * seen_chance(params, m, first) * seen_chance(params, m, own)
            for m in every
        )
        alone = sum(chance(params, (1, 0), m) * seen_chance(params, m, other) for m in every)
        gap = total(first, own) - total(first, other)
        won += pair * alone * (1.0 if gap > 0 else 0.5 if gap == 0 else 0.0)
    assert pairwise(params, 1) == pytest.approx(won, abs=1e-12)


@pytest.mark.parametrize("params", [WINDOWS, TINY, Params(40, 2, 1, 0.75, 0.25, 0.5)])
def test_among_two_clients_linking_is_preferring(params: Params) -> None:
    share, error = linked_share(params, 3, 2)
    assert abs(share - pairwise(params, 3)) < 4 * error + 1e-9
    many, error = linked_share(params, 3, 50)
    assert 1 - 49 * (1 - pairwise(params, 3)) - 4 * error < many < pairwise(params, 3)


def test_without_permanent_noise_clients_with_one_value_cannot_be_linked() -> None:
    share, _ = linked_share(Params(64, 2, 1, 0.0, 0.25, 0.75), 7, 100)
    assert share == pytest.approx(0.01)


def test_limits_of_the_settings_are_refused_by_name() -> None:
    for module, settings, name in (
        (change, {"reports": 401}, "reports"),
        (change, {"reports": 0}, "reports"),
        (linkage, {"clients": 1}, "clients"),
        (linkage, {"reports": 101}, "reports"),
        (linkage, {"trials": 1}, "trials"),
    ):
        with pytest.raises(ParamsError, match=f"{name} must be a whole number"):
            module.attack(WINDOWS, **settings)


@pytest.mark.long
@pytest.mark.parametrize(
    ("params", "reports"),
    [
        pytest.param(Params(4096, 1, 64, 0.2385, 0.2336, 0.5373), 1, marks=pytest.mark.long),
        pytest.param(Params(2048, 2, 1, 0.5, 0.45, 0.55), 7, marks=pytest.mark.slow),
    ],
)
def test_many_bits_do_not_blind_the_attacker(params, reports):
    """The rule with whole-number scores is as good as the rule with floats, simulated 400 times."""
    flip = params.f / 2
    scores = change.same_scores(params, reports, flip + (1 - 2 * flip) * params.h / params.k)
    rng = np.random.default_rng(7)

    def memo(first):
        truly = np.zeros((400, params.k), bool)
        truly[:, first : first + params.h] = True
        return truly ^ (rng.random(truly.shape) < flip)

    def ones(kept):
        return rng.binomial(reports, np.where(kept, params.q, params.p))

    same, other = memo(0), memo(params.h)
    unchanged = (scores[ones(same), ones(same)].sum(axis=1) > 0).mean()
    changed = (scores[ones(same), ones(other)].sum(axis=1) <= 0).mean()
    balanced = sum(change.rates(params, reports)) / 2
    error = np.sqrt(balanced * (1 - balanced) / 800)
    assert abs((unchanged + changed) / 2 - balanced) < 4 * error
