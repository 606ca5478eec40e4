"""Checks of data without a fault fail at most once in 200 times, and planted faults are found.

Honest collections: two populations (one with a long tail of strings too rare to detect), 1, 7 and
30 reports a client, random cohorts. Each check fails at a rate of .001 or less: of 204 collections
more than 2 with probability 1.2e-3 or less; a rate of .05 fails no more than 2 with probability
2e-3. `make test` has 6 collections, of which none may fail: a rate of .5 passes with probability
.016. What the three consumers show must agree in every one.

False alarms: with rate FALSE_ALARMS = .005 or less, 60 clean collections give more than 2 alarms
with probability 3.5e-3; a rate of .15 gives no more than 2 with probability 3.9e-3, one of .1 with
.053, so that smaller excesses are not for this test to find. (600 other seeds gave 1 alarm, which
bounds the rate by .008 with 95 % confidence.) `make test` has 12: more than 1 alarm has probability
1.6e-3, and a rate of .5 gives no more than 1 with probability 3.2e-3.

Single tests run at LEVEL = .001 on 20,000 collections: 20 alarms expected, more than 38 or fewer
than 6 with probability 2e-4; a test at four times the level gives 80, and so few as 38 with
probability 1.4e-7. `make test` has 4,000 of the slower one: 4 expected, more than 13 with
probability 8e-5; a test at ten times the level gives so few with probability 6e-7.

Power: the two most frequent strings (20 % and 16 %) left out of the list, a cohort that lost 6 % of
its reports, 1 % of forged reports: each must be found in each of 10 collections (2 in `make test`).
"""

import json
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from rappor import Params
from rappor.aggregate import Counts
from rappor.cli.main import main
from rappor.dashboard.diagnostics import serialization as page
from rappor.decoding.decode import decode
from rappor.decoding.diagnosis import balance_p_value, bit_table, diagnose
from rappor.decoding.quality import FALSE_ALARMS, LEVEL, ones_z
from rappor.simulate import simulate

PARAMS = Params(64, 2, 8, 0.5, 0.25, 0.75)
NAMES = [f"v{i:02}" for i in range(30)]
SHARES = 0.8 ** np.arange(20)
POPULATION = dict(zip(NAMES, SHARES / SHARES.sum(), strict=False))
N, TRIALS = 100_000, 20_000


def drawn(seed, population=POPULATION):
    """Counts of clients that draw their cohorts at random."""
    sizes = np.random.default_rng(seed).multinomial(N, [1 / PARAMS.m] * PARAMS.m)
    return simulate(population, PARAMS, N, seed=seed, cohort_sizes=sizes).counts


def alarms(made, names=NAMES):
    return {check.code for check in decode(made, names).checks if not check.ok}


@pytest.mark.parametrize(("seeds", "most"), [(12, 1), pytest.param(60, 2, marks=pytest.mark.long)])
def test_data_without_a_fault_raise_an_alarm_at_most_once_in_200(seeds, most):
    assert stats.binom.sf(most, seeds, FALSE_ALARMS) < 0.004
    wrong = [found for seed in range(seeds) if (found := alarms(drawn(seed)))]
    assert len(wrong) <= most, wrong


@pytest.mark.parametrize(("repeats", "expected"), [(1, LEVEL), (2, 0.0)])
def test_equal_cohorts_are_called_uneven_once_in_a_thousand(repeats, expected):
    """With `repeats` reports allowed for one client and one sent, hardly ever."""
    random = np.random.default_rng(5)
    sizes = random.multinomial(80_000, [1 / 16] * 16, TRIALS)
    found = sum(balance_p_value([each], repeats) < LEVEL for each in sizes)
    assert 6 <= found <= 38 if expected else found <= 2


def test_clients_that_send_twice_do_not_make_cohorts_uneven():
    """Each sends 2: without allowing for it, alarms are at least ten times as frequent."""
    random = np.random.default_rng(6)
    sizes = 2 * random.multinomial(40_000, [1 / 16] * 16, TRIALS)
    assert 6 <= sum(balance_p_value([each], 2) < LEVEL for each in sizes) <= 38
    assert sum(balance_p_value([each], 1) < LEVEL for each in sizes) > 200


@pytest.mark.parametrize(
    ("trials", "least", "most"),
    [(4_000, 0, 13), pytest.param(TRIALS, 6, 38, marks=pytest.mark.long)],
)
def test_honest_reports_are_called_forged_once_in_a_thousand(trials, least, most):
    random = np.random.default_rng(7)
    limit = stats.norm.isf(LEVEL / 2)
    found = 0
    params = Params(4, 1, 1, 0.5, 0.25, 0.75)  # p* = .375, q* = .625
    set_bits = random.binomial(2_000, [0.625, 0.375, 0.375, 0.375], (trials, 4))
    for ones in set_bits:
        made = Counts(params, [2_000], [ones], dialect="rappor-v1")
        found += abs(ones_z([made])) > limit
    assert least <= found <= most


@pytest.mark.parametrize("seeds", [2, pytest.param(10, marks=pytest.mark.long)])
def test_planted_faults_are_found(seeds):
    found = {"missing": 0, "balance": 0, "ones": 0}
    for seed in range(seeds):
        made = drawn(1000 + seed)
        found["missing"] += "missing" in alarms(made, NAMES[2:])
        totals, ones = made.totals.copy(), made.ones.copy()
        totals[1], ones[1] = totals[1] * 94 // 100, ones[1] * 94 // 100
        lost = Counts(PARAMS, totals, ones, dialect="rappor-v1")
        found["balance"] += "balance" in alarms(lost)
        each = N // 100 // PARAMS.m
        forged = Counts(PARAMS, made.totals + each, made.ones + each, dialect="rappor-v1")
        found["ones"] += "ones" in alarms(forged)
    assert min(found.values()) == seeds, found


# One judge: what the warnings, `rappor decode --diagnose` and the page Diagnostics say.

QUIET = Params(64, 2, 16, 0.25, 0.25, 0.75)
TAIL = {f"t{i:03}": 1 / i for i in range(1, 501)}
SIZE = 2_100_000


def failed(checks):
    return {check.code for check in checks if not check.ok}


def named_by_all(decoded, counts):
    """The codes that fail, which every consumer in this process names."""
    diagnosis = diagnose(decoded)
    result = page.pack(decoded, diagnosis, bit_table(decoded, [counts]), {})
    shown = page.unpack(json.loads(json.dumps(result.meta)), result.table).checks
    lines = [line.removeprefix("Check: ") for line in diagnosis.lines() if line[:6] == "Check:"]
    assert decoded.checks == diagnosis.checks == shown
    assert list(decoded.warnings) == lines
    return failed(decoded.checks)


@pytest.mark.parametrize(
    ("seeds", "allowed"),
    [
        (1, 0),
        pytest.param(12, 1, marks=pytest.mark.long),  # a rate of 6 % is noticed in nine of ten runs
        pytest.param(34, 2, marks=pytest.mark.soak),
    ],
)
def test_each_check_of_honest_collections_fails_in_at_most_one_percent(seeds, allowed):
    failures: Counter[str] = Counter()
    for population in (POPULATION, TAIL):
        names = [*population, *(f"absent{i}" for i in range(30))]
        for repeats in (1, 7, 30):
            for seed in range(seeds):
                made = simulate(
                    population,
                    QUIET,
                    SIZE,
                    seed=[seed, repeats],
                    cohort_sizes="random",
                    reports_per_client=repeats,
                ).counts
                failures.update(named_by_all(decode(made, names), made))
    assert all(number <= allowed for number in failures.values()), failures


def planted(fault):
    made = drawn(77)
    totals, ones = made.totals.copy(), made.ones.copy()
    if fault == "a missing cohort":
        totals[2], ones[2] = 0, 0
    elif fault == "forged bits":
        totals, ones = totals + 125, ones + 125
    params = Params(64, 2, 8, 0.25, 0.25, 0.75) if fault == "other parameters" else PARAMS
    return Counts(params, totals, ones, dialect="rappor-v1", reports_per_client=1)


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("a missing cohort", "balance"),
        ("a heavy unlisted string", "missing"),
        ("forged bits", "ones"),
        ("other parameters", "ones"),
    ],
)
def test_a_planted_fault_is_named_by_every_consumer(fault, code, tmp_path, capsys):
    names = NAMES[1:] if fault == "a heavy unlisted string" else NAMES
    made = planted(fault)
    decoded = decode(made, names)
    assert code in named_by_all(decoded, made)
    made.to_parquet(tmp_path / "counts.parquet")
    (tmp_path / "list.txt").write_text("\n".join(names))
    files = ["--counts", str(tmp_path / "counts.parquet")]
    files += ["--candidates", str(tmp_path / "list.txt")]
    assert main(["decode", *files, "--diagnose", "--json"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["checks"] == [check._asdict() for check in decoded.checks]
    for text in decoded.warnings:
        assert f"Check: {text}" in document["diagnosis"]
        assert f"note: {text}" in shown.err
