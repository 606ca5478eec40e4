"""Populations: which strings clients hold, how often, and which of them an analyst looks for.

The shapes of the paper's experiments (§5: uniform, normal, exponential, and Zipf for the stand-ins)
and those of google/rappor's regression tests. A candidate list is not the population: nobody holds
some of the candidates (absent), and some strings are not on the list (unlisted).
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rappor.checks import is_real, positive, show, text, whole
from rappor.errors import ParamsError
from rappor.mechanism.views import Field

MAX_STRINGS = 10**7  # strings of one population, absent ones included


@dataclass(frozen=True, slots=True)
class Population:
    """Strings with their shares, and the candidate list of an analyst.

    Attributes:
        name: of the population.
        strings: what clients hold, most frequent first in the shapes of this module.
        shares: the share of each string; any unit is accepted, and divided by the sum.
        candidates: what an analyst looks for: without the unlisted strings, with absent ones.
            By default the strings themselves.

    >>> Population("two", ("a.org", "b.org"), (3, 1), ("a.org", "c.org")).unlisted
    ('b.org',)
    """

    name: str
    strings: tuple[str, ...] = field(repr=False)
    shares: tuple[float, ...] = field(repr=False)
    candidates: tuple[str, ...] = field(repr=False, default=())

    def __post_init__(self) -> None:
        """Check and divide by the sum, or raise ParamsError."""
        assign = object.__setattr__
        assign(self, "name", text("name", self.name))
        assign(self, "strings", _distinct("strings", self.strings))
        assign(self, "shares", _shares(self.shares, len(self.strings)))
        listed = self.candidates or self.strings
        assign(self, "candidates", _distinct("candidates", listed))

    @property
    def absent(self) -> tuple[str, ...]:
        """Candidates that nobody holds."""
        held = {name for name, share in zip(self.strings, self.shares, strict=True) if share > 0}
        return tuple(name for name in self.candidates if name not in held)

    @property
    def unlisted(self) -> tuple[str, ...]:
        """Strings that clients hold, but that are not on the candidate list."""
        listed = set(self.candidates)
        return tuple(name for name in self.strings if name not in listed)

    def leaving_out(self, strings: Iterable[str]) -> Population:
        """The same population with these strings taken off the candidate list.

        >>> uniform(3).leaving_out(["v2"]).candidates
        ('v1', 'v3')
        """
        out = set(strings)
        unknown = out - set(self.candidates)
        if unknown:
            raise ParamsError(f"not on the candidate list: {show(min(unknown))}")
        left = tuple(name for name in self.candidates if name not in out)
        if not left:
            raise ParamsError("a candidate list needs at least one string")
        return replace(self, candidates=left)


def tuples(fields: Sequence[Field], joint: Mapping[tuple[Any, ...], float]) -> dict[str, float]:
    """A joint table as a population of kind tuple, whose values are JSON objects.

    Args:
        fields: the fields of the collection.
        joint: how frequent each combination is, in any unit; a key has the values in the order of
            the fields.

    >>> from rappor.mechanism import Field
    >>> tuples([Field("page", "string"), Field("beta", "boolean")], {("a.org", True): 3})
    {'{"page": "a.org", "beta": true}': 3}
    """
    names = [field.name for field in fields]
    population = {}
    for values, frequency in joint.items():
        if not isinstance(values, tuple) or len(values) != len(names):
            raise ParamsError(f"a key of the table must be a tuple of {len(names)} values")
        named = dict(zip(names, values, strict=True))
        population[json.dumps(named, ensure_ascii=False)] = frequency
    return population


def uniform(
    strings: int = 100, *, absent: int = 0, unlisted: int = 0, prefix: str = "v"
) -> Population:
    """All strings have the same share.

    >>> uniform(4).shares
    (0.25, 0.25, 0.25, 0.25)
    """
    number = whole("strings", strings, 1, MAX_STRINGS)
    return _made("uniform", [1.0] * number, absent, unlisted, prefix)


def normal(
    strings: int = 100,
    *,
    mean: float = 50.0,
    sd: float = 10.0,
    absent: int = 0,
    unlisted: int = 0,
    prefix: str = "v",
) -> Population:
    """A normal variable rounded to a whole number from 1 to `strings` (§5.1, Figure 4).

    String i has Φ((i + 1/2 - mean)/sd) - Φ((i - 1/2 - mean)/sd), divided by the probability of the
    range.

    >>> round(normal().shares[49], 5)  # v50: the chance of a number that rounds to 50
    0.03988
    """
    number = whole("strings", strings, 1, MAX_STRINGS)
    centre, spread = _number("mean", mean), positive("sd", sd) * math.sqrt(2)
    shares = []
    for i in range(1, number + 1):
        low, high = (i - 0.5 - centre) / spread, (i + 0.5 - centre) / spread
        if low > 0:  # erfc keeps its digits in the far tail
            low, high = -high, -low
        shares.append((math.erfc(-high) - math.erfc(-low)) / 2)
    if not sum(shares) > 0:
        raise ParamsError(
            f"mean must be near the range 1 to {number} of the strings, got {show(mean)}"
        )
    return _made("normal", shares, absent, unlisted, prefix)


def exponential(
    strings: int = 100,
    *,
    decay: float = 0.9505,
    absent: int = 0,
    unlisted: int = 0,
    prefix: str = "v",
) -> Population:
    """String i in proportion to decay^i: as in the truth column of Table 1 (§5.2).

    >>> round(exponential().shares[0], 5)
    0.04981
    """
    number = whole("strings", strings, 1, MAX_STRINGS)
    ratio = positive("decay", decay)
    if ratio > 1:
        raise ParamsError(f"decay must be a number above 0 and at most 1, got {show(decay)}")
    return _made("exponential", [ratio**i for i in range(number)], absent, unlisted, prefix)


def zipf(
    strings: int = 100,
    *,
    power: float = 1.0,
    shift: float = 0.0,
    absent: int = 0,
    unlisted: int = 0,
    prefix: str = "v",
) -> Population:
    """String i in proportion to (i + shift)^-power: the stand-ins for private data (§5.3, §5.4).

    >>> [round(share, 4) for share in zipf(3).shares]
    [0.5455, 0.2727, 0.1818]
    """
    number = whole("strings", strings, 1, MAX_STRINGS)
    steep, moved = positive("power", power), _number("shift", shift)
    if not moved > -1:
        raise ParamsError(f"shift must be a number above -1, got {show(shift)}")
    shares = [((i + moved) / (1 + moved)) ** -steep for i in range(1, number + 1)]
    return _made("zipf", shares, absent, unlisted, prefix)


def google_shape(
    shape: str, strings: int = 100, *, absent: int = 0, unlisted: int = 0, prefix: str = "v"
) -> Population:
    """One of the five shapes of google/rappor's regression tests (its tests/gen_counts.R).

    unif; exp: e^(-5i/n); gauss: the normal density at i - n/2 with standard deviation n/6; zipf1:
    1/i; zipf1.5: i^-1.5; each for i from 1 to n.

    >>> round(google_shape("exp").shares[0], 5)
    0.0491
    """
    number = whole("strings", strings, 1, MAX_STRINGS)
    ranks = range(1, number + 1)
    match shape:
        case "unif":
            shares = uniform(number).shares
        case "exp":
            shares = exponential(number, decay=math.exp(-5 / number)).shares
        case "gauss":
            density = [math.exp(-(((i - number / 2) * 6 / number) ** 2) / 2) for i in ranks]
            shares = tuple(density)
        case "zipf1":
            shares = zipf(number).shares
        case "zipf1.5":
            shares = zipf(number, power=1.5).shares
        case _:
            raise ParamsError(f"shape must be one of {', '.join(GOOGLE_SHAPES)}; got {show(shape)}")
    return _made(shape, shares, absent, unlisted, prefix)


GOOGLE_SHAPES = ("unif", "exp", "gauss", "zipf1", "zipf1.5")


def _made(
    name: str, shares: Sequence[float], absent: int, unlisted: int, prefix: str
) -> Population:
    """Numbered strings with these shares; absent candidates continue the numbers."""
    if not isinstance(prefix, str):
        raise ParamsError(f"prefix must be a string, got {show(prefix)}")
    number = len(shares)
    more = whole("absent", absent, 0, MAX_STRINGS - number)
    strings = [f"{prefix}{i}" for i in range(1, number + 1)]
    nobody = [f"{prefix}{i}" for i in range(number + 1, number + more + 1)]
    return with_list(name, strings, shares, nobody, unlisted)


def with_list(
    name: str, strings: Sequence[str], shares: Sequence[float], absent: Sequence[str], unlisted: int
) -> Population:
    """A population whose list lacks `unlisted` strings, spread evenly over the ranks.

    >>> with_list("x", ["a", "b", "c", "d"], [4, 3, 2, 1], ["e"], 2).candidates
    ('a', 'c', 'e')
    """
    number = len(strings)
    out = whole("unlisted", unlisted, 0, number)
    if out == number and not absent:
        raise ParamsError(f"unlisted must leave a candidate, got {out} of {number} strings")
    left_out = {(2 * j + 1) * number // (2 * out) for j in range(out)}
    listed = [string for rank, string in enumerate(strings) if rank not in left_out]
    return Population(name, tuple(strings), tuple(shares), (*listed, *absent))


def _distinct(name: str, given: Iterable[str]) -> tuple[str, ...]:
    try:
        strings = () if isinstance(given, (str, bytes)) else tuple(given)
    except TypeError:
        strings = ()
    if not strings or not all(isinstance(string, str) for string in strings):
        raise ParamsError(f"{name} must be one or more strings, got {show(given)}")
    if len(set(strings)) != len(strings):
        raise ParamsError(f"{name} must be different strings; one is there twice")
    return strings


def _shares(given: Iterable[float], number: int) -> tuple[float, ...]:
    try:
        shares = [float(share) for share in given]
        total = math.fsum(shares)
    except (TypeError, ValueError, OverflowError):
        raise ParamsError(f"shares must be numbers from 0 on, got {show(given)}") from None
    if len(shares) != number:
        raise ParamsError(f"{number} strings need {number} shares, got {len(shares)}")
    if not all(0 <= share < math.inf for share in shares) or not 0 < total < math.inf:
        raise ParamsError("shares must be numbers from 0 on, and not all 0")
    return tuple(share / total for share in shares)


def _number(name: str, value: float) -> float:
    if is_real(value) and math.isfinite(value):
        return float(value)
    raise ParamsError(f"{name} must be a finite number, got {show(value)}")
