"""ε of any history of reports on one unchanged value: ε1, ε_n and ε∞ for every kind (§3).

One formula serves all (docs/theory/epsilon-n.md). For a history of reports with probabilities
(p_t, q_t), let t1 = Π p_t/q_t, t0 = Π (1-q_t)/(1-p_t), a = f/2 and

    g(t) = ln[((1-a) + a t) / (a + (1-a) t)].

Then ε = max over the kind's (u, d) of u g(t1) + d g(t0). A single report gives Theorem 2 for
strings, t = 0 gives Theorem 1, f = 0 gives plain composition (ε∞ = ∞).

Neighbours: one client holds one of two values, and reports it in the same periods either way. All
results are rounded up to the next float: a result is never below the true value.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import AbstractContextManager
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

from rappor.checks import exact, is_real, show, whole
from rappor.errors import ParamsError
from rappor.mechanism.kinds import BitChange, extreme_changes
from rappor.mechanism.prr import flip_probability
from rappor.params import Params, check_params
from rappor.typing import Kind

MAX_REPORTS = 10**100
_DIGITS = 80  # of precision, plus the number of digits of the number of reports
_SLACK = Decimal("1e-60")  # larger than every rounding error, far smaller than a float's


class Step(NamedTuple):
    """Reports of one value with the same p and q."""

    p: float
    q: float
    reports: int = 1


def epsilon_one(params: Params, kind: Kind = "string") -> float:
    """ε of a single report: Theorem 2 for strings, h ln(q*(1-p*) / (p*(1-q*))).

    >>> round(epsilon_one(Params.preset("windows")), 5)
    1.07429
    """
    return epsilon_n(params, 1, kind)


def epsilon_n(params: Params, n: int | float, kind: Kind = "string") -> float:
    """ε of n reports on one unchanged value, exact for every n (math.inf gives ε∞).

    >>> [round(epsilon_n(Params.preset("windows"), n), 3) for n in (1, 2, 5, 10)]
    [1.074, 2.017, 3.656, 4.299]
    """
    check_params(params)
    if isinstance(n, float) and n == math.inf:
        with _arithmetic(0):
            gain = _gain(flip_probability(params), Decimal("-Infinity"))  # t1 = t0 = 0
            return _worst(extreme_changes(kind, params), gain, gain)
    return epsilon_history(params, [Step(params.p, params.q, whole("n", n, 0, MAX_REPORTS))], kind)


def epsilon_infinity(params: Params, kind: Kind = "string") -> float:
    """ε of any number of reports: Theorem 1 for strings, 2h ln((1-f/2) / (f/2)); ∞ at f = 0.

    >>> round(epsilon_infinity(Params.preset("chrome")), 5)
    2.0433
    """
    return epsilon_n(params, math.inf, kind)


def epsilon_history(params: Params, steps: Iterable[Step], kind: Kind = "string") -> float:
    """ε of one unchanged value, reported with p and q that changed over time.

    Args:
        params: gives f, k and h; its p and q are not used.
        steps: the reports made, in any order.
        kind: the kind of collection.
    """
    changes = extreme_changes(kind, params)
    made = [checked for checked in map(check_step, steps) if checked[2]]
    with _arithmetic(sum(reports for _, _, reports in made)):
        ones = sum((reports * _ln_ratio(p, q) for p, q, reports in made), Decimal(0))
        zeros = sum((reports * _ln_ratio(1 - q, 1 - p) for p, q, reports in made), Decimal(0))
        a = flip_probability(params)
        return _worst(changes, _gain(a, ones), _gain(a, zeros))


def _arithmetic(reports: int) -> AbstractContextManager[Context]:
    """Decimal arithmetic for this many reports; t of a long history may underflow to 0."""
    digits = _DIGITS + reports.bit_length()
    return localcontext(Context(prec=digits, Emin=-(10**17), Emax=10**17))


def _ln_ratio(small: Fraction, large: Fraction) -> Decimal:
    """ln(small / large): 0 if they are equal, -∞ if small = 0."""
    if small == large:
        return Decimal(0)
    return (_decimal(small) / _decimal(large)).ln() if small else Decimal("-Infinity")


def _gain(a: Fraction, ln_t: Decimal) -> Decimal:
    """g(t) of the module's docstring, from ln t."""
    if not a:
        return -ln_t
    t = ln_t.exp()
    kept, flipped = _decimal(1 - a), _decimal(a)
    return ((kept + flipped * t) / (flipped + kept * t)).ln()


def _worst(changes: Iterable[BitChange], ones: Decimal, zeros: Decimal) -> float:
    worst = max(
        (up * ones if up else Decimal(0)) + (down * zeros if down else Decimal(0))
        for up, down in changes
    )
    return round_up(worst + worst * _SLACK + _SLACK) if worst else 0.0


def _decimal(number: Fraction) -> Decimal:
    return Decimal(number.numerator) / Decimal(number.denominator)


def round_up(number: Decimal | Fraction) -> float:
    """The smallest float that is not below the number."""
    try:
        nearest = float(number)
    except OverflowError:
        return math.inf
    return nearest if nearest >= number else math.nextafter(nearest, math.inf)


def add_up(losses: Iterable[tuple[float, int]]) -> float:
    """The sum of (ε, times) pairs, never below the true sum."""
    counted = [(loss, times) for loss, times in losses if times]
    if any(loss == math.inf for loss, _ in counted):
        return math.inf
    return round_up(sum((Fraction(loss) * times for loss, times in counted), Fraction(0)))


def check_step(step: Step) -> tuple[Fraction, Fraction, int]:
    """A step's exact p, q and number of reports, or ParamsError."""
    try:
        p, q, reports = step
    except (TypeError, ValueError):
        raise ParamsError(f"a step is (p, q, reports), got {show(step)}") from None
    if not (is_real(p) and is_real(q) and 0 <= p <= q <= 1):
        raise ParamsError(f"a step must satisfy 0 <= p <= q <= 1, got p = {show(p)}, q = {show(q)}")
    if float(p) != p or float(q) != q:  # the precision separates floats, not all rationals
        raise ParamsError(f"p and q must be floats, got p = {show(p)}, q = {show(q)}")
    return exact(p), exact(q), whole("reports", reports, 0, MAX_REPORTS)
