"""A collection as its clients read it: canonical JSON with the fields that a client uses.

docs/clients.md describes the format, docs/reference/collection.schema.json is its JSON Schema.
Every client, in every language, refuses the same definitions with the same codes; the cases are in
tests/vectors/client-definitions.json.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

from rappor.checks import did_you_mean, show
from rappor.collection import fields
from rappor.collection.periods import check_period
from rappor.errors import DefinitionError, ParamsError
from rappor.mechanism import Field, Ranges, View
from rappor.mechanism.views import FIELD_KINDS, FIELD_NAME, MAX_FIELDS, MIN_FIELDS
from rappor.params import FIELDS, MAX_M, Params, check_number

if TYPE_CHECKING:
    from rappor.collection.definition import Collection

FORMAT = "rappor-collection-v1"

# What goes wrong with a definition. The list is closed: clients in other languages have the same.
CODES: dict[str, str] = {
    "invalid-json": "it is not one JSON document, or a key is repeated",
    "unknown-format": "`format` is missing, or not one that this client reads",
    "missing-field": "a field is missing",
    "unknown-field": "a field that the format does not have",
    "wrong-type": "a field of another type",
    "out-of-range": "a number, text or list outside the limits of its field",
    "contradiction": "fields that exclude each other or do not fit together",
    "unsupported": "a dialect that this client does not implement",
}

# The fields that a client uses, with their JSON types; the others concern operator and analyst.
REQUIRED: dict[str, type] = {
    "name": str,
    "version": int,
    "kind": str,
    "params": dict,
    "description": str,
    "dialect": str,
    "period": str,
    "dimensions": dict,
    "reports_per_period": int,
    "max_values": int,
    "max_epsilon": float,
    "null_reports": bool,
    "one_time": bool,
    "budget": bool,
    "schedule": list,
    "clients_per_person": int,
}
OPTIONAL: dict[str, type] = {
    "categories": list,
    "ranges": dict,
    "fields": list,
    "views": list,
    "group": str,
    "expires": str,
}
PHASE: dict[str, type] = {"from": str, "p": float, "q": float}
PARAMS: dict[str, type] = {"k": int, "h": int, "m": int, "f": float, "p": float, "q": float}
RANGES: dict[str, type] = {"edges": list}
FIELD: dict[str, type] = {"name": str, "kind": str}
VIEW: dict[str, type] = {"fields": list, "cohorts": int}
EDGE = re.compile(r"-?(?:0|[1-9][0-9]{0,308})(?:/[1-9][0-9]{0,308})?")
DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NAMES: dict[type, str] = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
_FIELD_NAME = fields.matching(FIELD_NAME, "1 to 32 of a-z, 0-9 and _, a letter first")
_SAFE = 2**53  # from here on a double no longer holds every whole number


def text_of(collection: Collection) -> str:
    """The canonical JSON of a collection (RFC 8785): equal collections have equal texts."""
    return _canonical(document_of(collection))


def document_of(collection: Collection) -> dict[str, Any]:
    """What a client needs to know of a collection, as JSON values."""
    document: dict[str, Any] = {"format": FORMAT}
    for name in REQUIRED:
        document[name] = getattr(collection, name)
    document["params"] = collection.params.to_dict()
    document["dimensions"] = {name: list(values) for name, values in collection.dimensions.items()}
    document["schedule"] = [{"from": first, "p": p, "q": q} for first, p, q in collection.schedule]
    document |= _listed(collection)
    if (views := collection.tuple_views) is not None:
        document["fields"] = [
            {"name": field.name, "kind": field.kind, **_listed(field)} for field in views.fields
        ]
        numbers = views.cohorts(collection.params.m)
        document["views"] = [
            {"fields": list(view.fields), "cohorts": number}
            for view, number in zip(views.views, numbers, strict=True)
        ]
    if collection.group is not None:
        document["group"] = collection.group
    if collection.expires is not None:
        document["expires"] = collection.expires.isoformat()
    return document


def _listed(shape: Collection | Field) -> dict[str, Any]:
    """The categories or ranges of a collection or of a field."""
    found: dict[str, Any] = {}
    if shape.categories is not None:
        found["categories"] = list(shape.categories)
    if shape.ranges is not None:
        found["ranges"] = {"edges": [str(edge) for edge in shape.ranges.edges]}
    return found


def parse(text: str) -> dict[str, Any]:
    """The arguments of a `Collection`, or DefinitionError with a code and the path of the field."""
    return check(_load(text))


def check(document: Any) -> dict[str, Any]:
    """The arguments of a `Collection` from a parsed document, or DefinitionError.

    `Collection` itself checks how the fields fit together.
    """
    if not isinstance(document, dict):
        raise DefinitionError("wrong-type", "", "a definition must be a JSON object")
    if document.get("format") != FORMAT:
        raise DefinitionError(
            "unknown-format",
            "format",
            f'must be "{FORMAT}": export the definition again with rappor collection export, or '
            "update this client",
        )
    given = {name: value for name, value in document.items() if name != "format"}
    _check_fields("", given, REQUIRED, OPTIONAL)
    made = dict(given)
    made["params"] = params = _params(given["params"])
    if "ranges" in given:
        made["ranges"] = _ranges("ranges", given["ranges"])
    if ("fields" in given) != ("views" in given):
        raise DefinitionError("contradiction", "", "fields and views go together")
    if "fields" in given:
        made["fields"] = _tuple_fields(given["fields"])
        made["views"] = _views(given["views"], params.m)
    if "expires" in given:
        made["expires"] = _within("expires", _day, given["expires"])
    for name, listed in given["dimensions"].items():
        path = f"dimensions.{name}"
        _typed(path, listed, list)
        _within(path, fields.dimensions, "dimensions", {name: listed})
    for name in (*REQUIRED, *OPTIONAL):
        if name in fields.CHECKS and name in made:
            _within(name, fields.CHECKS[name], name, made[name])
    _within("max_epsilon", fields.positive_number, "max_epsilon", made["max_epsilon"])
    made["schedule"] = _schedule(given["schedule"], given["period"], params)
    return made


def _load(text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise DefinitionError("invalid-json", "", f"{constant} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise DefinitionError("invalid-json", "", "a key is repeated; name each field once")
        return found

    try:
        # Numbers are doubles, as in JavaScript: 2.0 is 2, and 1e400 is too large.
        return json.loads(
            text,
            parse_constant=refuse,
            parse_int=float,
            parse_float=float,
            object_pairs_hook=unique,
        )
    except DefinitionError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise DefinitionError("invalid-json", "", f"not valid JSON: {error}") from None


def _check_fields(
    where: str, table: dict[str, Any], required: Mapping[str, type], optional: Mapping[str, type]
) -> None:
    """Exactly these fields, each of its type; whole numbers become ints in place."""
    known = {**required, **optional}
    for name, value in table.items():
        path = f"{where}.{name}" if where else name
        if name not in known:
            hint = did_you_mean(name, known)
            raise DefinitionError("unknown-field", path, f"is not a field of the format{hint}")
        table[name] = _typed(path, value, known[name])
    for name in required:
        if name not in table:
            path = f"{where}.{name}" if where else name
            raise DefinitionError("missing-field", path, "is missing; export the definition again")


def _typed(path: str, value: Any, wanted: type) -> Any:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (number if wanted in (int, float) else isinstance(value, wanted)):
        raise DefinitionError("wrong-type", path, f"must be {_NAMES[wanted]}, got {show(value)}")
    if number and not math.isfinite(value):
        raise DefinitionError("out-of-range", path, f"must be a finite number, got {value}")
    if wanted is int:
        if abs(value) >= _SAFE or value != int(value):
            raise DefinitionError("out-of-range", path, f"must be a whole number, got {value}")
        return int(value)
    return value


def _within(path: str, check_field: Callable[..., Any], *given: Any) -> Any:
    """What a check returns; what it refuses lies outside the limits of the field."""
    try:
        return check_field(*given)
    except ParamsError as error:
        raise DefinitionError("out-of-range", path, str(error)) from None


def _params(table: dict[str, Any]) -> Params:
    _check_fields("params", table, PARAMS, {})
    for name in FIELDS:
        _within(f"params.{name}", check_number, name, table[name])
    try:
        return Params.from_dict(table)
    except ParamsError as error:
        raise DefinitionError("contradiction", "params", str(error)) from None


def _ranges(path: str, table: dict[str, Any]) -> Ranges:
    _check_fields(path, table, RANGES, {})
    made: Ranges = _within(f"{path}.edges", _edges, table["edges"])
    return made


def _tuple_fields(listed: list[Any]) -> list[Field]:
    if not MIN_FIELDS <= len(listed) <= MAX_FIELDS:
        text = f"must be {MIN_FIELDS} to {MAX_FIELDS} fields"
        raise DefinitionError("out-of-range", "fields", text)
    made = []
    for number, item in enumerate(listed):
        path = f"fields[{number}]"
        table = dict(_typed(path, item, dict))
        _check_fields(path, table, FIELD, {"categories": list, "ranges": dict})
        _within(f"{path}.name", _FIELD_NAME, "name", table["name"])
        _within(f"{path}.kind", fields.one_of(*FIELD_KINDS), "kind", table["kind"])
        if "categories" in table:
            _within(f"{path}.categories", fields.categories, "categories", table["categories"])
        if "ranges" in table:
            table["ranges"] = _ranges(f"{path}.ranges", table["ranges"])
        try:
            made.append(Field(**table))
        except ParamsError as error:
            raise DefinitionError("contradiction", path, str(error)) from None
    return made


def _views(listed: list[Any], m: int) -> list[View]:
    """Views with the share that gives each the number of cohorts that it states."""
    made = []
    total = 0
    for number, item in enumerate(listed):
        path = f"views[{number}]"
        table = dict(_typed(path, item, dict))
        _check_fields(path, table, VIEW, {})
        for name in table["fields"]:
            _within(f"{path}.fields", _FIELD_NAME, "fields", name)
        cohorts = _within(f"{path}.cohorts", fields.count(1, MAX_M), "cohorts", table["cohorts"])
        total += cohorts
        try:
            made.append(View(table["fields"], min(1.0, cohorts / m)))
        except ParamsError as error:
            raise DefinitionError("contradiction", path, str(error)) from None
    if total != m:
        text = f"views must have {m} cohorts together, got {total}"
        raise DefinitionError("contradiction", "", text)
    return made


def _edges(listed: list[Any]) -> Ranges:
    for edge in listed:
        if not isinstance(edge, str) or not EDGE.fullmatch(edge):
            raise ParamsError(f'edges must be texts such as "18" or "-1/2", got {show(edge)}')
    made = Ranges(map(Fraction, listed))
    fields.check_edges(made)
    return made


def _day(text: str) -> datetime.date:
    try:
        if DAY.fullmatch(text):
            return datetime.date.fromisoformat(text)
    except ValueError:
        pass
    raise ParamsError(f"expires must be a day such as 2027-11-16, got {show(text)}")


def _schedule(phases: list[Any], period: str, params: Params) -> list[tuple[str, float, float]]:
    made: list[tuple[str, float, float]] = []
    for number, phase in enumerate(phases):
        path = f"schedule[{number}]"
        phase = dict(_typed(path, phase, dict))
        _check_fields(path, phase, PHASE, {})
        first, p, q = phase["from"], phase["p"], phase["q"]
        _within(f"{path}.from", check_period, period, first)
        _within(f"{path}.p", check_number, "p", p)
        _within(f"{path}.q", check_number, "q", q)
        try:
            replace(params, p=p, q=q)
        except ParamsError as error:
            raise DefinitionError("contradiction", path, str(error)) from None
        if made and first <= made[-1][0]:
            raise DefinitionError("contradiction", path, "the periods must come in order")
        made.append((first, p, q))
    return made


def _canonical(value: Any) -> str:
    """RFC 8785: keys sorted, no white space, numbers as ECMAScript writes them."""
    match value:
        case bool() | str() | None:
            return json.dumps(value, ensure_ascii=False)
        case int() | float():
            return number_text(float(value))
        case list():
            return f"[{','.join(map(_canonical, value))}]"
        case dict():
            members = (f"{_canonical(name)}:{_canonical(value[name])}" for name in sorted(value))
            return f"{{{','.join(members)}}}"
    raise TypeError(f"a {type(value).__name__} is not JSON")


def number_text(number: float) -> str:
    """A finite double as ECMAScript and RFC 8785 write it: its shortest digits.

    >>> number_text(0.75), number_text(128.0), number_text(1e-9), number_text(0.1 + 0.2)
    ('0.75', '128', '1e-9', '0.30000000000000004')
    """
    if number == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    text = "".join(map(str, digits))
    point = len(text) + int(exponent)  # where the decimal point stands, counted from the left
    if 0 < point <= 21:
        body = text.ljust(point, "0")
        body = body if len(text) <= point else f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        body = f"0.{'0' * -point}{text}"
    else:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        body = f"{text[0]}{fraction}e{point - 1:+d}"
    return "-" + body if sign else body
