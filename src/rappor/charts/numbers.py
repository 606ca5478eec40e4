"""Numbers as people read them: one formatter for charts, pages and the command line."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import NamedTuple

from rappor.privacy.rounding import up

MINUS, DASH, NO_BREAK = "\u2212", "\u2013", "\u00a0"
MISSING = DASH


class ShownNumber(NamedTuple):
    """An estimate and its interval, rounded to the same digit."""

    value: str
    interval: str

    def __str__(self) -> str:
        return f"{self.value} ({self.interval})"


def show_count(value: float, low: float, high: float) -> ShownNumber:
    """A count of reports: all rounded to the second significant digit of the interval's half-width.

    >>> str(show_count(41_012.3, 35_448, 46_541))
    '41,000 (35,400 – 46,500)'
    """
    place = _place(value, low, high)
    return ShownNumber(
        _rounded(value, place), f"{_rounded(low, place)} {DASH} {_rounded(high, place)}"
    )


def show_share(value: float, low: float, high: float) -> ShownNumber:
    r"""A share as a percentage, rounded like `show_count`.

    >>> str(show_share(0.04101, 0.03544, 0.04654))
    '4.10\xa0% (3.54 – 4.65)'
    """
    shown = show_count(100 * value, 100 * low, 100 * high)
    return ShownNumber(f"{shown.value}{NO_BREAK}%", shown.interval)


def show_difference(value: float, low: float, high: float) -> ShownNumber:
    """A difference of two shares in percentage points, with its sign.

    >>> str(show_difference(0.0165, 0.0088, 0.0243)), show_difference(-0.02, -0.03, -0.01).value
    ('+1.65 points (0.88 – 2.43)', '−2.0 points')
    """
    shown = show_count(100 * value, 100 * low, 100 * high)
    sign = "+" if value > 0 and shown.value[0] not in f"{MINUS}{MISSING}" else ""
    return ShownNumber(f"{sign}{shown.value} points", shown.interval)


def show_percent(share: float) -> str:
    r"""A share without an interval, such as a threshold or a level: three significant digits.

    >>> show_percent(0.05), show_percent(0.00694)
    ('5\xa0%', '0.694\xa0%')
    """
    return f"{100 * share:.3g}{NO_BREAK}%".replace("-", MINUS)


def show_p(p: float) -> str:
    """A p-value: two significant digits, powers of ten below .001, never 0.

    >>> show_p(0.0421), show_p(5.3e-48), show_p(0.0)
    ('0.042', '5·10⁻⁴⁸', '< 10⁻³⁰⁰')
    """
    if not p >= 0:
        return MISSING
    if p < 1e-300:
        return f"< 10{_superscript(-300)}"
    if p >= 0.000995:
        return f"{p:.2g}"
    digit, power = f"{p:.0e}".split("e")
    return f"{digit}·10{_superscript(int(power))}"


def show_epsilon(epsilon: float, places: int = 3) -> str:
    """ε: rounded up, never down.

    >>> show_epsilon(1.0743), show_epsilon(math.inf)
    ('1.075', '∞ (no limit)')
    """
    return "∞ (no limit)" if epsilon == math.inf else up(epsilon, places)


def show_odds(epsilon: float) -> str:
    """The factor e^ε by which odds can move: three digits, rounded up.

    >>> show_odds(1.0743), show_odds(4.3944491546724391), show_odds(math.inf)
    ('2.93', '81.1', '∞ (no limit)')
    """
    if epsilon == math.inf:
        return "∞ (no limit)"
    context = Context(prec=3, rounding=ROUND_CEILING)
    exact = Decimal(epsilon).exp(Context(prec=50))
    return f"{exact.normalize(context):f}"


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _place(value: float, low: float, high: float) -> int:
    """The power of ten to round to."""
    half = (high - low) / 2
    if not (math.isfinite(half) and half > 0):
        half = abs(value) / 10  # without an interval: three significant digits
    if not (math.isfinite(half) and half > 0):
        return 0
    return math.floor(math.log10(half)) - 1


def _rounded(value: float, place: int) -> str:
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    number = round(value, -place) + 0.0
    text = f"{number:,.{max(0, -place)}f}"
    if not any(digit in text for digit in "123456789"):
        text = text.lstrip("-")
    return text.replace("-", MINUS)
