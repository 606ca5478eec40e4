"""Figure 6: Chrome homepages, on labelled stand-ins for the private data (§5.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rappor.charts.numbers import show_p
from rappor.experiments.best_test import count_for, discovery_level, power
from rappor.experiments.chrome import figures as figures
from rappor.experiments.chrome.runs import (
    ALPHA,
    CANDIDATES,
    HEAD,
    PARAMS,
    PRESENT,
    REPORTS,
    TOP,
    TOP_MASS,
    ZIPF,
    ChromeRun,
    best_possible,
    head_shares,
    one_seed,
    populations,
    zipf_shares,
)
from rappor.experiments.experiment import Comparison, Experiment, Outcome, Table, extra
from rappor.experiments.seeds import Progress, mean_sd, replicate, spread
from rappor.privacy.limits import standard_error

# §5.4: "less than 0.5 % out of 8,616 candidate URLs provide enough statistical evidence for their
# presence (after the FDR correction), they collectively account for about 85 % of the total
# probability mass"; Figure 6 shows 31; discovered "if their frequency exceeds 0.1 %", that is
# "more than ~14 thousand clients".
SIGNIFICANT, MASS, SHOWN, CLAIMED = 0.005, 0.85, 31, 0.001
# §4.2, for Basic One-time RAPPOR at ε = ln 3: "1 %, then one million samples are required".
RULE_SHARE, RULE_REPORTS = 0.01, 10**6
NEAR = 0.03


def run(seeds: int, progress: Progress) -> Outcome:
    """Simulate the stand-ins, decode them, and compare the results with Figure 6."""
    runs = replicate(one_seed, seeds, progress, "chrome")
    by_name = {name: [run[name] for run in runs] for name in runs[0]}
    return Outcome(
        comparisons=(
            _significant(by_name),
            _mass(by_name[HEAD], HEAD),
            _mass(by_name[ZIPF], ZIPF),
            _shown(by_name),
            _claimed(),
            _needed(),
        ),
        figures=(
            figures.top(by_name[HEAD][0].top[:SHOWN]),
            figures.concentration(by_name, MASS, SIGNIFICANT),
            figures.detection(by_name[HEAD], head_shares(), level(), CLAIMED),
        ),
        tables=(_populations(by_name), _top(by_name[HEAD][0])),
        text=_words(),
    )


def level() -> float:
    """The one-sided level at which the false discovery rate of 5 % settles for head and tail."""
    return discovery_level(REPORTS * head_shares(), _error(), CANDIDATES, ALPHA)


def _error() -> float:
    return standard_error(PARAMS, REPORTS)


def _significant(by_name: Mapping[str, Sequence[ChromeRun]]) -> Comparison:
    share = {
        name: [100 * run.number / CANDIDATES for run in found] for name, found in by_name.items()
    }
    highest = max(spread(shares).mean for shares in share.values())
    return Comparison(
        "share of the candidates that are significant at FDR 5 %",
        f"less than {100 * SIGNIFICANT:g} % of {CANDIDATES:,}",
        f"{mean_sd(share[HEAD], '.2f', ' %')} for head and tail, "
        f"{mean_sd(share[ZIPF], '.2f', ' %')} for Zipf 1.4",
        highest < 100 * SIGNIFICANT,
        f"In every population tried it is at most {highest:.2f} %: a share must be about "
        f"{100 * count_for(0.5, _error(), level()) / REPORTS:.2f} % to be detected, and few "
        "homepages can have that much.",
    )


def _mass(found: Sequence[ChromeRun], name: str) -> Comparison:
    mass = [100 * run.mass for run in found]
    estimated = spread([100 * run.estimated for run in found])
    agrees: bool | None = abs(spread(mass).mean / 100 - MASS) <= NEAR
    if name == HEAD:
        agrees = extra(bool(agrees))
        what = f"if {TOP} homepages hold {100 * TOP_MASS:g} %"
        why = (
            "The population was chosen for it: the published pair of numbers needs most of the "
            f"mass on some forty homepages. The decoder's own estimate is {estimated.mean:.0f} ± "
            f"{estimated.sd:.0f} %."
        )
    else:
        what = "if frequencies follow Zipf's law with exponent 1.4"
        chances = best_possible(zipf_shares(1.4))
        why = (
            f"The best possible test finds {100 * float(chances @ zipf_shares(1.4)):.0f} %. The "
            "mass found is that of the frequent homepages, a property of the population that is "
            f"not public; a Zipf law needs the exponent {_exponent_for(MASS):.2f} to reach "
            f"{100 * MASS:g} %."
        )
    return Comparison(
        f"share of all reports that the significant ones hold, {what}",
        f"about {100 * MASS:g} %",
        mean_sd(mass, ".1f", " %"),
        agrees,
        why,
    )


def _exponent_for(mass: float) -> float:
    """The exponent of the Zipf law of which the best test finds this mass."""
    low, high = 1.0, 3.0
    for _ in range(20):
        middle = (low + high) / 2
        shares = zipf_shares(middle)
        if float(best_possible(shares) @ shares) < mass:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _shown(by_name: Mapping[str, Sequence[ChromeRun]]) -> Comparison:
    head = [run.number for run in by_name[HEAD]]
    law = [run.number for run in by_name[ZIPF]]
    return Comparison(
        "domains detected",
        f"{SHOWN} in Figure 6, without the expected ones; fewer than "
        f"{SIGNIFICANT * CANDIDATES:.0f} in all",
        f"{mean_sd(head, '.1f')} for head and tail, {mean_sd(law, '.1f')} for Zipf 1.4",
        extra(SHOWN <= spread(head).mean <= SIGNIFICANT * CANDIDATES),
        f"A Zipf law that puts {100 * MASS:g} % on the detected ones has fewer than {SHOWN} "
        "frequent "
        "homepages; a head of some forty with a flat tail has both, and was chosen for that.",
    )


def _claimed() -> Comparison:
    errors = CLAIMED * REPORTS / _error()
    chance = float(power([CLAIMED * REPORTS], _error(), level())[0])
    return Comparison(
        "smallest share that can be discovered with statistical confidence",
        f"{100 * CLAIMED:g} %, optimistically",
        f"{errors:.2f} standard errors: detected with probability {show_p(chance)}",
        chance >= 0.5,
        f"The standard error is {_error():,.0f} reports or {100 * _error() / REPORTS:.3f} % of "
        f"them, more than {100 * CLAIMED:g} % itself; at FDR 5 % half of the homepages of "
        f"{100 * count_for(0.5, _error(), level()) / REPORTS:.2f} % are detected.",
    )


def _needed() -> Comparison:
    threshold = count_for(0.5, _error(), level())
    claimed = CLAIMED * REPORTS
    needed = REPORTS * (threshold / claimed) ** 2
    return Comparison(
        "clients that must report a domain before it can be identified",
        f"about {claimed:,.0f} of {REPORTS:,}",
        f"{threshold:,.0f} for an even chance",
        threshold <= 2 * claimed,
        f"The threshold grows with √N: at {needed:,.0f} reports, {100 * CLAIMED:g} % would have "
        "that even chance.",
    )


def _populations(by_name: Mapping[str, Sequence[ChromeRun]]) -> Table:
    rows = []
    for name, shares in populations().items():
        found, chances = by_name[name], best_possible(shares)
        false = np.mean([int(run.detected[PRESENT:].sum()) for run in found])
        number = spread([run.number for run in found])
        rows.append(
            (
                *(name, f"{100 * shares[0]:.1f} %", f"{number.mean:.1f} ± {number.sd:.1f}"),
                *(f"{false:.2f}", f"{chances.sum():.1f}"),
                f"{100 * number.mean / CANDIDATES:.2f} %",
                f"{100 * np.mean([run.mass for run in found]):.1f} %",
                f"{100 * np.mean([run.estimated for run in found]):.1f} %",
                f"{100 * float(chances @ shares):.1f} %",
            )
        )
    return Table(
        "chrome-populations",
        f"What is found of each synthetic population, {len(by_name[HEAD])} seeds",
        (
            *("Population", "Most frequent", "Detected", "Held by nobody"),
            *("Best possible, detected", "Share of candidates", "Mass found"),
            *("Mass by our estimate", "Best possible, mass"),
        ),
        tuple(rows),
        "The false detections of the best possible test are not counted here.",
    )


def _top(first: ChromeRun) -> Table:
    rows = tuple(
        (place, rank, *(f"{100 * share:.3f} %" for share in shares))
        for place, (rank, *shares) in enumerate(first.top, 1)
    )
    return Table(
        "chrome-detected",
        "Homepages detected in the first seed, head and tail",
        ("Place", "True rank", "Share", "95 % from", "95 % to", "True share"),
        rows,
        "A true rank above 4,000 is a candidate that nobody holds.",
        show=SHOWN,
    )


def _words() -> tuple[str, ...]:
    rule = RULE_SHARE * (RULE_REPORTS / REPORTS) ** 0.5
    return (
        f"Can {100 * CLAIMED:g} % be detected? The standard error of a count is "
        "√(p*(1-p*)N/h)/(q*-p*) "
        f"= {_error():,.0f} reports at N = {REPORTS:,} and f = .75. {100 * CLAIMED:g} % of the "
        f"reports are {CLAIMED * REPORTS:,.0f}, or {CLAIMED * REPORTS / _error():.2f} standard "
        f"errors, and chance alone gives an absent string an estimate that high in "
        f"{_by_chance(CLAIMED * REPORTS / _error()):.2f} of all cases. The "
        "formula is the one behind the standard errors of Tables 1 and 2.",
        f"The paper's own rule of thumb (§4.2: {100 * RULE_SHARE:g} % needs a million reports, a "
        f"tenth of it a hundred times as many, at the weaker ε = ln 3 and without a Bloom filter) "
        f"gives {100 * rule:.2f} % for {REPORTS:,} reports. The published findings do not need "
        f"the claim: all that Figure 6 shows may well be above {100 * _threshold():.1f} %.",
    )


def _threshold() -> float:
    return count_for(0.5, _error(), level()) / REPORTS


def _by_chance(errors: float) -> float:
    """How often an absent string's estimate exceeds this many standard errors."""
    return float(power([-errors], 1.0, 0.5)[0])


EXPERIMENT = Experiment(
    name="chrome",
    title="Chrome homepages",
    source="Figure 6, §5.4",
    about=(
        "About 14 million reports on the homepages of Chrome users; k = 128, h = 2, m = 32, "
        "f = .75, p = .5, q = .75. Of 8,616 candidate domains fewer than 0.5 % were significant at "
        "a false discovery rate of 5 %, and held about 85 % of the mass; the figure shows 31."
    ),
    run=run,
    stand_in=(
        "Synthetic. The paper's data are private, and so is how concentrated they are. The "
        f"stand-ins have {PRESENT:,} homepages that clients hold and {CANDIDATES - PRESENT:,} "
        "candidates that nobody holds. Five follow Zipf laws (exponents 1.0 to 1.8); in 'head and "
        f"tail' {TOP} homepages fall by 6 % from one to the next and hold {100 * TOP_MASS:g} %, "
        "the others share the rest (∝ i^-0.6)."
    ),
)
