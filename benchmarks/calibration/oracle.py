"""The oracle: a test of each candidate that is told the true share of every other string.

No test on the counts can beat it, so it says how much of what is possible a decoder reaches.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from calibration.draw import Case, label_of, names_of, population
from rappor.decoding.design import build_design
from rappor.decoding.observe import observe
from rappor.decoding.repeats import design_effect
from rappor.mechanism import channel


def oracle_p_values(case: Case, same_names: bool = False) -> np.ndarray:
    """One-sided p-values from the weighted mean over a candidate's bits of what others leave."""
    scenario, seen = case.scenario, observe([case.counts])
    present = population(scenario, names_of(scenario, label_of(case.seed, same_names)))
    everyone = build_design(present, scenario.params, scenario.dialect)
    shares = np.array([present[string] for string in everyone.strings.strings])
    expected = (everyone.columns(np.arange(len(everyone))) @ shares).reshape(seen.shares.shape)
    p_star = float(channel(scenario.params).p_star)
    effect = float(design_effect(scenario.params, p_star, scenario.repeats))
    weight = 1.0 / (seen.variance(expected) * effect)
    padding = ((0, 0), (0, 1))  # the last column stands for no bit
    pull = case.design.gather(np.pad(weight * (seen.shares - expected), padding))
    own = case.design.gather(np.pad(weight, padding))
    # The candidate's own share was taken out with the others': it is put back.
    return np.asarray(ndtr(-(pull / own + case.shares) * np.sqrt(own)))
