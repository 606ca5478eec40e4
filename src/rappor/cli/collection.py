"""`rappor collection new|lint|diff|show|retire`: write, check, compare, show, end collections."""

from __future__ import annotations

import argparse
import datetime
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rappor import formats
from rappor.cli import retire
from rappor.cli.arguments import UsageError, add_params, count, params_from, ranges_from
from rappor.cli.output import note, say, say_json, table
from rappor.cli.paths import new_target, path_of
from rappor.cli.result_files import replacing
from rappor.collection import (
    Collection,
    DefinitionDifference,
    LintFinding,
    Registry,
    diff,
    lint,
    lint_all,
)
from rappor.collection.fields import ON_EXPIRY, PLATFORMS, SENSITIVITIES, VALUES
from rappor.collection.lint import errors, lint_text
from rappor.collection.periods import PERIODS
from rappor.collection.registry import definition_files
from rappor.collection.summary import Summary, summary
from rappor.collection.template import commented, draft
from rappor.collection.toml import read_plan
from rappor.errors import ParamsError
from rappor.mechanism import DIALECTS, KINDS, Ranges
from rappor.params import FIELDS, Params
from rappor.privacy.rounding import up
from rappor.privacy.schedule import relative_error
from rappor.typing import Kind

WIDTH = 96
_USUAL_Q = 0.75  # the paper's


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb and its actions."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "collection",
        help="write, check, compare, show and end collections (new, lint, diff, show, retire)",
        description="A collection is defined in one TOML file: what clients report, who collects "
        "it, for how long, and at what cost in ε. docs/collections.md explains every field.",
        epilog="Example: rappor collection new homepage --preset windows --output homepage.toml; "
        "rappor collection lint homepage.toml",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in (add_new, _add_lint, _add_diff, _add_show, retire.add_retire):
        action: argparse.ArgumentParser = add(actions)
        action.add_argument("--json", action="store_true", help="print JSON")
        action.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
        action.set_defaults(parser=action)
    parser.set_defaults(run=_no_action)
    return parser


def _no_action(_: argparse.Namespace) -> int:
    raise UsageError(
        "give an action: new, lint, diff, show or retire (see: rappor collection --help)"
    )


# rappor collection new


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
    parser.add_argument("--output", metavar="FILE", help="file to write (default: standard output)")
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


# rappor collection lint


def _add_lint(actions: Any) -> Any:
    parser = actions.add_parser(
        "lint",
        help="check definitions for privacy mistakes",
        description="Check definitions, all files together: what is wrong, why, and how to fix it. "
        "Exit code 1 means that there is an error.",
        epilog="Example: rappor collection lint collections/",
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", metavar="FILE|FOLDER", nargs="+", help="definitions, or folders of definitions"
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.set_defaults(run=run_lint)
    return parser


def run_lint(args: argparse.Namespace) -> int:
    """Check all files together."""
    files = [file for path in args.paths for file in _definitions(path)]
    if not files:
        raise ParamsError(f"no *.toml files in {', '.join(args.paths)}; check the path")
    collections, findings = _read_all(files)
    findings += lint_all(collections)
    wrong = len(errors(findings))
    warnings = len(findings) - wrong
    if args.json:
        say_json(
            {
                "files": len(files),
                "errors": wrong,
                "warnings": warnings,
                "findings": [asdict(finding) for finding in findings],
            }
        )
    else:
        for line in finding_lines(findings):
            say(line)
        say(f"{plain(len(files), 'definition')}: {plain(wrong, 'error')}, "
            f"{plain(warnings, 'warning')}")  # fmt: skip
    return 1 if wrong or (args.strict and warnings) else 0


def _definitions(path: str) -> list[Path]:
    place = path_of(path)
    return definition_files(place) if place.is_dir() else [place]


def _read_all(files: list[Path]) -> tuple[list[Collection], list[LintFinding]]:
    """The collections that can be read, and findings for those that cannot."""
    collections: list[Collection] = []
    findings: list[LintFinding] = []
    for file in files:
        if not file.exists():
            raise ParamsError(f"{file}: no such file or folder; check the path")
        try:
            collection = Collection.read(file)
            Registry([*collections, collection])  # refuses one version twice
            collections.append(collection)
            findings += lint_text(collection, formats.read_text(file))
        except ParamsError as error:
            findings.append(
                LintFinding(
                    "invalid-definition",
                    "error",
                    "",
                    str(error).removeprefix(f"{file}: "),
                    "Correct the named key; docs/collections.md explains every field.",
                    file.name,
                )
            )
    return collections, findings


def finding_lines(findings: Iterable[LintFinding]) -> list[str]:
    """Findings, each with a way to fix it."""
    lines: list[str] = []
    for finding in findings:
        code = f"{finding.code} ({finding.source})" if finding.source else finding.code
        lines += _wrapped(f"{finding.severity}: {finding.collection}: {code}: {finding.text}", "")
        lines += _wrapped(f"fix: {finding.way_out}")
    return lines


# rappor collection diff


def _add_diff(actions: Any) -> Any:
    parser = actions.add_parser(
        "diff",
        help="show what a change means, and its cost in ε",
        description="Compare two definitions of one collection. Exit code 1 means that the new "
        "one may not replace the old one.",
        epilog="Example: rappor collection diff homepage.toml homepage-new.toml",
        allow_abbrev=False,
    )
    parser.add_argument("old", metavar="OLD", help="the definition in use")
    parser.add_argument("new", metavar="NEW", help="the new definition")
    parser.set_defaults(run=run_diff)
    return parser


def run_diff(args: argparse.Namespace) -> int:
    """Compare two definitions."""
    difference = diff(Collection.read(args.old), Collection.read(args.new))
    if args.json:
        changes = [
            {"field": change.field, "needs": change.needs, "why": change.why}
            for change in difference.changes
        ]
        say_json(
            {
                "allowed": difference.allowed,
                "refusal": difference.refusal,
                "cost": difference.cost,
                "same_memo": difference.same_memo,
                "epsilon_before": difference.epsilon_before,
                "epsilon_after": difference.epsilon_after,
                "changes": changes,
            }
        )
    else:
        for line in difference_lines(difference):
            say(line)
    return 0 if difference.allowed else 1


def difference_lines(difference: DefinitionDifference) -> list[str]:
    """A difference: the changes, their cost, the verdict."""
    lines = []
    for change in difference.changes:
        lines += _wrapped(f"{change.field}: {change.needs}: {change.why}", "")
        lines += _wrapped(f"{_brief(change.before)} → {_brief(change.after)}")
    if not difference.changes:
        lines.append("nothing changed, except perhaps the version")
    lines += _wrapped(f"cost: {difference.cost}", "")
    if any(change.needs == "review" for change in difference.changes):
        lines.append("review: another person should approve this change before it is used")
    lines += _wrapped("allowed" if difference.allowed else f"refused: {difference.refusal}", "")
    return lines


def _brief(value: Any) -> str:
    text = str(value) if value not in (None, "", (), {}) else "(none)"
    return text if len(text) <= 200 else text[:197] + "..."


# rappor collection show


def _add_show(actions: Any) -> Any:
    parser = actions.add_parser(
        "show",
        help="explain a definition: what is collected, sent and kept, and ε",
        description="Explain a definition: what is collected, what leaves the client, what is "
        "kept, and ε.",
        epilog="Example: rappor collection show homepage.toml",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a definition")
    parser.set_defaults(run=run_show)
    return parser


def run_show(args: argparse.Namespace) -> int:
    """Show a definition."""
    collection = Collection.read(args.file)
    if args.json:
        say_json(facts_of(collection))
    else:
        for line in page(collection):
            say(line)
    return 0


def facts_of(collection: Collection) -> dict[str, Any]:
    """A collection as JSON: its fields, and the numbers that follow from them."""
    facts: dict[str, Any] = {}
    for name in collection.__slots__:
        value = getattr(collection, name)
        facts[name] = str(value) if name == "expires" and value is not None else value
    facts["params"] = collection.params.to_dict()
    if collection.ranges is not None:
        facts["ranges"] = {
            "edges": [str(edge) for edge in collection.ranges.edges],
            "labels": list(collection.ranges.labels),
        }
    facts["dimensions"] = {name: list(values) for name, values in collection.dimensions.items()}
    facts["schedule"] = [{"from": first, "p": p, "q": q} for first, p, q in collection.schedule]
    facts["memo_digest"] = collection.memo_digest
    facts["params_digest"] = collection.params.digest
    facts["summary"] = asdict(summary(collection))
    return facts


def page(collection: Collection) -> list[str]:
    """What is collected, what leaves the client, what is kept, and ε, as text."""
    figures = summary(collection)
    lines = [f"{collection.name}, version {collection.version}"]
    lines += _wrapped(collection.description or "(no description)", "")
    lines += ["", "What is collected"]
    lines += _wrapped(_kind_sentence(collection))
    lines += _wrapped(_who_sentence(collection))
    lines += ["", "What leaves the client"]
    for text in _leaving(collection, figures):
        lines += _wrapped(text)
    lines += ["", "What is kept"]
    lines += _wrapped(_kept(collection))
    lines += ["", "Privacy loss ε of one client, rounded up"]
    lines += [f"  {line}" for line in table(_epsilon_rows(collection, figures))]
    lines += ["", *_wrapped(_epsilon_note(collection), "")]
    return lines


def _kind_sentence(collection: Collection) -> str:
    params = collection.params
    text = f"Kind {collection.kind}: {KINDS[collection.kind]}."
    if collection.categories is not None:
        listed = ", ".join(collection.categories[:8])
        more = ", ..." if len(collection.categories) > 8 else ""
        text += f" {len(collection.categories)} categories: {listed}{more}."
    if collection.ranges is not None:
        text += f" {collection.ranges.count} ranges: {'; '.join(collection.ranges.labels[:8])}."
    numbers = ", ".join(f"{name}={value}" for name, value in params.to_dict().items())
    return f"{text} {numbers}; dialect {collection.dialect}."


def _who_sentence(collection: Collection) -> str:
    reviews = ", ".join(collection.reviews) or "none named"
    ends = f"ends on {collection.expires}" if collection.expires else "has no end"
    return (
        f"Owner: {collection.owner or 'nobody'}. Sensitivity: {collection.sensitivity}. "
        f"Reviews: {reviews}. It {ends}."
    )


def _leaving(collection: Collection, figures: Summary) -> list[str]:
    params = collection.params
    often = f"at most {plain(collection.reports_per_period, 'report')} a {collection.period}"
    if collection.one_time:
        often = "one report in total"
    sentences = [
        f"{plain(params.k, 'randomized bit')} ({plain(figures.bytes_per_report, 'byte')}) and the "
        f"client's cohort, one of {params.m}; {often}.",
        f"The name of the collection, its version and the {collection.period} (UTC).",
    ]
    if collection.dimensions:
        declared = "; ".join(
            f"{name} ({', '.join(values)} or other)"
            for name, values in sorted(collection.dimensions.items())
        )
        sentences.append(f"In clear, outside ε: {declared}.")
    if collection.null_reports:
        sentences.append(
            "A client without a value sends a null report, so that silence tells nothing."
        )
    sentences.append("Never the value, its filter, the secret, an id, an address or a time of day.")
    return sentences


def _kept(collection: Collection) -> str:
    text = f"Counts for each {collection.period}, cell and cohort."
    if collection.keep_reports_days:
        text += f" Single reports for {plain(collection.keep_reports_days, 'day')}."
    else:
        text += " No single reports."
    if collection.expires:
        if collection.on_expiry == "keep-counts":
            return f"{text} Single reports are deleted on {collection.expires}; counts stay."
        return f"{text} Everything is deleted on {collection.expires}."
    return f"{text} No date of deletion is set."


def _epsilon_rows(collection: Collection, figures: Summary) -> list[tuple[str, str]]:
    ever = "all reports on one unchanged value"
    if collection.budget:
        ever = f"a report in every {collection.period}, without limit"
    return [
        ("one report", up(figures.epsilon_report)),
        (f"all reports of one {collection.period}, one value", up(figures.epsilon_period)),
        (ever, up(figures.epsilon_value)),
        ("all reports together: the client stops here", up(figures.epsilon_cap)),
    ]


def _epsilon_note(collection: Collection) -> str:
    if collection.one_time:
        return "ε compares any two values; the client reports once and never again."
    if collection.budget:
        return "ε compares any two sequences of values; each period spends its own share."
    text = "ε compares any two values. "
    if collection.group:
        text += f"Collections of group {collection.group} share a subject: their ε adds up. "
    return text + "It does not hide that a value changes, or when."


# Words and lines


def plain(number: int, noun: str) -> str:
    """A count with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent or "  ", break_long_words=False
    )
