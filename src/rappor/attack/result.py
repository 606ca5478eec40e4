"""What an attack finds: exact figures, the same figures simulated, and a sentence (§6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from scipy.special import ndtri
from scipy.stats import binom

from rappor.params import Params


@dataclass(frozen=True, slots=True)
class AttackFigure:
    """One number that says how well an attack does.

    Attributes:
        label: what the number is.
        exact: by formula, enumeration or convolution.
        simulated: the same from simulated clients; None if it is not simulated.
        std_error: standard deviation of `simulated` around the truth; None if it is not simulated.
        exact_error: standard error of `exact`; 0 except for integrals over many dimensions.
        p_value: chance of a simulation at least this far off, if its law is known.

    >>> AttackFigure("accuracy", 0.5, 0.52, 0.01).sigmas
    2.0
    """

    label: str
    exact: float
    simulated: float | None = None
    std_error: float | None = None
    exact_error: float = 0.0
    p_value: float | None = None

    @property
    def sigmas(self) -> float:
        """How many standard errors the simulation lies from the exact figure; 0 if not simulated.

        If the law of the simulation is known, it is the number of standard errors that would be as
        rare under the normal law, because counts of rare events are far from normal. A figure
        without spread (a certainty) must be met to 9 digits: 0 or ∞.
        """
        if self.simulated is None or self.std_error is None:
            return 0.0
        if self.p_value is not None:
            return float(ndtri(1 - self.p_value / 2)) if self.p_value > 1e-15 else math.inf
        gap = abs(self.simulated - self.exact)
        if gap <= 1e-9 * max(1.0, abs(self.exact)):
            return 0.0
        spread = math.hypot(self.std_error, self.exact_error)
        return round(gap / spread, 12) if spread else math.inf


@dataclass(frozen=True, slots=True)
class Bound:
    """An ε that bounds an attack, and the bound on its first figure.

    Attributes:
        symbol: which ε, such as "ε1".
        epsilon: its value, rounded up.
        figure: the largest (or smallest) first figure under that ε; None if ε does not limit it.
        least: whether `figure` is the smallest value, not the largest.
    """

    symbol: str
    epsilon: float
    figure: float | None = None
    least: bool = False

    def holds(self, figure: float) -> bool:
        """Whether a figure respects the bound, up to the rounding of a float."""
        if self.figure is None:
            return True
        gap = figure - self.figure if self.least else self.figure - figure
        return gap >= -1e-9


@dataclass(frozen=True, slots=True)
class AttackResult:
    """What one attack found for one set of parameters.

    Attributes:
        name: the attack.
        title: what the attack is, in a few words.
        sees: what the attacker sees and knows.
        does: the rule by which the attacker decides.
        params: the parameters attacked.
        settings: the attack's own numbers, seed and number of trials included.
        figures: the exact and simulated figures; the first is the one the attack is known by.
        bound: the ε that limits the first figure, if one does.
        meaning: one sentence for a person.
        table: further exact figures, by label.
    """

    name: str
    title: str
    sees: str
    does: str
    params: Params
    settings: Mapping[str, int | float]
    figures: tuple[AttackFigure, ...]
    bound: Bound | None
    meaning: str
    table: Mapping[str, float] = field(default_factory=dict)

    @property
    def exact(self) -> float:
        """The exact value of the first figure."""
        return self.figures[0].exact

    @property
    def simulated(self) -> float | None:
        """The simulated value of the first figure."""
        return self.figures[0].simulated

    @property
    def std_error(self) -> float | None:
        """The standard error of the first figure's simulation."""
        return self.figures[0].std_error

    @property
    def sigmas(self) -> float:
        """The largest distance, in standard errors, between a simulated and an exact figure."""
        return max(figure.sigmas for figure in self.figures)

    def to_dict(self) -> dict[str, object]:
        """Plain data for JSON."""
        return {
            "name": self.name,
            "title": self.title,
            "sees": self.sees,
            "does": self.does,
            "params": self.params.to_dict(),
            "settings": dict(self.settings),
            "exact": self.exact,
            "simulated": self.simulated,
            "std_error": self.std_error,
            "sigmas": self.sigmas,
            "bound": self.bound
            and {
                "symbol": self.bound.symbol,
                "epsilon": self.bound.epsilon,
                "figure": self.bound.figure,
                "least": self.bound.least,
            },
            "figures": [
                {
                    "label": figure.label,
                    "exact": figure.exact,
                    "simulated": figure.simulated,
                    "std_error": figure.std_error,
                    "exact_error": figure.exact_error,
                }
                for figure in self.figures
            ],
            "table": dict(self.table),
            "meaning": self.meaning,
        }


def share_figure(label: str, exact: float, hits: int, trials: int) -> AttackFigure:
    """A probability, and the share of independent trials in which the event happened.

    The standard error is that of the exact figure, √(P(1-P)/T): it is right also if every
    trial, or none, succeeds.

    >>> share_figure("accuracy", 0.5, 6, 9).std_error
    0.16666666666666666
    """
    spread = math.sqrt(max(exact * (1 - exact), 0.0) / trials)
    chance = min(max(exact, 0.0), 1.0)
    tails = binom.cdf(hits, trials, chance), binom.sf(hits - 1, trials, chance)
    p_value = min(1.0, 2 * float(min(tails)))
    return AttackFigure(label, exact, hits / trials, spread, p_value=p_value)


def max_belief(epsilon: float, prior: float = 0.5) -> float:
    """The largest probability that ε allows a value to reach, from a prior x.

    Odds can change at most by e^ε, so x becomes at most x e^ε / (x e^ε + 1 - x). From even odds it
    is e^ε / (1 + e^ε), which also limits how often a guess between two values is right.

    >>> round(max_belief(1.0743), 4), round(max_belief(1.0743, 0.1), 4)
    (0.7454, 0.2455)
    """
    if not prior:
        return 0.0
    return prior / (prior + (1 - prior) * math.exp(-epsilon))


def percent(share: float) -> str:
    """A share in a sentence; only certainty is called 100 %.

    >>> percent(0.84375), percent(0.9996), percent(0.99999), percent(1.0)
    ('84.4 %', '99.96 %', 'more than 99.99 %', '100 %')
    """
    rounded = f"{100 * share:.1f}"
    if share < 1 and float(rounded) >= 100:
        if share >= 0.9999:
            return "more than 99.99 %"
        rounded = f"{math.floor(10_000 * share) / 100:.2f}"
    return rounded.removesuffix(".0") + " %"
