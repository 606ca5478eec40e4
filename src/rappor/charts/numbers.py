"""Numbers as people read them: one formatter for charts, pages and the command line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, Context, Decimal
from typing import NamedTuple

from rappor.privacy.rounding import up, up_sum

MINUS, DASH, NO_BREAK = "\u2212", "\u2013", "\u00a0"
MISSING = DASH
PRESENT = "present"
_AT_MOST, _AT_LEAST = "at most ", "at least "
_ABOVE_0, _BELOW_0 = "> 0", "< 0"
_BETWEEN = f" {DASH} "


class ShownNumber(NamedTuple):
    """An estimate and its interval, rounded to the same digit; or a limit alone."""

    value: str
    interval: str

    @property
    def is_limit(self) -> bool:
        """Whether a limit is all there is."""
        return _AT_MOST in self.interval or _AT_LEAST in self.interval

    def __str__(self) -> str:
        if not self.is_limit:
            return f"{self.value} ({self.interval})"
        return self.interval if self.value == MISSING else f"{self.value}, {self.interval}"


def show_count(value: float, low: float, high: float) -> ShownNumber:
    """A count of reports: all rounded to the second significant digit of the interval's half-width.

    >>> str(show_count(41_012.3, 35_448, 46_541))
    '41,000 (35,400 – 46,500)'
    """
    place = _place(value, low, high)
    return ShownNumber(
        _rounded(value, place), f"{_rounded(low, place)}{_BETWEEN}{_rounded(high, place)}"
    )


def show_share(value: float, low: float, high: float) -> ShownNumber:
    r"""A share as a percentage, rounded like `show_count`.

    >>> str(show_share(0.04101, 0.03544, 0.04654))
    '4.10\xa0% (3.54 – 4.65)'
    """
    shown = show_count(100 * value, 100 * low, 100 * high)
    return ShownNumber(f"{shown.value}{NO_BREAK}%", shown.interval)


def show_part(
    value: float, low: float, high: float, unit: str = "share", total: float = 1.0
) -> ShownNumber:
    r"""A part of all reports: with its interval, or with a limit if that reaches none or all.

    Args:
        value: the estimate, a share or a count.
        low: the lower end of its interval.
        high: the upper end.
        unit: "share" or "count".
        total: all reports, in the same unit.

    >>> [str(show_part(*ends)) for ends in ((0.2, 0.1, 0.3), (0.0, 0.0, 0.044), (1.0, 0.956, 1.0))]
    ['20\xa0% (10 – 30)', 'at most 4.4\xa0%', 'at least 95.6\xa0%']
    >>> str(show_part(50_000, 41_234, 52_000, "count", 52_000))
    'at least 41,000'
    """
    scale, sign = (100.0, f"{NO_BREAK}%") if unit == "share" else (1.0, "")
    if low < high and low <= 0:
        return ShownNumber(MISSING, f"{_AT_MOST}{_at_most(scale * high, scale * total)}{sign}")
    if low < high and high >= total:
        return ShownNumber(MISSING, f"{_AT_LEAST}{_at_least(scale * low, scale * total)}{sign}")
    shown = show_share(value, low, high) if unit == "share" else show_count(value, low, high)
    return _above_0(shown, low)


def show_rest(value: float, low: float, high: float) -> ShownNumber:
    r"""What the share of `show_part` leaves of 100 %, so that both as shown add up to 100.

    >>> str(show_part(0.2585, 0.169, 0.348)), str(show_rest(0.2585, 0.169, 0.348))
    ('25.9\xa0% (16.9 – 34.8)', '74.1\xa0% (65.2 – 83.1)')
    >>> str(show_rest(0.0, 0.0, 0.044)), str(show_rest(1.0, 0.956, 1.0))
    ('at least 95.6\xa0%', 'at most 4.4\xa0%')
    """
    if low < high and (low <= 0 or high >= 1):
        return show_part(1 - value, 1 - high, 1 - low)
    place = _place(100 * value, 100 * low, 100 * high)
    rest, top, bottom = (
        _rounded(100 - round(100 * number, -place), place) for number in (value, low, high)
    )
    return _above_0(ShownNumber(f"{rest}{NO_BREAK}%", f"{bottom}{_BETWEEN}{top}"), 1 - high)


def show_finding(
    value: float,
    low: float,
    high: float,
    detected: bool,
    unit: str = "share",
    total: float | None = None,
) -> ShownNumber:
    r"""A row with its verdict: an interval if it was detected, an upper limit if it was not.

    Where the interval of a detected row begins at 0, its presence is all that is known. A lower end
    is never shown as 0: what was detected is there.

    Args:
        value: the estimate, a share or a count.
        low: the lower end of its interval.
        high: the upper end.
        detected: whether it passed its test.
        unit: "share" or "count".
        total: all reports, which no limit of a count is rounded up beyond.

    >>> [str(show_finding(0.037, low, 0.055, True)) for low in (0.01, 1e-5, 0.0)]
    ['3.7\xa0% (1.0 – 5.5)', '3.7\xa0% (> 0 – 5.5)', 'present, at most 5.5\xa0%']
    >>> show_finding(0.025, 0.0, 0.044, False)
    ShownNumber(value='–', interval='at most 4.4\xa0%')
    """
    if detected and low > 0:
        shown = show_share(value, low, high) if unit == "share" else show_count(value, low, high)
        return _above_0(shown, low)
    limit = f"{_at_most(100 * high, 100)}{NO_BREAK}%" if unit == "share" else _at_most(high, total)
    return ShownNumber(PRESENT if detected else MISSING, f"{_AT_MOST}{limit}")


def _above_0(shown: ShownNumber, low: float) -> ShownNumber:
    """The same number, whose lower end is not shown as 0 if it is above."""
    first, last = shown.interval.split(_BETWEEN)
    if low > 0 and not _has_digits(first):
        return shown._replace(interval=f"{_ABOVE_0}{_BETWEEN}{last}")
    return shown


def _at_most(limit: float, total: float | None = None) -> str:
    """An upper limit: two significant digits, rounded up, but never beyond all there is."""
    if not (math.isfinite(limit) and limit > 0):
        return _rounded(limit, 0)
    place = _second_digit(limit)
    shown = math.ceil(round(limit / 10.0**place, 6)) * 10.0**place
    if total is not None and limit <= total < shown:
        return _rounded(total, 0)
    return _rounded(shown, place)


def _at_least(limit: float, total: float) -> str:
    """A lower limit: rounded down to the second digit of what it leaves of the total."""
    if not (math.isfinite(limit) and total > limit):
        return _rounded(limit, 0)
    place = _second_digit(total - limit)
    return _rounded(math.floor(round(limit / 10.0**place, 6)) * 10.0**place, place)


def _second_digit(number: float) -> int:
    """The power of ten of the second significant digit."""
    return math.floor(math.log10(number)) - 1


def show_difference(value: float, low: float, high: float, different: bool = False) -> ShownNumber:
    r"""A difference of two shares in percentage points, with its sign.

    Where a difference is certain but its interval begins at 0, only its side is known. An end of
    an interval on one side of 0 is never shown as 0.

    >>> str(show_difference(0.0165, 0.0088, 0.0243)), show_difference(-0.02, -0.03, -0.01).value
    ('+1.65 points (0.88 – 2.43)', '−2.0 points')
    >>> str(show_difference(-0.05, -0.081, 0.0, different=True))
    'lower, by at most 8.1 points'
    >>> str(show_difference(0.05, 1e-5, 0.0811, different=True))
    '+5.0 points (> 0 – 8.1)'
    """
    if different and not (low > 0 or high < 0):
        side, size = ("higher", high) if value > 0 else ("lower", -low)
        return ShownNumber(side, f"by {_AT_MOST}{_at_most(100 * size, 100)} points")
    shown = show_count(100 * value, 100 * low, 100 * high)
    sign = "+" if value > 0 and shown.value[0] not in f"{MINUS}{MISSING}" else ""
    shown = _below_0(_above_0(shown, low), high) if different else shown
    return ShownNumber(f"{sign}{shown.value} points", shown.interval)


def _below_0(shown: ShownNumber, high: float) -> ShownNumber:
    """The same number, whose upper end is not shown as 0 if it is below."""
    first, last = shown.interval.split(_BETWEEN)
    if high < 0 and not _has_digits(last):
        return shown._replace(interval=f"{first}{_BETWEEN}{_BELOW_0}")
    return shown


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


def show_epsilon(epsilon: float) -> str:
    """ε as `rappor.privacy.rounding` has it, with ∞ in words.

    >>> show_epsilon(1.0743), show_epsilon(math.inf)
    ('1.075', '∞ (no limit)')
    """
    return "∞ (no limit)" if epsilon == math.inf else up(epsilon)


def show_epsilon_sum(epsilons: Iterable[float]) -> str:
    """The sum of ε as they are shown, each rounded up: no less than the sum, and it adds up.

    >>> show_epsilon_sum([4.3944, 2.1972, 2.1972])
    '8.791'
    """
    shown = list(epsilons)
    return show_epsilon(math.inf) if math.inf in shown else up_sum(shown)


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
    if not _has_digits(text):
        text = text.lstrip("-")
    return text.replace("-", MINUS)


def _has_digits(text: str) -> bool:
    """Whether a rounded number is not 0."""
    return any(digit in text for digit in "123456789")
