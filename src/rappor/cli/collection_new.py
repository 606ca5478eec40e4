"""`rappor collection new`: write a new definition with comments."""

from __future__ import annotations

import argparse
import datetime
from dataclasses import asdict, replace
from typing import Any

from rappor.cli.arguments import (
    UsageError,
    add_fields,
    add_params,
    count,
    fields_from,
    params_from,
    ranges_from,
    views_from,
)
from rappor.cli.collection_text import facts_of, finding_lines
from rappor.cli.output import note, say, say_json
from rappor.cli.paths import new_target, path_of
from rappor.cli.result_files import replacing
from rappor.collection import Collection, lint
from rappor.collection.fields import ON_EXPIRY, PLATFORMS, SENSITIVITIES, VALUES
from rappor.collection.periods import PERIODS
from rappor.collection.template import commented, draft
from rappor.collection.toml import read_plan
from rappor.mechanism import DIALECTS, KINDS, Ranges
from rappor.params import FIELDS, Params
from rappor.privacy.schedule import relative_error
from rappor.typing import Kind

_USUAL_Q = 0.75  # the paper's


def add_new(actions: Any) -> Any:
    """Add the action."""
    parser = actions.add_parser(
        "new",
        help="write a new definition with comments",
        description="Write the TOML file of a new collection, with a comment on every field. "
        "Fields without an option get defaults that lint accepts: read the file before you "
        "collect.",
        epilog="Example: rappor collection new theme --kind category --categories light,dark "
        "--owner web-team@example.org --expected-reports 1e5 --output theme.toml",
        allow_abbrev=False,
    )
    parser.add_argument("name", metavar="NAME", help="name of the collection: a-z, 0-9, _ and -")
    parser.add_argument(
        "--output", metavar="FILE", help="file to write (default, or -: standard output)"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    words = parser.add_argument_group("who, and what for")
    words.add_argument(
        "--description", metavar="TEXT", help="description for the people who report"
    )
    words.add_argument("--owner", metavar="WHO", help="who is responsible (default: you)")
    words.add_argument("--sensitivity", choices=SENSITIVITIES, help="of the data (default: medium)")
    words.add_argument(
        "--review", metavar="WHERE", action="append", help="link to a review; may be repeated"
    )
    words.add_argument(
        "--expires", metavar="DATE", help="end of the collection (default: in a year)"
    )
    words.add_argument(
        "--on-expiry", choices=ON_EXPIRY, help="what happens to its counts then (default: delete)"
    )
    what = parser.add_argument_group("what is collected")
    what.add_argument("--kind", choices=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    what.add_argument("--categories", metavar="A,B,C", help="the values of kind category")
    what.add_argument("--edges", metavar="X,Y,Z", help="the range edges of kind ordinal")
    what.add_argument("--magnitudes", metavar="B,L,H", help="range edges at B^L, ..., B^H instead")
    add_fields(what)
    what.add_argument("--dialect", choices=list(DIALECTS), help="how strings map to bits")
    what.add_argument("--period", choices=list(PERIODS), help="time unit of counts (default: day)")
    what.add_argument(
        "--dimension",
        metavar="NAME=A,B",
        action="append",
        help="a field sent in clear; may be repeated",
    )
    limits = parser.add_argument_group("limits and modes")
    limits.add_argument(
        "--reports-per-period",
        type=count,
        metavar="N",
        help="reports of a client in a period (default: 1)",
    )
    limits.add_argument(
        "--max-values", type=count, metavar="N", help="distinct values of a client (default: 1)"
    )
    limits.add_argument("--max-epsilon", type=float, metavar="E", help="total ε of a client")
    for old, dest in (("--most-values", "max_values"), ("--most-epsilon", "max_epsilon")):
        parse = count if dest == "max_values" else float  # options of earlier versions
        limits.add_argument(old, dest=dest, type=parse, help=argparse.SUPPRESS)
    limits.add_argument(
        "--group", metavar="NAME", help="name shared by collections on the same subject"
    )
    limits.add_argument(
        "--keep-reports-days",
        type=int,
        metavar="N",
        help="days to keep single reports (default: 0)",
    )
    limits.add_argument(
        "--expected-reports", type=count, metavar="N", help="of all clients in a period"
    )
    limits.add_argument("--platform", choices=PLATFORMS, help="of clients (default: device)")
    limits.add_argument("--values", choices=VALUES, help="how values change (default: fixed)")
    limits.add_argument("--upload", metavar="URL", help="where clients send reports, https://...")
    for flag, about in (
        ("--null-reports", "clients without a value send null reports"),
        ("--one-time", "each client reports only once"),
        ("--budget", "each period spends its own ε (needs --max-epsilon)"),
        ("--account-secret", "the clients of a person share one secret"),
    ):
        limits.add_argument(flag, action="store_true", help=about)
    add_params(parser)
    parser.add_argument(
        "--plan", metavar="FILE", help="take the parameters from the output of rappor plan --json"
    )
    parser.set_defaults(run=run_new)
    return parser


def run_new(args: argparse.Namespace) -> int:
    """Write a new definition, and print the findings of lint."""
    collection = _drafted(args)
    text = commented(collection)
    if args.output == "-":
        args.output = None
    if args.output is not None:
        new_target(args.output, force=args.force)
        with replacing(args.output) as path:
            path.write_text(text, encoding="utf-8")
    findings = lint(collection)
    if args.json:
        say_json({**facts_of(collection), "findings": [asdict(finding) for finding in findings]})
    elif args.output is None:
        say(text.rstrip("\n"))
    else:
        note(f"wrote {args.output}; read it, then run: rappor collection show {args.output}")
    if not args.json:
        if collection.budget and collection.params.q < _USUAL_Q:
            price = relative_error(collection.params, replace(collection.params, q=_USUAL_Q))
            note(f"budget: intervals are {price:.3g} times as wide as with q = {_USUAL_Q}")
        for line in finding_lines(findings):
            note(line)
    return 0


def _drafted(args: argparse.Namespace) -> Collection:
    params, kind = _asked_params(args)
    kind = args.kind or kind or _kind_of(args)
    given: dict[str, Any] = {
        "owner": args.owner or _me(),
        "reviews": None if args.review is None else tuple(args.review),
        "categories": None if args.categories is None else tuple(args.categories.split(",")),
        "ranges": _asked_ranges(args),
        "fields": fields_from(args),
        "views": views_from(args),
        "dimensions": dict(map(_dimension, args.dimension)) if args.dimension else None,
        "expires": None if args.expires is None else _date(args.expires),
    }
    for name in (
        "description", "sensitivity", "dialect", "period", "reports_per_period", "max_values",
        "max_epsilon", "group", "keep_reports_days", "expected_reports", "platform", "values",
        "upload", "null_reports", "one_time", "budget", "account_secret", "on_expiry",
    ):  # fmt: skip
        given[name] = getattr(args, name)
    return draft(args.name, kind=kind, params=params, **given)


def _asked_params(args: argparse.Namespace) -> tuple[Params | None, Kind | None]:
    """The parameters on the command line, if any, and the kind of a preset."""
    numbers = any(getattr(args, name) is not None for name in FIELDS)
    given = args.preset is not None or args.params is not None or numbers
    if args.plan is not None:
        if given:
            raise UsageError("give one of --plan, --preset, --params, or the six numbers")
        return read_plan(path_of(args.plan)), None
    if not given:
        return None, None
    params, kind = params_from(args)
    return params, kind if args.preset is not None else None


def _kind_of(args: argparse.Namespace) -> Kind:
    if args.categories is not None:
        return "category"
    if args.field is not None:
        return "tuple"
    return "ordinal" if args.edges is not None or args.magnitudes is not None else "string"


def _asked_ranges(args: argparse.Namespace) -> Ranges | None:
    if args.edges is not None and args.magnitudes is not None:
        raise UsageError("give one of --edges and --magnitudes")
    if args.edges is not None:
        return ranges_from(args.edges)
    if args.magnitudes is None:
        return None
    try:
        base, low, high = (int(part) for part in args.magnitudes.split(","))
    except ValueError:
        raise UsageError("--magnitudes takes three whole numbers, such as 10,0,6") from None
    return Ranges.magnitudes(base, low, high)


def _dimension(text: str) -> tuple[str, tuple[str, ...]]:
    name, found, values = text.partition("=")
    if not found:
        raise UsageError(f"--dimension takes NAME=A,B, got {text[:60]!r}")
    return name, tuple(values.split(","))


def _date(text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--expires takes a date such as 2027-11-16, got {text[:60]!r}") from None


def _me() -> str:
    """The user's name, as the default owner."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "the operator of the collector"
