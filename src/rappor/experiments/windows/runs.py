"""The stand-in for the Windows collection (§5.3), and the same machines repeating themselves.

The process names of the paper's collection are private but for the ten it prints. The stand-in has
those ten with their published shares, 990 made-up names that share out the rest, and 1,000
candidates that no machine runs. A machine reports a name at most once. Made-up names differ between
seeds, so that names which share bits in one collection do not in the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rappor.experiments.detected_strings import decode_strings, places
from rappor.experiments.published_tables import TABLE_2
from rappor.params import Params
from rappor.privacy.limits import critical_value
from rappor.simulate import Population, Simulated, simulate, zipf
from rappor.typing import FloatArray

PARAMS = Params.preset("windows")
REPORTS, MACHINES, ALPHA = 186_792, 10_133, 0.05  # §5.3
PRESENT, CANDIDATES = 1000, 2000
LISTED = tuple(row.process for row in TABLE_2)
EACH = REPORTS // MACHINES  # reports of a machine that has one value only, in the comparison
_SHIFT, _POWER = 40, 1.2  # the tail: its largest name has .7 %, far below what can be detected
_WATCHED = 100  # names, most frequent first, whose intervals are followed whether detected or not


def shares() -> FloatArray:
    """True shares of the names that machines run, the ten published ones first, shape (1000,)."""
    head = [row.estimate / REPORTS for row in TABLE_2]
    tail = zipf(PRESENT - len(head), power=_POWER, shift=_SHIFT).shares
    return np.concatenate([head, (1 - sum(head)) * np.array(tail)])


SHARES = shares()


def population(seed: int) -> Population:
    """The stand-in: the ten published names first, made-up ones after them."""
    made_up = range(len(LISTED) + 1, CANDIDATES + 1)
    names = (*LISTED, *(f"PROCESS_{seed}_{number:04}.EXE" for number in made_up))
    return Population("windows stand-in", names[:PRESENT], tuple(SHARES.tolist()), names)


@dataclass(frozen=True, slots=True)
class WindowsRun:
    """One simulated collection decoded, in the order of the candidates.

    Attributes:
        detected: at a false discovery rate of 5 %.
        estimate: counts, also of what is not detected.
        error: standard errors under the noise of the mechanism alone.
        scale: the factor on variances that the decoder measured and printed, at least 1.
        truth: reports that hold each name.
        low_95: lower ends of the decoder's 95 % intervals.
        high_95: upper ends.
        chi2_dof: residual χ² per degree of freedom.
        covered: share of the 100 most frequent names within 1.96 of those standard errors.
        widened: the same with the over-dispersion that the decoder measures.
        any_false: whether Bonferroni at 5 %, without allowing for over-dispersion, finds a name
            that no machine runs.
    """

    detected: NDArray[np.bool_]
    estimate: FloatArray
    error: FloatArray
    scale: float
    truth: FloatArray
    low_95: FloatArray
    high_95: FloatArray
    chi2_dof: float
    covered: float
    widened: float
    any_false: bool


def distinct_names(seed: int) -> WindowsRun:
    """As in the paper: 186,792 reports, a machine reports a name at most once."""
    people = population(seed)
    drawn = simulate(people, PARAMS, REPORTS, seed=[53, seed], values="distinct", clients=MACHINES)
    return _decoded(people.candidates, drawn)


def one_name_each(seed: int) -> WindowsRun:
    """What would need a correction: every machine reports its one name 18 times."""
    people = population(seed)
    drawn = simulate(people, PARAMS, MACHINES * EACH, seed=[53, seed], reports_per_client=EACH)
    return _decoded(people.candidates, drawn)


def _decoded(names: Sequence[str], drawn: Simulated) -> WindowsRun:
    decoded = decode_strings(drawn.counts, names)
    rows, order = decoded.rows, places(decoded, names)
    printed = rows.std_error[order]
    estimate, error = rows.raw_estimate[order], printed / decoded.scale**0.5
    truth = np.array([drawn.truth[name] for name in names], np.float64)
    off = np.abs(estimate - truth)[:_WATCHED]
    return WindowsRun(
        detected=rows.detected[order],
        estimate=estimate,
        error=error,
        scale=decoded.scale,
        truth=truth,
        low_95=rows.low[order],
        high_95=rows.high[order],
        chi2_dof=decoded.chi2_dof,
        covered=float((off <= 1.96 * error[:_WATCHED]).mean()),
        widened=float((off <= 1.96 * printed[:_WATCHED]).mean()),
        any_false=bool((estimate / error)[PRESENT:].max() > critical_value(CANDIDATES, ALPHA)),
    )
