"""What a plan is asked for, and its checks (§4.1).

Two of ε, the number of reports N and the frequency to detect are given, and the third is solved
for; or all three are given, and must be possible together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace

from rappor.checks import between_0_and_1, is_real, show, whole
from rappor.errors import ParamsError
from rappor.planning.noise import Goal
from rappor.privacy import critical_value
from rappor.privacy.rounding import as_set
from rappor.simulate.populations import Population, exponential, uniform, zipf
from rappor.typing import Kind

# ε∞ / ε1 if only one of them is given: about the paper's 4.39 / 1.07.
RATIO = 4.0
CHECKED_COLLECTIONS = 20
MAX_REPORTS = 10**24
MIN_EPSILON, MAX_EPSILON = 1e-6, 20.0
MAX_EPSILON_INFINITY = 80.0
KINDS = ("string", "category", "boolean")
PLATFORMS = ("device", "web")
VALUES = ("fixed", "slow", "fast")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a plan is asked for: the arguments of `rappor.plan`.

    Attributes:
        epsilon_one: the largest ε of one report.
        epsilon_infinity: the largest ε of all reports on one value; 4 epsilon_one by default.
        reports: N.
        candidates: M, the strings that will be looked for.
        frequency: the share of reports whose string must be detected.
        power: the chance with which it must be detected.
        alpha: the family-wise error of the test, over all candidates.
        kind: "string", "category" (a bit for each candidate) or "boolean".
        one_time: every client reports only once: no permanent step, ε∞ = ∞.
        n: numbers of reports to state ε_n for.
        population: the strings that clients hold; the expected detections are counted among them.
            By default half of the candidates, with frequencies that fall exponentially as in the
            paper.
        max_bytes: the longest report that is acceptable.
        platform: "device", or "web" if clients may lose their storage.
        values: "fixed", "slow" or "fast": how clients' values change.
        shared: whether all clients may hold the same value.
        devices: clients of one person.
        collections: collections about the same thing.
        cells: periods times dimension cells that the reports are split into.
        check: simulated collections to check the best plan with; 0 for none.
        progress: called with a line of text now and then.
    """

    epsilon_one: float | None = None
    epsilon_infinity: float | None = None
    reports: int | None = None
    candidates: int = 100
    _: KW_ONLY
    frequency: float | None = None
    power: float = 0.8
    alpha: float = 0.05
    kind: Kind = "string"
    one_time: bool = False
    n: Iterable[int] = (7, 30, 365)
    population: Population | None = field(default=None, repr=False)
    max_bytes: int = 128
    platform: str = "device"
    values: str = "fixed"
    shared: bool = False
    devices: int = 1
    collections: int = 1
    cells: int = 1
    check: int = CHECKED_COLLECTIONS
    progress: Progress | None = field(default=None, repr=False, compare=False)

    def checked(self) -> PlanRequest:
        """The same request with its numbers checked and its open ε filled in.

        Raises:
            ParamsError: a field that no request can have.
        """
        for name, allowed in (("kind", KINDS), ("platform", PLATFORMS), ("values", VALUES)):
            if getattr(self, name) not in allowed:
                given = show(getattr(self, name))
                raise ParamsError(f"{name} must be one of {', '.join(allowed)}; got {given}")
        candidates = whole("candidates", self.candidates, 1, 10**9)
        alpha = between_0_and_1("alpha", self.alpha)
        critical_value(candidates, alpha)
        if self.kind == "boolean" and candidates != 1:
            raise ParamsError(f"kind boolean needs 1 candidate, got {candidates}")
        if self.kind == "category" and candidates > 4096:
            raise ParamsError(
                f"kind category has a bit for each of at most 4096 candidates, got "
                f"{candidates}: plan kind string"
            )
        once, ever, one_time = self._epsilons()
        return replace(
            self,
            epsilon_one=once,
            epsilon_infinity=ever,
            one_time=one_time,
            reports=None
            if self.reports is None
            else whole("reports", self.reports, 1, MAX_REPORTS),
            candidates=candidates,
            frequency=None
            if self.frequency is None
            else between_0_and_1("frequency", self.frequency),
            power=between_0_and_1("power", self.power),
            alpha=alpha,
            n=tuple(whole("n", number, 1, 10**9) for number in self.n),
            max_bytes=whole("max_bytes", self.max_bytes, 1, 512),
            devices=whole("devices", self.devices, 1, 10**6),
            collections=whole("collections", self.collections, 1, 10**6),
            cells=whole("cells", self.cells, 1, 10**6),
            check=whole("check", self.check, 0, 10**6),
        )

    def _epsilons(self) -> tuple[float | None, float | None, bool]:
        """ε1, ε∞ and whether every client reports only once; None for an ε to be solved for."""
        once = _epsilon("epsilon_one", self.epsilon_one, MAX_EPSILON)
        ever = self.epsilon_infinity
        if ever != math.inf:
            ever = _epsilon("epsilon_infinity", ever, MAX_EPSILON_INFINITY)
        if once is None and ever is not None and not self.one_time and self.frequency is None:
            # Nothing else is given: one report gets a quarter of the ε of all of them.
            once = min(ever / RATIO, MAX_EPSILON)
        if self.one_time and ever not in (None, math.inf):
            raise ParamsError(
                f"epsilon_infinity = {as_set(ever)} is about repeated reports, and a one-time "
                "collection has none: leave it out, or leave one_time out"
            )
        if self.one_time or ever == math.inf:
            return once, math.inf, True
        if once is not None and ever is None:
            ever = RATIO * once
        elif once is not None and ever is not None and once > ever:
            raise ParamsError(
                f"epsilon_one = {as_set(once)} above epsilon_infinity = {as_set(ever)} is "
                "impossible: one report never tells more than all of them. The nearest is "
                f"epsilon_one = {as_set(ever)}"
            )
        return once, ever, False

    @property
    def goal(self) -> Goal | None:
        """The privacy goal; None if it is to be solved for."""
        if self.epsilon_one is None or self.epsilon_infinity is None:
            return None
        return Goal(self.epsilon_one, self.epsilon_infinity)

    @property
    def shape(self) -> Population:
        """The population among which detections are counted, the paper's by default."""
        if self.population is not None:
            return self.population
        return usual_population("exponential", 1 if self.kind == "boolean" else self.candidates)


def usual_population(shape: str, candidates: int) -> Population:
    """A population in one of three shapes that holds half of the candidates.

    Exponential frequencies fall over all strings as those of the paper's 100 do. The population
    has at most 200,000 candidates: more would be too rare to matter.
    """
    listed = min(candidates, 200_000)
    strings = max(1, listed // 2)
    absent = listed - strings
    if shape == "uniform":
        return uniform(strings, absent=absent)
    if shape == "zipf":
        return zipf(strings, absent=absent)
    return exponential(strings, decay=0.9505 ** (100 / strings), absent=absent)


def _epsilon(name: str, given: float | None, most: float) -> float | None:
    """An ε to plan for, or ParamsError."""
    if given is None:
        return None
    if not is_real(given) or not given > 0 or math.isinf(given):
        raise ParamsError(f"{name} must be a number above 0, got {show(given)}")
    if not MIN_EPSILON <= given <= most:
        why = "promises nothing" if given > most else "needs more reports than there are"
        raise ParamsError(
            f"{name} = {given:g} {why}: plan from {MIN_EPSILON:g} to {most:g}; values in "
            "the literature go from .01 to 10"
        )
    return float(given)
