"""The decoder's error rates and intervals hold, on a few seeds of the calibration's scenarios.

Every check has a stated chance FALSE_ALARM to reject a decoder that just keeps its promise; and it
is shown to reject decoders with a bug planted in them. `make test` has one scenario with seeds
enough for null p-values and coverage; `make test-long` seven with more; `make calibrate` measures
far more finely.
"""

import sys
from dataclasses import replace
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from calibration.associations import measure_association
from calibration.closed_forms import CLOSED_FORMS, draw_runs, measure_closed_form
from calibration.comparisons import COMPARISONS, contradicting, measure_comparison
from calibration.draw import draw
from calibration.measure import ALPHA, CORRECTIONS, NULL_LEVELS, compare, measure
from calibration.rules import TESTS, judge, judge_tallies
from calibration.store import Store
from calibration.summary import Share, pooled, summarise
from calibration.tallies import total

from rappor.decoding.decode import decode
from rappor.decoding.differences import Differences
from rappor.decoding.significance import adjust
from rappor.mechanism import channel

FALSE_ALARM = 1e-4
Z = float(-ndtri(FALSE_ALARM))  # 3.72
MIN_COVERAGE, MAX_COVERAGE = 0.93, 0.97  # the rules of docs/calibration.md
NULL_FACTOR = 1.5

# Seeds of each scenario: as many as keep a group within about 15 seconds.
A_LOOK = {"S1": 8}
ALL_LISTED = {"S1": 25, "S3": 25}
HEAVY_STRINGS_MISSING = {"S6b": 4, "U5": 3, "U6": 5}
OTHER_PARAMETERS = {"U1": 12, "U2": 12, "U3": 12, "U10": 12}
# Regimes in which an earlier decoder failed.
REGIMES = {"V1": 12, "V3": 12, "V5": 12}
COUNTED = {"W1": 10, "W3": 10, "C1": 12, "C4": 12}


def honest(decoded):
    return decoded


def p_values_divided_by_20(decoded):
    return with_p_values(decoded, decoded.rows.p_value / 20)


def standard_errors_30_percent_too_small(decoded):
    rows = decoded.rows
    rows = replace(
        rows,
        std_error=0.7 * rows.std_error,
        low=rows.estimate - 0.7 * (rows.estimate - rows.low),
        high=rows.estimate + 0.7 * (rows.high - rows.estimate),
    )
    # log-space is not needed: what is far in the tail stays there.
    return with_p_values(replace(decoded, rows=rows), ndtr(ndtri(rows.p_value) / 0.7))


def with_p_values(decoded, p_values):
    rows = decoded.rows
    adjusted = adjust(p_values, decoded.correction)
    detected = (adjusted <= decoded.alpha) & (rows.estimate > 0)
    rows = replace(rows, p_value=p_values, adjusted_p_value=adjusted, detected=detected)
    return replace(decoded, rows=rows)


DECODERS = (honest, p_values_divided_by_20, standard_errors_30_percent_too_small)


def measured(seeds):
    """Summaries of all scenarios for each decoder: drawn and decoded once, then tampered with."""
    found = {decoder: [] for decoder in DECODERS}
    for name, number in seeds.items():
        records = {decoder: [] for decoder in DECODERS}
        for seed in range(1, number + 1):
            case = draw(name, seed)
            decoded = decode(case.counts, case.design, correction="fdr", alpha=ALPHA)
            p_value = decoded.rows.p_value  # the same for every correction: decoded once for all
            results = {
                label: with_p_values(replace(decoded, correction=correction), p_value)
                for label, correction in CORRECTIONS.items()
            }
            for decoder, kept in records.items():
                tampered = {label: decoder(each) for label, each in results.items()}
                times = dict.fromkeys(("family_seconds", "fdr_seconds"), 0.0)
                about = {"scenario": name, "seed": seed, "method": "auto"}
                kept.append(about | compare(case, tampered) | times)
        for decoder, kept in records.items():
            found[decoder].append(summarise(kept))
    return found


def broken(summaries):
    """The promises that these summaries refute at FALSE_ALARM, with their figures."""
    found = {}
    errors = pooled(each.detection["family"].any_false for each in summaries)
    # The most seeds with a false string that a family-wise error of exactly α explains.
    if errors.hits > binom.isf(FALSE_ALARM, errors.of, ALPHA):
        found["family-wise error"] = errors
    seeds = sum(each.seeds for each in summaries)
    rates = [each.detection["fdr"].false_share for each in summaries]
    rate = sum(each.value * each.seeds for each in rates) / seeds
    error = sqrt(sum((each.error * each.seeds) ** 2 for each in rates)) / seeds
    if rate - Z * error > ALPHA:
        found["false discovery rate"] = rate, error
    for level in NULL_LEVELS:
        below = pooled(each.nulls[level] for each in summaries)
        # P-values of one seed share its noise a little: the variance is taken twice over.
        margin = Z * sqrt(2 * below.of * level * NULL_FACTOR)
        low, high = below.of * level / NULL_FACTOR, below.of * level * NULL_FACTOR
        if not low - margin <= below.hits <= high + margin:
            found[f"null p-values at {level:g}"] = below
    covered = pooled(each.accuracy["fdr"].covered for each in summaries)
    low = MIN_COVERAGE - Z * sqrt(MIN_COVERAGE * (1 - MIN_COVERAGE) / covered.of)
    high = MAX_COVERAGE + Z * sqrt(MAX_COVERAGE * (1 - MAX_COVERAGE) / covered.of)
    if not low <= covered.value <= high:
        found["coverage"] = covered, covered.value
    return found


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(A_LOOK, id="a look"),
        pytest.param(ALL_LISTED, id="all listed", marks=pytest.mark.long),
        pytest.param(HEAVY_STRINGS_MISSING, id="heavy strings missing", marks=pytest.mark.long),
        pytest.param(OTHER_PARAMETERS, id="other parameters", marks=pytest.mark.long),
    ],
)
def test_error_rates_and_coverage_hold_and_planted_bugs_are_seen(seeds):
    with threadpool_limits(1):  # the matrices are small: threads only get in each other's way
        found = measured(seeds)
    assert broken(found[honest]) == {}
    divided = broken(found[p_values_divided_by_20])
    assert {"false discovery rate", "null p-values at 0.01"} <= set(divided)
    if sum(seeds.values()) >= 40:  # fewer seeds have no power for an error of about 1 in 2
        assert "family-wise error" in divided
    small = broken(found[standard_errors_30_percent_too_small])
    assert "coverage" in small
    assert "null p-values at 0.01" in small
    verdicts = judge({each.scenario: each for each in found[p_values_divided_by_20]})
    short = {each.rule for each in verdicts if not each.passed}
    assert {"family-wise error", "false discovery rate", "null p-values at 0.01"} <= short


def test_a_calibration_that_was_stopped_goes_on(tmp_path):
    store = Store(tmp_path, "0123456789ab", same_names=False)
    records = [{"scenario": "S1", "seed": seed, "method": "auto"} for seed in (2, 1)]
    for record in records:
        store.add(record)
    with store.path("S1").open("a", encoding="utf-8") as out:
        out.write('{"scenario":"S1","se')  # stopped while it wrote
    assert store.read("S1") == records[::-1]
    store.add({"scenario": "S1", "seed": 3, "method": "auto"})
    assert [record["seed"] for record in store.read("S1")] == [1, 2, 3]
    assert Store(tmp_path, "another decoder", same_names=False).read("S1") == []


def test_counted_scenarios_pass_at_the_limit_and_fall_short_beyond_it():
    def verdict(rule, hits, of):
        (found,) = judge_tallies({"W1": {rule: Share(hits, of)}})
        return found.passed

    assert verdict("detected rows covered, FDR", 1_881, 2_000)  # .95 - 2 se is .9403
    assert not verdict("detected rows covered, FDR", 1_880, 2_000)
    assert verdict("family-wise error", 119, 2_000)
    assert not verdict("family-wise error", 120, 2_000)
    assert not verdict("false alarms: ones", 30, 2_000)
    assert not verdict("contradictions", 1, 2_000)
    # Of a few, as many may miss as chance exceeds in 2.3 % of cases: P(X >= 3) is .012 of 10.
    assert verdict("spread covered, interval", 8, 10)
    assert not verdict("spread covered, interval", 7, 10)
    assert not verdict("spread covered, interval", 1, 3)
    assert judge_tallies({"W1": {"spread covered, interval": Share(0, 0)}}) == []
    for rule in ("intervals", "other cells", "margins", "conditional shares"):
        inside = [verdict(f"{rule} that hold", hits, 1_000) for hits in (929, 930, 970, 971)]
        assert inside == [False, True, True, False]


@pytest.mark.long
def test_all_intervals_of_associations_are_counted_and_wrong_ones_are_noticed(monkeypatch):
    """Two fields with "other" each: 5 x 4 listed cells, 10 others, 11 margins, 60 conditionals.

    10 seeds: intervals of 95 % hold in .85 or more, those of half the width in .67.
    """

    def shares():
        counted = total(measure_association("A10", seed) for seed in range(1, 11))
        return {rule: share for rule, share in counted.items() if rule.endswith("that hold")}

    found = shares()
    assert {rule: share.of for rule, share in found.items() if "conditional" not in rule} == {
        "intervals that hold": 200,
        "other cells that hold": 100,
        "margins that hold": 110,
    }
    assert 400 < found["conditional shares that hold"].of <= 600
    assert all(share.value > 0.85 for share in found.values())
    monkeypatch.setattr("rappor.decoding.association.Z_95", 0.98)
    assert all(share.value < 0.85 for share in shares().values())


@pytest.mark.parametrize("name", ["W8", "W12"])
def test_clients_of_all_phases_share_their_permanent_response(name):
    """Noise of two phases has the covariance of κ, within 5 standard errors; none would be 10 off.

    Bits are independent, so 1,000 runs are 12,000 pairs and more.
    """
    scenario = CLOSED_FORMS[name]
    first, last = scenario.phases[0], scenario.phases[-1]
    runs = draw_runs(scenario, 1, runs=1_000)
    held = np.array([run.truth for run in runs])

    def noise(phase, params):
        """Ones of a phase, less what the realised truth leads to."""
        p_star, q_star = map(float, channel(params))
        ones = np.array([run.counts[phase].ones[0] for run in runs])
        return ones - held * q_star - (scenario.clients - held) * p_star

    one, other = noise(0, first), noise(-1, last)
    shared = 0.25 * 0.75 * (first.q - first.p) * (last.q - last.p) * scenario.clients  # f = .5
    error = sqrt((one.var() * other.var() + shared**2) / one.size)
    assert abs(float(np.mean(one * other)) - shared) < 5 * error
    assert shared > 10 * error


def test_a_seed_of_a_counted_scenario_is_the_same_again_and_adds_up():
    first = measure_closed_form("W7", 3)
    assert first == measure_closed_form("W7", 3)
    both = total([first, measure_closed_form("W7", 4)])
    assert both["contradictions"] == Share(0, 80)  # 2 seeds x 10 runs x 2 corrections x 2 rows
    assert both["detected rows covered, FDR"].of == 20
    assert total([measure_comparison("C3", 1)])["contradictions"] == Share(0, 200)


def test_a_comparison_contradicts_itself_where_interval_and_verdict_disagree():
    """Rows that differ (the first four) and rows that do not, each with a difference of .2."""
    low = np.array([0.1, 0.0, -0.1, 0.3, -0.1, 0.0, 0.1, -0.1])
    high = np.array([0.3, 0.3, 0.3, 0.4, 0.3, 0.3, 0.3, 0.1])
    two, zero = np.full(8, 0.2), np.zeros(8)
    rows = Differences(
        list("abcdefgh"), two, zero, two, two, zero, zero, low, high, np.arange(8) < 4
    )
    assert contradicting(rows).tolist() == [False, False, True, True, False, False, True, True]


@pytest.mark.long
def test_rates_hold_where_an_earlier_decoder_failed():
    """Low noise, many strings near the threshold, few ones, two cohorts: a few seeds of each."""
    with threadpool_limits(1):
        refuted = [
            *(rule for name, seeds in REGIMES.items() for rule in refuted_regime(name, seeds)),
            *(rule for name, seeds in COUNTED.items() for rule in refuted_tallies(name, seeds)),
        ]
        too_small = measured({"V1": 6})[standard_errors_30_percent_too_small]
    assert refuted == []
    covered = too_small[0].accuracy["fdr"].covered
    assert is_refuted(missed(covered), 0.05, together=2)


def refuted_regime(name, seeds):
    """What these seeds refute: error rates, coverage of rows and mass, false alarms."""
    found = summarise([measure(name, seed) for seed in range(1, seeds + 1)])
    if is_refuted(found.detection["family"].any_false, ALPHA):
        yield name, "family-wise error"
    for label in ("family", "fdr"):
        # Rows of one seed share its noise a little: their variance is taken twice over.
        if is_refuted(missed(found.accuracy[label].covered), 0.05, together=2):
            yield name, f"rows, {label}"
        if is_refuted(missed(found.mass_covered[label]), 0.05):
            yield name, f"undetected mass, {label}"
    for code in TESTS:
        if is_refuted(found.alarms.get(code, Share(0, seeds)), 0.01):
            yield name, f"false alarms, {code}"


def refuted_tallies(name, seeds):
    """The same of a scenario that is counted."""
    one = measure_comparison if name in COMPARISONS else measure_closed_form
    for rule, share in total(one(name, seed) for seed in range(1, seeds + 1)).items():
        covers = "covered" in rule or "below" in rule
        if rule == "contradictions":
            refuted = share.hits > 0
        elif covers:
            refuted = is_refuted(missed(share), 0.05, together=2)
        else:
            refuted = is_refuted(share, ALPHA if rule == "family-wise error" else 0.01)
        if refuted:
            yield name, rule


def missed(covered):
    return Share(covered.of - covered.hits, covered.of)


def is_refuted(wrong, rate, together=1):
    """Whether so many wrong ones have a chance below FALSE_ALARM at this rate.

    Trials that depend on each other count as if so many of them were one.
    """
    return wrong.hits // together > binom.isf(FALSE_ALARM, wrong.of // together, rate)
