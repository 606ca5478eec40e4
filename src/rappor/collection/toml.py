"""A collection's TOML: read strictly, and written so that it reads back as the same collection.

Every key has the name of its attribute. Unknown keys, wrong types and NaN are refused; the error
names the path of the key: `schedule[0].q`, `params.k`.
"""

from __future__ import annotations

import datetime
import json
import tomllib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor import formats
from rappor.checks import did_you_mean, show
from rappor.collection import fields
from rappor.errors import ParamsError
from rappor.mechanism import Field, Ranges, View
from rappor.params import FIELDS, Params, preset

if TYPE_CHECKING:
    from rappor.collection.definition import Collection

REQUIRED = ("name", "version", "kind", "params")
KNOWN = frozenset({*fields.CHECKS, "params", "schedule"})
RENAMED = {"most_values": "max_values", "most_epsilon": "max_epsilon"}  # old name -> name
# Written only if they differ from this: older definitions keep their text.
LEFT_OUT = {"on_expiry": "delete"}
PHASE_KEYS = ("from", "p", "q")
MAGNITUDE_KEYS = ("base", "low", "high")
FIELD_KEYS = ("name", "kind", "categories", "ranges")
VIEW_KEYS = ("fields", "share")
_TABLES = ("ranges", "fields", "views", "dimensions")  # not written as plain lines
_LARGEST = 2**63 - 1  # the largest whole number that every TOML reader accepts


def parse(text: str, folder: Path | None) -> dict[str, Any]:
    """The fields of a definition by name; `Collection` checks their types and ranges."""
    found = _with_current_names(_load(text))
    for key in found:
        if key not in KNOWN:
            raise ParamsError(
                f"{_path(key)} is not a key of a collection{did_you_mean(key, KNOWN)}; rename or "
                "remove it"
            )
    for key in REQUIRED:
        if key not in found:
            raise ParamsError(f"{key} is missing: a collection has {', '.join(REQUIRED)}")
    made = dict(found)
    made["params"] = _params(found["params"], folder)
    if "ranges" in found:
        made["ranges"] = _ranges(found["ranges"])
    if "fields" in found:
        made["fields"] = [_field(*item) for item in _tables("fields", found, FIELD_KEYS, 2)]
    if "views" in found:
        made["views"] = [_view(*item) for item in _tables("views", found, VIEW_KEYS, 2)]
    if "schedule" in found:
        made["schedule"] = _schedule(found)
    if made.get("max_epsilon") == 0:  # a Collection uses 0 for "not given"
        raise ParamsError(f"max_epsilon must be a number above 0, got {made['max_epsilon']!r}")
    return made


def renamed_fields(text: str) -> tuple[str, ...]:
    """The fields of a definition that are written with an old name.

    >>> renamed_fields("most_values = 2")
    ('most_values',)
    """
    return tuple(key for key in _load(text) if key in RENAMED)


def stated_fields(text: str) -> frozenset[str]:
    """The fields that a definition gives, under their current names; the others have defaults.

    >>> sorted(stated_fields("most_values = 2"))
    ['max_values']
    """
    return frozenset(_with_current_names(_load(text)))


def _load(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (AttributeError, TypeError, ValueError, RecursionError) as error:
        raise ParamsError(f"not valid TOML: {error}") from None


def _with_current_names(table: Mapping[str, Any]) -> dict[str, Any]:
    """The same table; files and stores of earlier versions hold fields under their old names."""
    for old, name in RENAMED.items():
        if old in table and name in table:
            raise ParamsError(f"{old} is the old name of {name}: give {name} only")
    return {RENAMED.get(key, key): value for key, value in table.items()}


def _params(given: Any, folder: Path | None) -> Params:
    """Six numbers, `preset`, or `plan`: a file that `rappor plan --json` wrote, and `choice`."""
    table = _table("params", given, (*FIELDS, "preset", "plan", "choice"))
    if "preset" in table:
        _only("params", table, ("preset",))
        try:
            return preset(table["preset"]).params
        except ParamsError as error:
            raise ParamsError(f"params.{error}") from None
    if "plan" in table:
        _only("params", table, ("plan", "choice"))
        return _planned(table["plan"], table.get("choice", 1), folder)
    for name in FIELDS:
        if name not in table:
            raise ParamsError(
                f"params.{name} is missing: give {', '.join(FIELDS)}, or preset, or plan"
            )
    try:
        return Params.from_dict(table)
    except ParamsError as error:
        raise ParamsError(f"params.{error}") from None


def _planned(file: Any, choice: Any, folder: Path | None) -> Params:
    if not isinstance(file, str) or not file:
        raise ParamsError(f"params.plan must be the name of a file, got {show(file)}")
    if folder is None:
        raise ParamsError("params.plan is relative to the definition: use Collection.read(path)")
    return read_plan(folder / Path(file).expanduser(), choice)


def read_plan(path: Path, choice: Any = 1) -> Params:
    """The parameters of one plan, counted from 1, in a file that `rappor plan --json` wrote."""
    where = f"params.plan: {path.name}"
    text = formats.read_text(path)
    try:
        document = formats.parse_json(text)
    except ParamsError as error:
        raise ParamsError(f"{path}: not what rappor plan --json writes ({error})") from None
    try:
        plans = document["plans"]
        if not isinstance(plans, list) or not plans:
            raise ParamsError(f"{where} holds no plans; make it with rappor plan --json")
    except (KeyError, TypeError):
        raise ParamsError(f"{where} is not what rappor plan --json writes") from None
    if isinstance(choice, bool) or not isinstance(choice, int) or not 1 <= choice <= len(plans):
        raise ParamsError(f"params.choice must be a whole number from 1 to {len(plans)}")
    chosen = plans[choice - 1]
    try:
        return Params.from_dict(chosen["params"] if isinstance(chosen, dict) else chosen)
    except KeyError:
        raise ParamsError(f"{where} is not what rappor plan --json writes") from None
    except ParamsError as error:
        raise ParamsError(f"{where}: {error}") from None


def _ranges(given: Any) -> Ranges:
    table = _table("ranges", given, ("edges", "magnitudes"))
    if len(table) != 1:
        raise ParamsError("ranges must have either edges or magnitudes")
    try:
        if "magnitudes" in table:
            return Ranges.magnitudes(
                **_table("ranges.magnitudes", table["magnitudes"], MAGNITUDE_KEYS)
            )
        if not isinstance(table["edges"], list):
            raise ParamsError(f"edges must be a list of numbers, got {show(table['edges'])}")
        return Ranges([_edge(number, edge) for number, edge in enumerate(table["edges"])])
    except ParamsError as error:
        text = str(error)
        raise ParamsError(text if text.startswith("ranges.") else f"ranges.{text}") from None


def _edge(number: int, edge: Any) -> Any:
    """A number; or a fraction, such as "1/1000", that is not a float."""
    if not isinstance(edge, str):
        return edge
    above, _, below = edge.partition("/")
    digits = [part.removeprefix("-") for part in (above, below or "1")]
    if all(part.isascii() and part.isdigit() and len(part) <= 400 for part in digits):
        denominator = int(below or "1")
        if denominator > 0:
            return Fraction(int(above), denominator)
    raise ParamsError(f'ranges.edges[{number}] must be a number or a fraction such as "1/1000"')


def _field(where: str, table: dict[str, Any]) -> Field:
    try:
        ranges = _ranges(table["ranges"]) if "ranges" in table else None
        return Field(table["name"], table["kind"], table.get("categories"), ranges)
    except ParamsError as error:
        raise ParamsError(f"{where}: {error}") from None


def _view(where: str, table: dict[str, Any]) -> View:
    try:
        return View(table["fields"], table["share"])
    except ParamsError as error:
        raise ParamsError(f"{where}: {error}") from None


def _schedule(found: Mapping[str, Any]) -> list[tuple[Any, Any, Any]]:
    made = []
    for _, table in _tables("schedule", found, PHASE_KEYS, 3):
        first = table["from"]
        if isinstance(first, datetime.date) and not isinstance(first, datetime.datetime):
            first = first.isoformat()
        made.append((first, table["p"], table["q"]))
    return made


def _tables(
    name: str, found: Mapping[str, Any], known: tuple[str, ...], required: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tables of a list, each with its path; the first `required` of the known keys are."""
    needed = f"{', '.join(known[: required - 1])} and {known[required - 1]}"
    if not isinstance(found[name], list):
        raise ParamsError(f"{name} must be written as [[{name}]], with {needed}")
    for number, item in enumerate(found[name]):
        where = f"{name}[{number}]"
        table = _table(where, item, known)
        for key in known[:required]:
            if key not in table:
                raise ParamsError(f"{where}.{key} is missing: [[{name}]] needs {needed}")
        yield where, table


def _table(where: str, given: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise ParamsError(f"{where} must be a table with {', '.join(known)}, got {show(given)}")
    for key in given:
        if key not in known:
            raise ParamsError(f"{where}.{_path(key)} is not one of {', '.join(known)}")
    return given


def _only(where: str, table: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    others = [key for key in table if key not in allowed]
    if others:
        raise ParamsError(f"{where}.{others[0]} does not go together with {where}.{allowed[0]}")


def _path(key: str) -> str:
    """A key in a path: quoted, unless it is a plain name."""
    return key if key.isidentifier() and len(key) <= 60 else show(key)


def text_of(collection: Collection) -> str:
    """The TOML of a collection: its plain fields in order, then its tables."""
    lines = []
    for name in fields.CHECKS:
        value = getattr(collection, name)
        if name not in _TABLES and value not in (None, LEFT_OUT.get(name)):
            lines.append(f"{name} = {literal(value)}")
    lines += ["", "[params]", *collection.params.to_toml().splitlines()]
    if collection.ranges is not None:
        lines += ["", "[ranges]", _edges_line(collection.ranges)]
    for field in collection.fields or ():
        lines += [
            "",
            "[[fields]]",
            f"name = {literal(field.name)}",
            f"kind = {literal(field.kind)}",
        ]
        if field.categories is not None:
            lines.append(f"categories = {literal(field.categories)}")
        if field.ranges is not None:
            lines.append(f"ranges = {{ {_edges_line(field.ranges)} }}")
    for view in collection.views or ():
        lines += ["", "[[views]]", f"fields = {literal(view.fields)}", f"share = {view.share!r}"]
    if collection.dimensions:
        lines += ["", "[dimensions]"]
        lines += [f"{name} = {literal(value)}" for name, value in collection.dimensions.items()]
    for first, p, q in collection.schedule:
        lines += ["", "[[schedule]]", f'from = "{first}"', f"p = {p!r}", f"q = {q!r}"]
    return "\n".join(lines) + "\n"


def literal(value: Any) -> str:
    """A value as TOML writes it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # JSON's escapes are valid in TOML, which also needs DEL to be escaped
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case int() | float():
            return repr(value)
        case datetime.date():
            return value.isoformat()
        case tuple() | list():
            return f"[{', '.join(map(literal, value))}]"
    raise ParamsError(
        f"a {type(value).__name__} cannot be part of a definition; use text, numbers, dates and "
        "lists"
    )


def _edges_line(ranges: Ranges) -> str:
    return f"edges = [{', '.join(map(_edge_text, ranges.edges))}]"


def _edge_text(edge: Fraction) -> str:
    if edge.denominator == 1 and abs(edge.numerator) <= _LARGEST:
        return str(edge.numerator)
    try:
        nearest = float(edge)
        if Fraction(nearest) == edge:
            return repr(nearest)
    except OverflowError:
        pass
    return f'"{edge.numerator}/{edge.denominator}"'
