"""Stand-ins for the Chrome homepages (§5.4): five Zipf laws, and a head with a long tail.

The paper's data are private, and the share of the mass that can be detected depends on how
concentrated the population is. So there are several populations, each with 4,000 homepages that
clients hold and 4,616 candidates that nobody holds. Names, and so their bits, differ between seeds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rappor.experiments.best_test import discovery_level, power
from rappor.experiments.detected_strings import decode_strings, places
from rappor.params import Params
from rappor.privacy.limits import standard_error
from rappor.simulate import Population, exponential, simulate, zipf
from rappor.typing import FloatArray

PARAMS = Params.preset("chrome")
REPORTS, CANDIDATES, ALPHA = 14_000_000, 8616, 0.05  # §5.4
PRESENT = 4000
POWERS = (1.0, 1.2, 1.4, 1.6, 1.8)
ZIPF, HEAD = "Zipf 1.4", "head and tail"
TOP, TOP_MASS, TOP_DECAY, TAIL_POWER = 37, 0.85, 0.94, 0.6


def zipf_shares(power_of: float) -> FloatArray:
    """4,000 homepages, the i-th in proportion to i^-power."""
    return np.array(zipf(PRESENT, power=power_of).shares)


def head_shares() -> FloatArray:
    """37 homepages that fall exponentially and hold 85 %, and a flat tail ∝ i^-.6 of the rest."""
    head = np.array(exponential(TOP, decay=TOP_DECAY).shares)
    tail = np.array(zipf(PRESENT - TOP, power=TAIL_POWER).shares)
    return np.concatenate([TOP_MASS * head, (1 - TOP_MASS) * tail])


def populations() -> dict[str, FloatArray]:
    """The shares of each population by its name."""
    found = {f"Zipf {power_of:.1f}": zipf_shares(power_of) for power_of in POWERS}
    return found | {HEAD: head_shares()}


@dataclass(frozen=True, slots=True)
class ChromeRun:
    """What one collection reveals of one population, in the order of its frequencies.

    Attributes:
        detected: which of the 8,616 candidates, at a false discovery rate of 5 %.
        mass: share of reports that really hold a detected string.
        estimated: the decoder's estimate of that share.
        top: the largest estimates among the detected: rank, share, low, high, true share.
    """

    detected: NDArray[np.bool_]
    mass: float
    estimated: float
    top: tuple[tuple[int, float, float, float, float], ...]

    @property
    def number(self) -> int:
        """Candidates detected."""
        return int(self.detected.sum())


def one_seed(seed: int) -> dict[str, ChromeRun]:
    """14 million reports of each population, decoded."""
    return {name: _found(name, shares, seed) for name, shares in populations().items()}


def _found(name: str, shares: FloatArray, seed: int) -> ChromeRun:
    names = tuple(f"homepage-{number}.{seed}.example" for number in range(1, CANDIDATES + 1))
    people = Population(name, names[:PRESENT], tuple(shares.tolist()), names)
    drawn = simulate(people, PARAMS, REPORTS, seed=[54, seed])
    decoded = decode_strings(drawn.counts, names)
    hits = decoded.rows.detected[places(decoded, names)]
    rank = {name: number for number, name in enumerate(names, 1)}
    truth = {row.string: drawn.truth[row.string] / REPORTS for row in decoded.detected}
    return ChromeRun(
        detected=hits,
        mass=sum(truth.values()),
        estimated=1 - decoded.undetected_mass.proportion,
        top=tuple(
            (
                rank[row.string],
                row.proportion,
                row.prop_low_95,
                row.prop_high_95,
                truth[row.string],
            )
            for row in decoded.detected
        ),
    )


def best_possible(shares: FloatArray) -> FloatArray:
    """Chance that the best test finds each homepage at a false discovery rate of 5 %.

    >>> chances = best_possible(zipf_shares(1.4))
    >>> round(float(chances @ zipf_shares(1.4)), 2)  # the share of mass that is found
    0.78
    """
    error = standard_error(PARAMS, REPORTS)
    level = discovery_level(REPORTS * shares, error, CANDIDATES, ALPHA)
    return power(REPORTS * shares, error, level)
