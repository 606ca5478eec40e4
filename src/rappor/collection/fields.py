"""The fields of a collection, each with its check; errors name the field."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rappor.checks import encodable, is_real, show, whole
from rappor.collection.periods import check_period_kind
from rappor.errors import ParamsError
from rappor.mechanism import DIALECTS, Field, Ranges, View
from rappor.mechanism.kinds import check_kind
from rappor.wire.dimensions import (
    COLLECTION_NAME,
    DIMENSION_NAME,
    DIMENSION_VALUE,
    OTHER,
)
from rappor.wire.protocol import MAX_DIMENSIONS, MAX_VERSION

SENSITIVITIES = ("low", "medium", "high")
PLATFORMS = ("device", "web")
VALUES = ("fixed", "slow", "fast")
ON_EXPIRY = ("delete", "keep-counts")
MAX_DIMENSION_VALUES = 256
MAX_EDGE_BITS = 1024
MAX_TEXT = 4096
MAX_COUNT = 10**12
MAX_REPORTS_PER_PERIOD = 10_000
MAX_VALUES = 1_000_000
MAX_CLIENTS_PER_PERSON = 10_000

FieldCheck = Callable[[str, Any], Any]
GROUP = re.compile(r"[a-z][a-z0-9_-]{0,62}")


def one_of(*allowed: str) -> FieldCheck:
    """A check that a field is one of these words."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in allowed:
            raise ParamsError(f"{name} must be one of {', '.join(allowed)}; got {show(value)}")
        return value

    return check


def count(low: int, high: int) -> FieldCheck:
    """A check that a field is a whole number in a range."""
    return lambda name, value: whole(name, value, low, high)


def matching(pattern: re.Pattern[str], about: str) -> FieldCheck:
    """A check that a field is a text that matches a pattern."""

    def check(name: str, value: Any) -> str:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ParamsError(f"{name} must be {about}, got {show(value)}")
        return value

    return check


def optional(check: FieldCheck) -> FieldCheck:
    """The same check, for an optional field."""
    return lambda name, value: None if value is None else check(name, value)


def some_text(name: str, value: Any) -> str:
    """A text, possibly empty, without control characters other than new line and tab."""
    if not isinstance(value, str) or not encodable(value) or len(value) > MAX_TEXT:
        raise ParamsError(
            f"{name} must be a text of at most {MAX_TEXT} characters, got {show(value)}"
        )
    if any((ord(sign) < 32 and sign not in "\n\t") or sign == "\x7f" for sign in value):
        raise ParamsError(f"{name} must hold no control characters, got {show(value)}")
    return value


def truth(name: str, value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ParamsError(f"{name} must be true or false, got {show(value)}")
    return value


def texts(name: str, value: Any) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, (list, tuple)):
        raise ParamsError(f"{name} must be a list of texts, got {show(value)}")
    return tuple(some_text(f"{name}[{number}]", each) for number, each in enumerate(value))


def categories(name: str, value: Any) -> tuple[str, ...] | None:
    """A list of strings, one for each bit; `signal_of` checks that they are distinct."""
    if value is None:
        return None
    if not isinstance(value, (list, tuple)) or not value:
        raise ParamsError(f"{name} must be a non-empty list of strings, got {show(value)}")
    for number, each in enumerate(value):
        if type(each) is not str or not encodable(each):
            raise ParamsError(f"{name}[{number}] must be a string, got {show(each)}")
    return tuple(value)


def day(name: str, value: Any) -> datetime.date:
    """A date without a time."""
    if not isinstance(value, datetime.date) or isinstance(value, datetime.datetime):
        raise ParamsError(f"{name} must be a date such as 2027-11-16, got {show(value)}")
    return value


def number_from_0(name: str, value: Any) -> float:
    """A finite number, at least 0; 0 stands for "not given"."""
    if not is_real(value) or not math.isfinite(value) or value < 0:
        raise ParamsError(f"{name} must be a number above 0, got {show(value)}")
    return float(value)


def positive_number(name: str, value: Any) -> float:
    """A finite number above 0."""
    if not is_real(value) or not math.isfinite(value) or value <= 0:
        raise ParamsError(f"{name} must be a number above 0, got {show(value)}")
    return float(value)


def ranges(name: str, value: Any) -> Ranges | None:
    """Ranges, or nothing."""
    if value is not None and not isinstance(value, Ranges):
        raise ParamsError(f"{name} must be rappor.Ranges, got {show(value)}")
    return value


def tuple_fields(name: str, value: Any) -> tuple[Field, ...]:
    """A list of fields; `Views` checks that they fit together."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, Field) for item in value):
        raise ParamsError(f"{name} must be a list of rappor.Field, got {show(value)}")
    return tuple(value)


def views(name: str, value: Any) -> tuple[View, ...]:
    """A list of views; `Views` checks that they fit the fields."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(item, View) for item in value):
        raise ParamsError(f"{name} must be a list of rappor.View, got {show(value)}")
    return tuple(value)


def check_edges(made: Ranges) -> None:
    """Refuse edges that are too large for a file."""
    for number, edge in enumerate(made.edges):
        if max(abs(edge.numerator), edge.denominator).bit_length() > MAX_EDGE_BITS:
            raise ParamsError(f"ranges.edges[{number}] must have at most {MAX_EDGE_BITS} bits")


def dimensions(name: str, value: Any) -> dict[str, tuple[str, ...]]:
    """Declared dimensions: for each name, a short list of allowed values."""
    if not isinstance(value, Mapping) or len(value) > MAX_DIMENSIONS:
        raise ParamsError(
            f"{name} must be at most {MAX_DIMENSIONS} names, each with a list of its values"
        )
    made = {}
    for key, listed in value.items():
        where = f"{name}.{key}"
        if not isinstance(key, str) or not DIMENSION_NAME.fullmatch(key):
            raise ParamsError(f"{where}: a name is 1 to 32 of a-z, 0-9 and _, a letter first")
        allowed = texts(where, listed)
        if not 1 <= len(allowed) <= MAX_DIMENSION_VALUES or len(set(allowed)) != len(allowed):
            raise ParamsError(f"{where} must be 1 to {MAX_DIMENSION_VALUES} different values")
        for number, each in enumerate(allowed):
            if each == OTHER or not DIMENSION_VALUE.fullmatch(each):
                raise ParamsError(
                    f"{where}[{number}] must be 1 to 64 letters, digits, spaces or ._+/:()-, a "
                    f"letter or digit first, and not {OTHER!r}; got {show(each)}"
                )
        made[key] = allowed
    return made


def phases(name: str, value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The (first period, p, q) of a schedule."""
    if not isinstance(value, (list, tuple)):
        raise ParamsError(f"{name} must be a list of periods with their p and q")
    for number, each in enumerate(value):
        if not isinstance(each, (list, tuple)) or len(each) != 3:
            raise ParamsError(f"{name}[{number}] must be (first period, p, q), got {show(each)}")
        yield each[0], each[1], each[2]


CHECKS: dict[str, FieldCheck] = {
    "name": matching(COLLECTION_NAME, "1 to 63 of a-z, 0-9, _ and -, a letter first"),
    "version": count(1, MAX_VERSION),
    "kind": lambda _, value: check_kind(value),
    "description": some_text,
    "owner": some_text,
    "sensitivity": one_of(*SENSITIVITIES),
    "reviews": texts,
    "expires": optional(day),
    "on_expiry": one_of(*ON_EXPIRY),
    "platform": one_of(*PLATFORMS),
    "dialect": one_of(*DIALECTS),
    "categories": categories,
    "ranges": ranges,
    "fields": optional(tuple_fields),
    "views": optional(views),
    "period": lambda _, value: check_period_kind(value),
    "dimensions": dimensions,
    "keep_reports_days": count(0, 3650),
    "reports_per_period": count(1, MAX_REPORTS_PER_PERIOD),
    "max_values": count(1, MAX_VALUES),
    "max_epsilon": number_from_0,
    "group": optional(matching(GROUP, "1 to 63 of a-z, 0-9, _ and -, a letter first")),
    "null_reports": truth,
    "one_time": truth,
    "budget": truth,
    "expected_reports": optional(count(1, MAX_COUNT)),
    "values": one_of(*VALUES),
    "shared": truth,
    "clients_per_person": count(1, MAX_CLIENTS_PER_PERSON),
    "account_secret": truth,
    "upload": optional(some_text),
}
