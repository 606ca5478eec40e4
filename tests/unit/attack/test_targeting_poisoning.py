"""Small groups (R60), forged reports and the watchman."""

import math
from itertools import product

import numpy as np
import pytest

from rappor import Params, ParamsError
from rappor.attack import poisoning, targeting
from rappor.attack.evidence import binomial_sum
from rappor.attack.poisoning import alarm_rate, exposed_share, forged_weight, mimic_chance
from rappor.attack.posterior import chances
from rappor.attack.targeting import estimate_error, guess_accuracy
from rappor.mechanism import channel
from rappor.privacy import standard_error

WINDOWS = Params.preset("windows")


def test_a_forged_report_is_worth_several_honest_clients() -> None:
    assert forged_weight(WINDOWS) == 3.5
    assert forged_weight(Params.preset("chrome")) == 6.5


def test_forgers_lift_a_count_by_their_weight() -> None:
    assert exposed_share(WINDOWS, 0.02, 0.0) == 0.02
    assert exposed_share(WINDOWS, 0.0, 0.01) == pytest.approx(0.035)
    found = poisoning.attack(WINDOWS, reports=1000, forged=0.0105, frequency=0.0, trials=10)
    assert found.settings["forged"] == 0.01  # whole reports: 10 of 1000
    assert found.exact == pytest.approx(0.035)


@pytest.mark.parametrize("forged", [500, 1000, 5000])
def test_crude_forgery_of_half_a_percent_raises_an_alarm(forged: int) -> None:
    assert alarm_rate(WINDOWS, 100_000, forged, 1.0) >= 0.99
    assert alarm_rate(WINDOWS, 100_000, forged, 0.0) >= 0.99


def test_false_alarms_are_rare_and_imitation_hardly_raises_more() -> None:
    assert alarm_rate(WINDOWS, 100_000, 0, 0.0) <= 0.0101
    assert alarm_rate(WINDOWS, 100_000, 1000, mimic_chance(WINDOWS)) <= 0.011


def test_imitation_has_the_ones_of_an_honest_report() -> None:
    p_star, q_star = (float(x) for x in channel(WINDOWS))
    assert 2 + 126 * mimic_chance(WINDOWS) == pytest.approx(2 * q_star + 126 * p_star)
    assert mimic_chance(Params(3, 2, 1, 0.5, 0.0, 0.5)) == 0.0  # v alone has more than enough


def test_a_sum_of_binomials_is_the_convolution_of_their_laws() -> None:
    parts = [(3, 0.2), (2, 0.9)]
    expected = np.zeros(6)
    for a, b in product(range(4), range(3)):
        expected[a + b] += (
            math.comb(3, a) * 0.2**a * 0.8 ** (3 - a) * math.comb(2, b) * 0.9**b * 0.1 ** (2 - b)
        )
    law = binomial_sum(parts, fixed=7)
    assert law.low == 7
    assert law.chances == pytest.approx(expected, abs=1e-15)


def test_a_sum_of_large_binomials_has_their_mean_and_variance() -> None:
    law = binomial_sum([(10**6, 0.3), (5 * 10**6, 0.6)])
    values = law.low + np.arange(len(law.chances))
    mean = float(law.chances @ values)
    assert mean == pytest.approx(3.3e6, rel=1e-9)
    assert float(law.chances @ (values - mean) ** 2) == pytest.approx(0.21e6 + 1.2e6, rel=1e-6)


def test_an_estimate_about_few_people_is_worth_less_than_a_guess() -> None:
    found = targeting.attack(WINDOWS, clients=10, frequency=0.1, trials=10)
    assert found.exact > 9 * found.table["error of a guess without reports, in clients"]
    # A count of 0 has the standard error that every decoded table states.
    assert estimate_error(WINDOWS, 10**6, 0.0) == pytest.approx(standard_error(WINDOWS, 10**6))


def test_repeated_reports_help_until_the_memo_stops_them() -> None:
    errors = [estimate_error(WINDOWS, 10, 0.1, n) for n in (1, 7, 100, 10**6)]
    assert errors == sorted(errors, reverse=True)
    # B' itself: (f/2)(1-f/2)/(1-f)² a bit and client
    assert errors[-1] == pytest.approx(math.sqrt(10 * 0.75 / 2), rel=1e-3)


@pytest.mark.parametrize("params", [WINDOWS, Params(16, 3, 1, 0.3, 0.1, 0.6)])
@pytest.mark.parametrize("frequency", [0.0, 0.1, 0.45, 0.7, 1.0])
def test_the_guess_about_one_person_is_the_posterior_rule(params: Params, frequency: float) -> None:
    by_pattern = 0.0
    for set_bits in range(params.h + 1):
        if_held, if_not = chances(params, set_bits)
        likelier = max(frequency * float(if_held), (1 - frequency) * float(if_not))
        by_pattern += math.comb(params.h, set_bits) * likelier
    assert guess_accuracy(params, frequency) == pytest.approx(by_pattern, abs=1e-9)
    assert guess_accuracy(params, frequency, 30) >= guess_accuracy(params, frequency) - 1e-9


def test_settings_out_of_range_are_refused_by_name() -> None:
    for module, settings, name in (
        (targeting, {"clients": 0}, "clients"),
        (targeting, {"frequency": 1.5}, "frequency"),
        (targeting, {"reports": 0}, "reports"),
        (poisoning, {"forged": -0.1}, "forged"),
        (poisoning, {"reports": 0}, "reports"),
        (poisoning, {"seed": -1}, "seed"),
        (poisoning, {"seed": 1.5}, "seed"),
    ):
        with pytest.raises(ParamsError, match=f"{name} must be"):
            module.attack(WINDOWS, **settings)
    with pytest.raises(ParamsError, match="h below k"):
        poisoning.attack(Params(2, 2, 1, 0.5, 0.5, 0.75))
