"""Colours of numbers: diverging ones for residuals, sequential ones for counts.

Residuals between -2 and 2 have one colour: noise is to be quiet, so that what stands out does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rappor.charts.theme import colours

RESIDUALS = (-6.0, -4.0, -2.0, 2.0, 4.0, 6.0)  # where d1 to d6 stand; beyond them no further
_STEPS = 5  # s1 to s5


class Colour(NamedTuple):
    """Red, green and blue, 0 to 255."""

    red: int
    green: int
    blue: int


def residual_colour(z: float, theme: str = "light") -> Colour:
    """The colour of a residual in standard deviations, clamped at 6.

    >>> residual_colour(1.9) == residual_colour(-1.9), residual_colour(60.0) == residual_colour(6.0)
    (True, True)
    >>> residual_colour(3.0)
    Colour(red=243, green=212, blue=192)
    """
    every = colours(theme)
    return _between(z, RESIDUALS, [every[f"d{number}"] for number in range(1, 7)])


def count_colour(share: float, theme: str = "light") -> Colour:
    """The colour of a count, 0 for the smallest of the picture and 1 for the largest.

    >>> count_colour(1.0)
    Colour(red=10, green=63, blue=119)
    """
    every = colours(theme)
    stops = [step / (_STEPS - 1) for step in range(_STEPS)]
    return _between(share, stops, [every[f"s{number}"] for number in range(1, _STEPS + 1)])


def rgb(code: str) -> Colour:
    """A colour from its code.

    >>> rgb("#A8400A")
    Colour(red=168, green=64, blue=10)
    """
    return Colour(*(int(code[place : place + 2], 16) for place in (1, 3, 5)))


def _between(value: float, stops: Sequence[float], codes: Sequence[str]) -> Colour:
    at = min(max(value, stops[0]), stops[-1])
    place = next(number for number in range(1, len(stops)) if at <= stops[number])
    low, high = stops[place - 1], stops[place]
    share = (at - low) / (high - low)
    pairs = zip(rgb(codes[place - 1]), rgb(codes[place]), strict=True)
    return Colour(*(round(one + share * (other - one)) for one, other in pairs))
