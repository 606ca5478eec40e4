"""Figure 3: how many strings a number of reports can reveal (§4.2 and appendix)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from rappor.experiments.best_test import power
from rappor.experiments.experiment import Comparison, Experiment, Outcome, Table, extra
from rappor.experiments.learnable.figures import draw_lines, draw_power, draw_rule
from rappor.experiments.learnable.runs import (
    BASIC,
    CANDIDATES,
    HEAVY,
    HEAVY_SHARE,
    POWERS,
    REPORTS,
    WITH_BLOOM,
    WITH_HEAVY,
    bloom_params,
    run_all,
    strings_at,
)
from rappor.experiments.seeds import Progress, mean_sd, spread
from rappor.params import Params
from rappor.privacy import critical_value, detectable, learnable_strings, standard_error

LINES = tuple(10**exponent for exponent in range(1, 8))  # seven sizes of the candidate list
EXPONENTS = range(3, 11)
# The paper's (reports, about how many strings), with the M at which the bound is quoted here.
PUBLISHED = ((10**10, 10_000, 10**4), (10**8, 1_000, 10**3))
NEEDED = ((0.01, 10**6), (0.001, 10**8), (0.0001, 10**10))
NEEDED_CANDIDATES = 10**4
ABOUT = 1.5  # what "about" may mean: a factor up to this either way


def run(seeds: int, progress: Progress) -> Outcome:
    """The bound by formula, and by simulation at one point."""
    found = run_all(seeds, progress)
    points = [(strings_at(power), found[str(power)]) for power in POWERS]
    curve = [
        (learnable_strings(BASIC, REPORTS, CANDIDATES, step / 200), step / 200)
        for step in range(1, 200)
    ]
    return Outcome(
        (*_published(), _rule(), *_needed(), *_powers(found), *_lower(found)),
        (
            draw_lines(lines(), [(n, exact(n, m), m) for n, _, m in PUBLISHED]),
            draw_rule([(m, exact(1.0, m)) for m in LINES]),
            draw_power(curve, points, REPORTS, CANDIDATES),
        ),
        (_bound_table(), _needed_table()),
        _text(),
    )


def exact(reports: float, candidates: int, chance: float = 0.5) -> float:
    """The bound: (2q-1) √N / Q at 50 % power.

    >>> round(exact(10**10, 10**4)), round(exact(10**8, 10**3))
    (11319, 1285)
    """
    return learnable_strings(BASIC, reports, candidates, chance)


def lines() -> list[tuple[float, int, float]]:
    """(reports, candidates, strings) along the seven lines."""
    steps = [10 ** (power / 4) for power in range(4 * EXPONENTS[0], 4 * EXPONENTS[-1] + 1)]
    return [(n, m, exact(n, m)) for m in LINES for n in steps]


def reports_needed(frequency: float, candidates: int, chance: float) -> float:
    """The smallest number of reports that detects this frequency with this chance.

    >>> f"{reports_needed(0.01, 10**4, 0.5):,.0f}"
    '780,457'
    """
    low, high = 1.0, 1e15
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        if detectable(BASIC, middle, candidates, chance).frequency > frequency:
            low = middle
        else:
            high = middle
    return high


def _about(ours: float, published: float) -> bool:
    return 1 / ABOUT <= ours / published <= ABOUT


def _rounded(number: float) -> str:
    """Three digits, in full: 780,000."""
    return f"{float(f'{number:.3g}'):,.0f}"


def _published() -> Iterator[Comparison]:
    for reports, strings, candidates in PUBLISHED:
        ours = exact(reports, candidates)
        others = [exact(reports, m) for m in LINES]
        yield Comparison(
            f"Strings learnable from {reports:,} reports",
            f"about {strings:,}",
            f"{ours:,.0f} (M = {candidates:,})",
            _about(ours, strings),
            f"(2q-1)√N/Q with Q = {critical_value(candidates):.3f}. Depending on the candidates, "
            f"{min(others):,.0f} (M = {LINES[-1]:,}) to {max(others):,.0f} (M = {LINES[0]:,}).",
        )


def _rule() -> Comparison:
    shares = [exact(1.0, m) for m in LINES]
    return Comparison(
        "Rule of thumb for the number of strings",
        "√N/10",
        f"√N/{1 / max(shares):.1f} to √N/{1 / min(shares):.1f}",
        all(0.5 <= share / 0.1 <= 2 for share in shares),
        f"(2q-1)/Q falls from {max(shares):.3f} at M = {LINES[0]} to {min(shares):.3f} at "
        f"M = {LINES[-1]:,}: within a factor 2 of 1/10 throughout, and closest at M = "
        f"{min(LINES, key=lambda m: abs(exact(1.0, m) - 0.1)):,}.",
    )


def _needed() -> Iterator[Comparison]:
    for frequency, published in NEEDED:
        half, most = (reports_needed(frequency, NEEDED_CANDIDATES, power) for power in (0.5, 0.95))
        yield Comparison(
            f"Reports needed to detect a frequency of {100 * frequency:g} %",
            f"{published:,}",
            f"{_rounded(half)} (50 % power), {_rounded(most)} (95 %)",
            _about(half, published),
            f"One-sided, M = {NEEDED_CANDIDATES:,} candidates, family-wise 5 %. The published "
            "sizes find such a string more often than not; a reliable detection takes about 1.5 "
            "times "
            "as many.",
        )


def _powers(found: Mapping[str, list[float]]) -> Iterator[Comparison]:
    for level in POWERS:
        shares = [100 * share for share in found[str(level)]]
        strings = strings_at(level)
        # Rounding x to a whole number moves the power a little: twice that is allowed, and noise.
        off = abs(spread(shares).mean - 100 * level)
        yield Comparison(
            f"{strings} equal strings in {REPORTS:,} reports: share that is found",
            "no figure" if level != 0.5 else "no figure: the limit itself",
            f"{mean_sd(shares, '.1f', ' %')}; formula {100 * level:g} %",
            extra(off <= 4 * spread(shares).se + 1),
            f"Simulated Basic One-time RAPPOR, M = {CANDIDATES:,}."
            + (
                " The paper’s limit is a 50 % statement: half of that many strings are found."
                if level == 0.5
                else ""
            ),
        )


def _lower(found: Mapping[str, list[float]]) -> Iterator[Comparison]:
    strings = strings_at(0.5)
    level = 0.05 / CANDIDATES
    whole = REPORTS / strings
    cases = (
        (
            WITH_HEAVY,
            "“their detectability suffers”",
            f"{HEAVY} strings hold {HEAVY_SHARE:.0%} of the reports",
            power([whole * (1 - HEAVY_SHARE)], standard_error(BASIC, REPORTS), level)[0],
            strings_at(0.5, heavy_share=HEAVY_SHARE),
        ),
        (
            WITH_BLOOM,
            "“significantly inferior”",
            "128 bits, 2 hashes, 16 cohorts, the same ε",
            power([whole], standard_error(bloom_params(), REPORTS), level)[0],
            strings_at(0.5, bloom_params()),
        ),
    )
    for name, published, how, formula, left in cases:
        shares = [100 * share for share in found[name]]
        yield Comparison(
            f"The same {strings} strings {name}: share that is found",
            published,
            f"{mean_sd(shares, '.1f', ' %')}; formula {100 * formula:.1f} %",
            spread(shares).mean < 40,
            f"{how[0].upper()}{how[1:]}: by formula {left} instead of {strings} equal strings can "
            "be learnt."
            + (" Collisions, which the formula leaves out, take more." * (name == WITH_BLOOM)),
        )


def _bound_table() -> Table:
    rows: list[tuple[object, ...]] = []
    cases: tuple[tuple[str, Params, float], ...] = (
        ("equal strings, a bit each", BASIC, 0.0),
        (f"{HEAVY_SHARE:.0%} of reports on heavy hitters", BASIC, HEAVY_SHARE),
        ("Bloom filter, h = 2, ε = ln 3", bloom_params(), 0.0),
        ("Bloom filter, h = 2, f = 0.5 (§5.2)", Params.preset("exponential"), 0.0),
    )
    for about, params, heavy in cases:
        for exponent in (6, 8, 10):
            for m in (10**3, 10**4, 10**6):
                bound = [
                    math.floor(learnable_strings(params, 10**exponent, m, power, heavy_share=heavy))
                    for power in POWERS
                ]
                rows.append((about, 10**exponent, m, *bound))
    return Table(
        "learnable-strings",
        "Strings that can be learnt, and what lowers the number",
        ("population", "reports N", "candidates M", *(f"{level:.0%} power" for level in POWERS)),
        tuple(rows),
        "At a family-wise 5 %, rounded down. It may exceed M, which enters through the threshold "
        "only: then all M can be learnt.",
        show=36,
    )


def _needed_table() -> Table:
    return Table(
        "learnable-reports-needed",
        "Reports needed to detect a frequency",
        ("frequency", "candidates M", *(f"{level:.0%} power" for level in POWERS)),
        tuple(
            (frequency, m, *(math.ceil(reports_needed(frequency, m, power)) for power in POWERS))
            for frequency, _ in NEEDED
            for m in (10**2, 10**4, 10**6)
        ),
        "Basic One-time RAPPOR, p = 0.5, q = 0.75, f = 0 (ε = ln 3), family-wise 5 %.",
    )


def _text() -> tuple[str, ...]:
    return (
        "The bound answers: into how many equally frequent strings may the reports be divided so "
        "that each is just detectable? A count is estimated with standard error 2√N, and one of M "
        "candidates is significant above Q = Φ⁻¹(1 - 0.05/M) standard errors. “Just detectable” "
        "means found with probability one half; the tables have 80 and 95 % too.",
        "The paper does not list its seven sizes of the candidate set. Here they are the powers of "
        "ten from 10 to ten million; the lines lie within a factor of about two of each other, so "
        "the choice hardly matters.",
    )


EXPERIMENT = Experiment(
    name="learnable",
    title="What can be learnt",
    source="Figure 3, §4.2 and appendix",
    about="The paper computes an upper limit on the number of strings whose frequency can be "
    "learnt from N reports under ε = ln 3 (p = 0.5, q = 0.75, f = 0), for seven sizes M of the "
    "candidate set: x ≤ (2q-1)√N / Q, Q = Φ⁻¹(1 - 0.05/M). It is reached only if all strings are "
    "equally frequent and each has a bit of its own.",
    run=run,
)
