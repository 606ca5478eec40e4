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

import pytest
from scipy.special import ndtr, ndtri
from scipy.stats import binom
from threadpoolctl import threadpool_limits

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from calibration.draw import draw
from calibration.measure import ALPHA, CORRECTIONS, NULL_LEVELS, compare
from calibration.rules import judge
from calibration.store import Store
from calibration.summary import pooled, summarise

from rappor.decoding.decode import decode
from rappor.decoding.significance import adjust

FALSE_ALARM = 1e-4
Z = float(-ndtri(FALSE_ALARM))  # 3.72
MIN_COVERAGE, MAX_COVERAGE = 0.93, 0.97  # the rules of docs/calibration.md
NULL_FACTOR = 1.5

# Seeds of each scenario: as many as keep a group within about 15 seconds.
A_LOOK = {"S1": 8}
ALL_LISTED = {"S1": 25, "S3": 25}
HEAVY_STRINGS_MISSING = {"S6b": 4, "U5": 3, "U6": 5}
OTHER_PARAMETERS = {"U1": 12, "U2": 12, "U3": 12, "U10": 12}


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
