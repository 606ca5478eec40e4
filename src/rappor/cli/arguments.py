"""Arguments that several verbs share: parameters, kinds, numbers, secrets."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from decimal import Decimal, InvalidOperation

from rappor.cli.output import note
from rappor.cli.paths import path_of, target_of
from rappor.errors import MissingExtraError, ParamsError, RapporError
from rappor.formats import parse_number
from rappor.mechanism import DIALECTS, KINDS, Encoder, Field, Ranges, View, new_secret
from rappor.params import FIELDS, PRESETS, Params, preset
from rappor.typing import Kind

SHORT_SECRET = 16


class UsageError(RapporError):
    """Options are missing or do not go together."""


def need_analysis(verb: str, *packages: str) -> None:
    """Raise MissingExtraError if a package is not installed; by default numpy and scipy."""
    wanted = packages or ("numpy", "scipy")
    if any(importlib.util.find_spec(package) is None for package in wanted):
        raise MissingExtraError(verb, "analysis")


def count(text: str) -> int:
    """A whole number of at least 1, also written as 1e6."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        number = Decimal(0)
    if not number.is_finite() or number < 1 or number != number.to_integral_value():
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a whole number of at least 1 (1e6 is fine)"
        )
    if number > Decimal("1e18"):
        raise argparse.ArgumentTypeError(f"{text!r} is above 1e18")
    return int(number)


MAX_PORT = 65535


def port(text: str) -> int:
    """A port; 0 means any free one."""
    if not text.isascii() or not text.isdigit() or int(text[:9]) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port from 0 to {MAX_PORT}")
    return int(text)


def add_params(
    parser: argparse.ArgumentParser, default: str | None = None, *, definition: bool = False
) -> None:
    """Add the ways to give parameters: a preset, a params.csv, six numbers, or a definition."""
    ways = "--preset, --params, --collection" if definition else "--preset, --params"
    group = parser.add_argument_group(f"parameters: one of {ways}, or all six numbers")
    names = "; ".join(f"{name}: {item.about}" for name, item in PRESETS.items())
    fallback = f" (default: {default})" if default else ""
    group.add_argument("--preset", metavar="NAME", help=f"{names}{fallback}")
    group.add_argument("--params", metavar="FILE", help="a params.csv with the header k,h,m,p,q,f")
    if definition:
        group.add_argument(
            "--collection",
            dest="definition",
            metavar="FILE",
            help="the definition of a collection: its parameters and its kind",
        )
    about = {
        "k": "bits in a report",
        "h": "hash functions",
        "m": "cohorts",
        "f": "noise of the permanent randomized response, 0 <= f < 1",
        "p": "chance that a 0 is reported as 1",
        "q": "chance that a 1 is reported as 1, p < q",
    }
    for name in FIELDS:
        group.add_argument(f"--{name}", metavar=name.upper(), help=about[name])
    parser.set_defaults(default_preset=default)


def params_from(args: argparse.Namespace) -> tuple[Params, Kind]:
    """The parameters of the command line, and the kind of the preset or the definition."""
    numbers = {name: getattr(args, name) for name in FIELDS if getattr(args, name) is not None}
    definition = getattr(args, "definition", None)
    given = [args.preset, args.params, definition, numbers or None]
    if sum(way is not None for way in given) > 1:
        also = ", --collection" if "definition" in args else ""
        raise UsageError(f"give only one of --preset, --params{also}, or the six numbers")
    if definition is not None:
        from rappor.collection import Collection

        collection = Collection.read(path_of(definition))
        return collection.params, collection.kind
    if args.params is not None:
        return Params.from_csv(args.params), "string"
    if numbers:
        missing = [f"--{name}" for name in FIELDS if name not in numbers]
        if missing:
            raise UsageError(f"the six numbers go together; missing: {', '.join(missing)}")
        return Params.from_dict(
            {name: parse_number(name, numbers[name]) for name in FIELDS}
        ), "string"
    name = args.default_preset if args.preset is None else args.preset
    if name is None:
        file = ", --collection FILE" if "definition" in args else ""
        raise UsageError(
            f"give --preset ({', '.join(PRESETS)}), --params FILE{file}, or --k ... --q"
        )
    chosen = preset(name)
    return chosen.params, chosen.kind


def add_kind(parser: argparse.ArgumentParser) -> None:
    """Add --kind."""
    about = "; ".join(f"{kind}: {text}" for kind, text in KINDS.items())
    parser.add_argument(
        "--kind", choices=list(KINDS), metavar="KIND", help=f"{about} (default: the preset's)"
    )


def add_encoder(parser: argparse.ArgumentParser) -> None:
    """Add the options of an encoder, except its parameters."""
    add_kind(parser)
    parser.add_argument("--categories", metavar="A,B,C", help="the values of kind category")
    parser.add_argument("--edges", metavar="X,Y,Z", help="the range edges of kind ordinal")
    add_fields(parser)
    parser.add_argument(
        "--dialect",
        default="rappor-v1",
        metavar="NAME",
        help=f"how to map strings to bits: {', '.join(DIALECTS)}",
    )
    parser.add_argument(
        "--collection",
        default="example",
        metavar="NAME",
        help="name of the collection (default: %(default)s)",
    )
    parser.add_argument(
        "--cohort", metavar="N", help="cohort, 0 to m-1 (default: derived from the secret)"
    )


def add_fields(parser: argparse._ActionsContainer) -> None:
    """Add the options of kind tuple."""
    parser.add_argument(
        "--field",
        action="append",
        metavar="NAME=KIND",
        help="a field of kind tuple, such as page=string, beta=boolean, channel=category:a,b or "
        "age=ordinal:18,65; two to four of them",
    )
    parser.add_argument(
        "--view",
        action="append",
        metavar="NAMES=SHARE",
        help="fields that are reported together by a share of the cohorts, such as "
        "page,channel=0.8 (default: the whole tuple 0.8, the first field 0.2)",
    )


def fields_from(args: argparse.Namespace) -> list[Field] | None:
    """The fields of kind tuple on the command line, if any."""
    return None if args.field is None else [_field(text) for text in args.field]


def _field(text: str) -> Field:
    name, found, rest = text.partition("=")
    if not found:
        raise UsageError(f"--field takes NAME=KIND, got {text[:60]!r}")
    kind, found, listed = rest.partition(":")
    categories = tuple(listed.split(",")) if found and kind == "category" else None
    ranges = ranges_from(listed) if found and kind == "ordinal" else None
    if found and categories is None and ranges is None:
        raise UsageError(f"--field: only category and ordinal have a list, got {text[:60]!r}")
    return Field(name, kind, categories, ranges)  # type: ignore[arg-type]  # it checks the kind


def views_from(args: argparse.Namespace) -> list[View] | None:
    """The views of kind tuple on the command line, if any."""
    return None if args.view is None else [_view(text) for text in args.view]


def _view(text: str) -> View:
    names, found, share = text.partition("=")
    if not found:
        raise UsageError(f"--view takes NAMES=SHARE, got {text[:60]!r}")
    return View(tuple(names.split(",")), _number("the share of --view", share))


def encoder_from(args: argparse.Namespace, secret: bytes) -> Encoder:
    """The encoder of the command line."""
    params, preset_kind = params_from(args)
    kind = args.kind or preset_kind
    return Encoder(
        params,
        secret=secret,
        collection=args.collection,
        cohort=None if args.cohort is None else _whole("cohort", args.cohort),
        kind=kind,
        dialect=args.dialect,
        categories=None if args.categories is None else args.categories.split(","),
        ranges=None if args.edges is None else ranges_from(args.edges),
        fields=fields_from(args),
        views=views_from(args),
    )


def value_from(text: str, kind: str) -> object:
    """A value of a kind, from its text."""
    if kind == "boolean":
        known = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if text.lower() not in known:
            raise ParamsError("a boolean value must be one of true, false, yes, no, 1, 0")
        return known[text.lower()]
    if kind == "ordinal":
        return _number("an ordinal value", text)
    if kind == "bits":
        if not text or set(text) - {"0", "1"}:
            raise ParamsError("a value of kind bits must be k characters 0 or 1, bit k-1 first")
        return [character == "1" for character in reversed(text)]
    if kind == "tuple":
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise ParamsError("a value of kind tuple must be a JSON object of its fields") from None
    return text


def read_secret(path: str) -> bytes:
    """The secret in a file. Warns of a short secret."""
    secret = path_of(path).read_bytes()
    if not secret:
        raise ParamsError(f"{path}: the secret file is empty; restore it, or name another")
    if len(secret) < SHORT_SECRET:
        note(f"warning: {path} has {len(secret)} bytes; a secret needs at least {SHORT_SECRET}")
    return secret


def create_secret(path: str) -> None:
    """Write a new secret to a file, unless the file exists."""
    file = path_of(path)
    if file.exists():
        return
    target_of(path)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(new_secret())
            handle.flush()
            os.fsync(handle.fileno())
    except OSError as error:  # such as a full disk: no secret is better than half of one
        file.unlink()
        raise OSError(error.errno, error.strerror, str(file)) from error
    note(f"created a new secret: {file} (keep it: a second secret costs ε again)")


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise ParamsError(f"{name} must be a whole number of at least 0, got {text[:60]!r}")
    return int(text)


def ranges_from(text: str) -> Ranges:
    """The ranges between edges written as X,Y,Z."""
    return Ranges([_number("each of --edges", part) for part in text.split(",")])


def _number(what: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParamsError(f"{what} must be a number") from None
