"""What a plan is asked for, checked (R44).

Of ε, the number of reports N and the frequency to detect, two are given and the third is solved
for; or all three, and then they must be possible together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from rappor.checks import between_0_and_1, is_real, show, whole
from rappor.errors import ParamsError
from rappor.planning.noise import Goal
from rappor.privacy import critical_value
from rappor.simulate.populations import Population, exponential, uniform, zipf
from rappor.typing import Kind

# ε∞ where only ε1 is given: about the paper's 4.39 / 1.07.
RATIO = 4.0
MOST_REPORTS = 10**24
LEAST_EPSILON, MOST_EPSILON = 1e-6, 20.0
MOST_FOR_EVER = 80.0
KINDS = ("string", "category", "boolean")
PLATFORMS = ("device", "web")
VALUES = ("fixed", "slow", "fast")


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A checked request; see `rappor.plan` for each of them."""

    epsilon_one: float | None
    epsilon_infinity: float | None
    reports: int | None
    frequency: float | None
    candidates: int
    power: float = 0.8
    alpha: float = 0.05
    kind: Kind = "string"
    one_time: bool = False
    n: tuple[int, ...] = (7, 30, 365)
    population: Population | None = field(default=None, repr=False)
    most_bytes: int = 128
    platform: str = "device"
    values: str = "fixed"
    shared: bool = False
    devices: int = 1
    collections: int = 1
    cells: int = 1

    def __post_init__(self) -> None:
        """Refuse what is no request with ParamsError."""
        set_to = _setter(self)
        set_to("candidates", whole("candidates", self.candidates, 1, 10**9))
        set_to("power", between_0_and_1("power", self.power))
        set_to("alpha", between_0_and_1("alpha", self.alpha))
        critical_value(self.candidates, self.alpha)
        for name, allowed in (("kind", KINDS), ("platform", PLATFORMS), ("values", VALUES)):
            if getattr(self, name) not in allowed:
                given = show(getattr(self, name))
                raise ParamsError(f"{name} must be one of {', '.join(allowed)}; got {given}")
        if self.kind == "boolean" and self.candidates != 1:
            raise ParamsError(f"kind boolean has 1 candidate, got {self.candidates}")
        if self.kind == "category" and self.candidates > 4096:
            raise ParamsError(
                f"kind category has a bit for each of at most 4096 candidates, got "
                f"{self.candidates}: plan kind string"
            )
        set_to("most_bytes", whole("most_bytes", self.most_bytes, 1, 512))
        for name in ("devices", "collections", "cells"):
            set_to(name, whole(name, getattr(self, name), 1, 10**6))
        set_to("n", tuple(whole("n", each, 1, 10**9) for each in self.n))
        self._check_epsilon(set_to)
        self._check_reports(set_to)

    def _check_epsilon(self, set_to: Any) -> None:
        for name in ("epsilon_one", "epsilon_infinity"):
            given = getattr(self, name)
            if given is None or (name == "epsilon_infinity" and given == math.inf):
                continue
            if not is_real(given) or not given > 0 or math.isinf(given):
                raise ParamsError(f"{name} must be a number above 0, got {show(given)}")
            most = MOST_EPSILON if name == "epsilon_one" else MOST_FOR_EVER
            if not LEAST_EPSILON <= given <= most:
                why = "promises nothing" if given > most else "needs more reports than there are"
                raise ParamsError(
                    f"{name} = {given:g} {why}: plan from {LEAST_EPSILON:g} to {most:g}; values in "
                    "the literature go from .01 to 10"
                )
            set_to(name, float(given))
        once, ever = self.epsilon_one, self.epsilon_infinity
        if once is None and ever is not None and not self.one_time and self.frequency is None:
            # Nothing else is asked for: one report may tell a quarter of what all of them may.
            once = min(ever / RATIO, MOST_EPSILON)
            set_to("epsilon_one", once)
        if self.one_time and ever not in (None, math.inf):
            raise ParamsError(
                f"epsilon_infinity = {ever:g} is about repeated reports, and a one-time collection "
                "has none: leave it out, or leave one_time out"
            )
        if not self.one_time and ever == math.inf:
            set_to("one_time", True)
        if self.one_time:
            set_to("epsilon_infinity", math.inf)
        elif once is not None and ever is None:
            set_to("epsilon_infinity", RATIO * once)
        elif once is not None and ever is not None and once > ever:
            raise ParamsError(
                f"epsilon_one = {once:g} above epsilon_infinity = {ever:g} is impossible: one "
                f"report never tells more than all of them. The nearest is epsilon_one = {ever:g}"
            )

    def _check_reports(self, set_to: Any) -> None:
        if self.reports is not None:
            set_to("reports", whole("reports", self.reports, 1, MOST_REPORTS))
        if self.frequency is None:
            return
        set_to("frequency", between_0_and_1("frequency", self.frequency))

    @property
    def goal(self) -> Goal | None:
        """The privacy goal, where it was given."""
        if self.epsilon_one is None or self.epsilon_infinity is None:
            return None
        return Goal(self.epsilon_one, self.epsilon_infinity)

    @property
    def shape(self) -> Population:
        """The population that strings are expected to be found in: the paper's, by default."""
        if self.population is not None:
            return self.population
        return usual_population("exponential", 1 if self.kind == "boolean" else self.candidates)


def usual_population(shape: str, candidates: int) -> Population:
    """Half of the candidates are there, in one of three shapes; the others are not.

    Exponential frequencies fall over all strings as those of the paper's 100 do. Beyond 200,000
    candidates the population stays as it is: more are too rare to matter.
    """
    listed = min(candidates, 200_000)
    strings = max(1, listed // 2)
    absent = listed - strings
    if shape == "uniform":
        return uniform(strings, absent=absent)
    if shape == "zipf":
        return zipf(strings, absent=absent)
    return exponential(strings, decay=0.9505 ** (100 / strings), absent=absent)


def _setter(request: PlanRequest) -> Any:
    return lambda name, value: object.__setattr__(request, name, value)
