"""The simulated collections behind Table 1 and Figure 5 (§5.2): one seed, every rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.decoding.options import Correction, Method
from rappor.experiments.best_test import power
from rappor.experiments.detected_strings import decode_strings, detected, places
from rappor.params import Params
from rappor.privacy.limits import standard_error
from rappor.simulate import simulate
from rappor.simulate.populations import exponential
from rappor.typing import FloatArray

PARAMS = Params.preset("exponential")
REPORTS, ALPHA = 10**6, 0.05
POPULATION = exponential(100, decay=0.9505, absent=100, prefix="V_")
NAMES = POPULATION.candidates
SHARES: FloatArray = np.array(POPULATION.shares)
PRESENT, ABSENT = len(SHARES), len(NAMES) - len(SHARES)


class Rule(NamedTuple):
    """A way to say which strings are there: the decoder, the correction, the one-sided level."""

    method: Method
    correction: Correction
    level: float


RULES = {
    "Bonferroni": Rule("auto", "bonferroni", ALPHA),
    "Holm": Rule("auto", "holm", ALPHA),
    "FDR 5 %": Rule("auto", "fdr", ALPHA),
    "LASSO, Bonferroni": Rule("lasso", "bonferroni", ALPHA),
    "LASSO, uncorrected": Rule("lasso", "none", ALPHA / 2),  # two-sided .05
}
FDR = "FDR 5 %"


@dataclass(frozen=True, slots=True)
class ExponentialRun:
    """One seed: what each rule detects, and the columns of Table 1, all in the order of `NAMES`.

    `scale` is the factor on variances that the decoder measured, at least 1.
    """

    detected: dict[str, NDArray[np.bool_]]
    truth: FloatArray
    estimate: FloatArray
    error: FloatArray
    p_value: FloatArray
    scale: float

    def found(self, rule: str) -> tuple[int, int]:
        """True and false detections."""
        hits, there = self.detected[rule], self.truth > 0
        return int((hits & there).sum()), int((hits & ~there).sum())

    @property
    def mean_error(self) -> float:
        """Mean standard error of what is detected at FDR 5 %."""
        return float(self.error[self.detected[FDR]].mean())


def one_seed(seed: int) -> ExponentialRun:
    """Simulate a million reports, decode them by both methods, apply every rule."""
    people = dict(zip(POPULATION.strings, POPULATION.shares, strict=True))
    drawn = simulate(people, PARAMS, REPORTS, seed=[52, seed])
    by_method = {
        method: decode_strings(drawn.counts, NAMES, method)
        for method in dict.fromkeys(rule.method for rule in RULES.values())
    }
    rows, order = by_method["auto"].rows, places(by_method["auto"], NAMES)
    return ExponentialRun(
        detected={
            name: detected(by_method[rule.method], NAMES, rule.correction, rule.level)
            for name, rule in RULES.items()
        },
        truth=np.array([drawn.truth.get(name, 0) for name in NAMES], np.float64),
        estimate=rows.raw_estimate[order],
        error=rows.std_error[order],
        p_value=rows.p_value[order],
        scale=by_method["auto"].scale,
    )


def best_possible(level: float) -> FloatArray:
    """Chance that the best test finds each string of the population at a one-sided level.

    >>> round(float(best_possible(ALPHA / 200).sum()), 1)
    33.6
    >>> round(float(best_possible(ALPHA / 2).sum()), 1)
    47.6
    """
    return power(REPORTS * SHARES, standard_error(PARAMS, REPORTS), level)
