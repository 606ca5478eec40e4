"""Checks of numbers and texts: errors name the field, what was given and what is allowed.

Also the phrases that several messages share.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import numbers
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, ParamSpec, TypeVar

from rappor.errors import ParamsError

_Fields = ParamSpec("_Fields")
_Request = TypeVar("_Request")
_Result = TypeVar("_Result")


def show(value: object) -> str:
    """A value for an error message: its repr, cut to 60 characters."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= 60 else text[:57] + "..."


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number (of numpy too), and not a bool."""
    return type(value) is int or (
        isinstance(value, numbers.Integral) and not isinstance(value, bool)
    )


def is_real(value: Any) -> bool:
    """Whether a value is a number (of numpy too), and not a bool."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def whole(
    name: str, value: Any, low: int, high: int | None = None, *, private: bool = False
) -> int:
    """A whole number from `low` to `high` (None: no upper limit), or ParamsError.

    `private` keeps the argument out of the message: it could be a person's value.
    """
    try:
        number = operator.index(value) if is_whole(value) else None
    except (TypeError, ValueError):
        number = None
    if number is not None and low <= number and (high is None or number <= high):
        return number
    limit = "on" if high is None else f"to {high}"
    given = f"a {type(value).__name__}" if private and number is None else show(value)
    raise ParamsError(f"{name} must be a whole number from {low} {limit}, got {given}")


def positive(name: str, value: Any) -> float:
    """A finite number above 0, or ParamsError."""
    number = _as_float(value)
    if number is not None and 0 < number < math.inf:
        return number
    raise ParamsError(f"{name} must be a number above 0, got {show(value)}")


def between_0_and_1(name: str, value: Any) -> float:
    """A number above 0 and below 1, or ParamsError."""
    number = _as_float(value)
    if number is not None and 0 < number < 1:
        return number
    raise ParamsError(f"{name} must be a number above 0 and below 1, got {show(value)}")


def _as_float(value: Any) -> float | None:
    if not is_real(value):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def exact(value: Any) -> Fraction:
    """A finite number as an exact rational."""
    if is_whole(value):
        return Fraction(operator.index(value))
    return Fraction(*value.as_integer_ratio())


def text(name: str, value: Any) -> str:
    """A non-empty string that UTF-8 can encode; otherwise ParamsError, which does not show it."""
    if not isinstance(value, str) or not value:
        raise ParamsError(f"{name} must be a non-empty string, got a {type(value).__name__}")
    if not encodable(value):
        raise ParamsError(f"{name} must be Unicode text, got half a surrogate pair")
    return str(value)


def encodable(value: str) -> bool:
    """Whether UTF-8 can encode a string; the encoding error, which holds the string, is dropped."""
    try:
        str.encode(value, "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def plural(number: int, one: str, many: str) -> str:
    """A number with its noun.

    >>> plural(1200, "line", "lines")
    '1,200 lines'
    """
    return f"{number:,} {one if number == 1 else many}"


def did_you_mean(given: object, names: Iterable[str]) -> str:
    """A hint at the name that is closest to what was given; empty if none is close.

    >>> did_you_mean("paln", ["plan", "privacy"])
    ' (did you mean plan?)'
    """
    near = difflib.get_close_matches(str(given), list(names), 1)
    return f" (did you mean {near[0]}?)" if near else ""


def called_with(
    request: Callable[_Fields, _Request],
) -> Callable[[Callable[[_Request], _Result]], Callable[_Fields, _Result]]:
    """Let a function of one request object be called with the fields of that object.

    The fields, their types and their defaults are written once, in the class of the request.

    >>> @called_with(Fraction)
    ... def half(number):
    ...     return number / 2
    >>> half(1, denominator=3)
    Fraction(1, 6)
    >>> half(1, divisor=3)
    Traceback (most recent call last):
    TypeError: half() got an unexpected keyword argument 'divisor'
    """

    def decorate(function: Callable[[_Request], _Result]) -> Callable[_Fields, _Result]:
        returned = inspect.signature(function).return_annotation
        signature = inspect.signature(request).replace(return_annotation=returned)

        @functools.wraps(function)
        def call(*args: _Fields.args, **kwargs: _Fields.kwargs) -> _Result:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as error:  # in the name of the function, which the caller knows
                raise TypeError(f"{function.__name__}() {error}") from None
            return function(request(*args, **kwargs))

        call.__signature__ = signature  # type: ignore[attr-defined]  # what help() shows
        return call

    return decorate
