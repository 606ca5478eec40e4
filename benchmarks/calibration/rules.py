"""The rules that the decoder has to pass, each with its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import sqrt
from statistics import median
from typing import NamedTuple

from scipy.stats import binom, norm

from calibration.measure import ALPHA, NULL_LEVELS
from calibration.scenarios import SCENARIOS, Scenario
from calibration.summary import Share, Summary, pooled

NULL_FACTOR = 1.5
POOLED_COVERAGE = (0.94, 0.97)
MIN_COVERAGE = 0.91
REGIME_COVERAGE = 0.95
JOINT_COVERAGE = (0.93, 0.97)
MIN_REJECTED = 0.02  # of true independence: a test that never rejects says nothing
MAX_WIDTH = 1.25
MAX_ALARMS = 0.01
# Checks that find faults by a test; the others state facts, such as too few reports.
TESTS = ("balance", "ones", "missing", "cohorts", "fit")
ENOUGH = 100  # detected strings from which a scenario's coverage and width say something
MAX_SECONDS = {"S5": 10.0}
POOL = "pooled"


class Verdict(NamedTuple):
    """One rule for one scenario, or for all of them together."""

    rule: str
    scenario: str
    passed: bool
    numbers: str


def judge(
    summaries: Mapping[str, Summary], scenarios: Mapping[str, Scenario] = SCENARIOS
) -> list[Verdict]:
    """Every rule, one by one; scenarios that no rule applies to are left out."""
    return [
        *_power(summaries, scenarios),
        *_family_wise(summaries),
        *_false_discoveries(summaries),
        *_null_p_values(summaries),
        *_coverage(summaries),
        *_widths(summaries),
        *_one_story(summaries),
        *_regimes(summaries, scenarios),
        *_repeatable(summaries),
        *_fast(summaries),
    ]


def _power(
    summaries: Mapping[str, Summary], scenarios: Mapping[str, Scenario]
) -> Iterator[Verdict]:
    for name, summary in summaries.items():
        reach = scenarios[name].reach
        for label, figure in zip(("family", "fdr"), reach or (), strict=False):
            true = summary.detection[label].true
            yield Verdict(
                f"true positives, {_SPOKEN[label]}",
                name,
                true.value + 2 * true.error >= figure,
                f"{true.value:.2f} ± {true.error:.2f}, to reach {figure:g}",
            )


def _family_wise(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    found = {name: each.detection["family"].any_false for name, each in summaries.items()}
    for name, share in (*found.items(), (POOL, pooled(found.values()))):
        limit = ALPHA + 2 * sqrt(ALPHA * (1 - ALPHA) / share.of)
        yield Verdict(
            "family-wise error",
            name,
            share.value <= limit,
            f"{share.hits} of {share.of} = {share.value:.3f}, at most {limit:.3f}",
        )


def _false_discoveries(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    for name, summary in summaries.items():
        found = summary.detection["fdr"]
        for rule, share in (
            ("false discovery rate", found.false_share),
            ("practical false discovery rate", found.negligible_share),
        ):
            yield Verdict(
                rule,
                name,
                share.value <= ALPHA + 2 * share.error,
                f"{share.value:.3f} ± {share.error:.3f}, at most {ALPHA:g} + 2 se",
            )


def _null_p_values(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    for level in NULL_LEVELS:
        share = pooled(each.nulls[level] for each in summaries.values())
        ratio = share.value / level
        yield Verdict(
            f"null p-values at {level:g}",
            POOL,
            1 / NULL_FACTOR <= ratio <= NULL_FACTOR,
            f"{ratio:.2f} times nominal ({share.hits} of {share.of}), within {NULL_FACTOR:g}",
        )


def _coverage(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    for label, spoken in _SPOKEN.items():
        rule = f"interval coverage, {spoken}"
        found = {name: each.accuracy[label].covered for name, each in summaries.items()}
        for name, share in found.items():
            if share.of >= ENOUGH:
                yield Verdict(
                    rule,
                    name,
                    share.value >= MIN_COVERAGE,
                    f"{_coverage_text(share)}, at least {MIN_COVERAGE:g}",
                )
        share, (low, high) = pooled(found.values()), POOLED_COVERAGE
        if share.of:
            passed = low <= share.value <= high
            yield Verdict(rule, POOL, passed, f"{_coverage_text(share)}, in [{low:g}, {high:g}]")


def _coverage_text(share: Share) -> str:
    return f"{share.value:.3f} ± {share.error:.3f}"


def _widths(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    for label, spoken in _SPOKEN.items():
        found = {name: each.accuracy[label].widths for name, each in summaries.items()}
        every = tuple(width for widths in found.values() for width in widths)
        for name, widths in (*found.items(), (POOL, every)):
            if len(widths) >= ENOUGH:
                middle = median(widths)
                yield Verdict(
                    f"interval width, {spoken}",
                    name,
                    middle <= MAX_WIDTH,
                    f"median {middle:.2f} times the naive width, at most {MAX_WIDTH:g}",
                )


def _one_story(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    total = sum(each.contradictions for each in summaries.values())
    numbers = f"{total} rows contradict themselves"
    yield Verdict("verdict and interval agree", POOL, total == 0, numbers)


def _regimes(
    summaries: Mapping[str, Summary], scenarios: Mapping[str, Scenario]
) -> Iterator[Verdict]:
    """Where an earlier decoder failed, coverage is judged more strictly, and so are checks."""
    for name, summary in summaries.items():
        if not scenarios[name].regime:
            continue
        for label, spoken in _SPOKEN.items():
            for rule, share in (
                (f"regime: rows covered, {spoken}", summary.accuracy[label].covered),
                (f"regime: undetected mass covered, {spoken}", summary.mass_covered[label]),
            ):
                error = sqrt(REGIME_COVERAGE * (1 - REGIME_COVERAGE) / max(share.of, 1))
                passed = share.value >= REGIME_COVERAGE - 2 * error
                yield Verdict(rule, name, passed, f"{_coverage_text(share)}, at least .95 - 2 se")
        for code in TESTS:
            share = summary.alarms.get(code, Share(0, summary.seeds))
            limit = MAX_ALARMS + 2 * sqrt(MAX_ALARMS * (1 - MAX_ALARMS) / share.of)
            passed, numbers = share.value <= limit, f"{share.hits} of {share.of}"
            yield Verdict(f"regime: false alarms, {code}", name, passed, numbers)


def _repeatable(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    for name, summary in summaries.items():
        if summary.same_again is not None:
            same, of = summary.same_again
            yield Verdict("same input, same output", name, same == of, f"{same} of {of} seeds")


def _fast(summaries: Mapping[str, Summary]) -> Iterator[Verdict]:
    for name, most in MAX_SECONDS.items():
        if name in summaries and (seconds := summaries[name].seconds) is not None:
            numbers = f"median {seconds:.1f} s, at most {most:g} s"
            yield Verdict("seconds per decode", name, seconds <= most, numbers)


def judge_tallies(tallies: Mapping[str, Mapping[str, Share]]) -> list[Verdict]:
    """The rules of scenarios that are counted: closed forms, comparisons and associations."""
    return [
        _judge_tally(name, rule, share)
        for name, found in tallies.items()
        for rule, share in found.items()
        if share.of >= (ENOUGH if rule.endswith(_FROM_TO) else 1)
    ]


def _judge_tally(name: str, rule: str, share: Share) -> Verdict:
    numbers = f"{share.hits} of {share.of} = {share.value:.3f}"
    if rule.startswith(_EXACT):
        return Verdict(rule, name, share.hits == 0, numbers)
    goal = ALPHA if rule == "family-wise error" else MAX_ALARMS
    if rule.endswith(_HOLD):
        low, high = JOINT_COVERAGE
        passed = low <= share.value <= high
        return Verdict(rule, name, passed, f"{numbers}, from {low:.2f} to {high:.2f}")
    if rule == "independence rejected":
        limit = ALPHA + 2 * sqrt(ALPHA * (1 - ALPHA) / share.of)
        passed = MIN_REJECTED <= share.value <= limit
        return Verdict(rule, name, passed, f"{numbers}, from {MIN_REJECTED} to {limit:.3f}")
    if "covered" in rule or "below" in rule:
        least = share.of - _allowed(1 - REGIME_COVERAGE, share.of)
        return Verdict(rule, name, share.hits >= least, f"{numbers}, at least {least}")
    limit = _allowed(goal, share.of)
    return Verdict(rule, name, share.hits <= limit, f"{numbers}, at most {limit}")


def _allowed(rate: float, trials: int) -> int:
    """How many things may go wrong where each does at this rate: 2 standard errors above it.

    Fewer than `ENOUGH` trials are far from normal: there it is the number that chance exceeds as
    rarely as that, in 2.3 % of cases.
    """
    if trials >= ENOUGH:
        return int(trials * rate + 2 * sqrt(trials * rate * (1 - rate)))
    return int(binom.isf(_BEYOND_2_SE, trials, rate))


_EXACT = "contradictions"  # none may be
_HOLD = "that hold"  # of 95 % intervals in a table of two variables
_FROM_TO = (_HOLD, "independence rejected")
_BEYOND_2_SE = float(norm.sf(2))
_SPOKEN = {"family": "family-wise", "fdr": "FDR"}
