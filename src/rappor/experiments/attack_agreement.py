"""Whether an attack's simulated figures agree with the exact ones, over seeds (§6)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

from rappor.attack.result import AttackFigure
from rappor.experiments.experiment import Comparison, extra
from rappor.experiments.seeds import spread

_CLOSE = 4  # standard errors of the mean of seeds


class AttackPoint(NamedTuple):
    """One exact number, and the mean and spread of its simulations.

    `sigmas` is the distance of the mean from the exact number, in its standard errors.
    """

    exact: float
    mean: float
    sd: float
    sigmas: float


def attack_point(figures: Sequence[AttackFigure]) -> AttackPoint:
    """One point from the figures of one attack under several seeds.

    >>> point = attack_point([AttackFigure("", 0.5, 0.52, 0.02), AttackFigure("", 0.5, 0.51, 0.02)])
    >>> round(point.mean, 3), round(point.sigmas, 2)
    (0.515, 1.06)
    """
    exact = figures[0].exact
    drawn = [figure.simulated for figure in figures if figure.simulated is not None]
    errors = [figure.std_error for figure in figures if figure.std_error is not None]
    mean, sd, _ = spread(drawn)
    error = math.hypot(*errors) / len(errors)
    return AttackPoint(exact, mean, sd, (mean - exact) / error)


def agreement(points: Collection[AttackPoint], seeds: int, trials: int) -> Comparison:
    """Whether the simulation agrees with the exact curve at every point."""
    off = [point.sigmas for point in points]
    most = max(map(abs, off))
    typical = math.sqrt(sum(distance * distance for distance in off) / len(off))
    return Comparison(
        "the simulated attack, compared with the exact curves",
        "curves only",
        f"{len(off)} points within {most:.1f} standard errors, {typical:.2f} in the root mean "
        f"square ({seeds} seeds)",
        extra(most < _CLOSE),
        f"{trials:,} clients for each point and seed; a root mean square near 1 is what chance "
        "alone gives.",
    )
