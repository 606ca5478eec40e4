"""Numbers from outside, checked: the error names the field, what was given and what is allowed."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any

from rappor.errors import ParamsError


def show(value: object) -> str:
    """A value as it can stand in an error message: its repr, cut to a sane length."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number (numpy's too), and not a truth value."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_real(value: Any) -> bool:
    """Whether a value is a number (numpy's too), and not a truth value."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """A whole number from `low` to `high` (None: no upper limit), or ParamsError."""
    if is_whole(value) and low <= value and (high is None or value <= high):
        return int(value)
    limit = "on" if high is None else f"to {high}"
    raise ParamsError(f"{name} must be a whole number from {low} {limit}, got {show(value)}")


def positive(name: str, value: Any) -> float:
    """A finite number above 0, or ParamsError."""
    if is_real(value) and 0 < value < math.inf:
        return float(value)
    raise ParamsError(f"{name} must be a number above 0, got {show(value)}")


def between_0_and_1(name: str, value: Any) -> float:
    """A number above 0 and below 1, or ParamsError."""
    if is_real(value) and 0 < value < 1:
        return float(value)
    raise ParamsError(f"{name} must be a number above 0 and below 1, got {show(value)}")


def exact(value: Any) -> Fraction:
    """The exact rational that a finite number is."""
    if is_whole(value):
        return Fraction(int(value))
    return Fraction(value) if isinstance(value, (float, Fraction)) else Fraction(float(value))


def text(name: str, value: Any) -> str:
    """A non-empty string that UTF-8 can hold, or ParamsError."""
    if isinstance(value, str) and value:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise ParamsError(f"{name} must be Unicode text, got half a surrogate pair") from None
        return value
    raise ParamsError(f"{name} must be a non-empty string, got {show(value)}")
