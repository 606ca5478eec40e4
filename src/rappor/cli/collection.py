"""`rappor collection new|lint|diff|show`: definitions of what is collected, written and judged."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rappor import formats
from rappor.cli.arguments import UsageError
from rappor.cli.collection_new import add_new
from rappor.cli.collection_text import difference_lines, facts_of, finding_lines, page, plain
from rappor.cli.output import say, say_json
from rappor.collection import Collection, LintFinding, Registry, diff, lint_all
from rappor.collection.lint import errors, renamed
from rappor.collection.registry import definition_files
from rappor.errors import ParamsError


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb and its four actions."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "collection",
        help="write, check, compare and show collections (new, lint, diff, show)",
        description="A collection is one TOML file: what is asked of clients, by whom, how long, "
        "and at what cost in ε. docs/collections.md tells every field.",
        epilog="Example: rappor collection new homepage --preset windows --output homepage.toml; "
        "rappor collection lint homepage.toml",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in (add_new, _add_lint, _add_diff, _add_show):
        action: argparse.ArgumentParser = add(actions)
        action.add_argument("--json", action="store_true", help="print JSON")
        action.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
        action.set_defaults(parser=action)
    parser.set_defaults(run=_no_action)
    return parser


def _no_action(_: argparse.Namespace) -> int:
    raise UsageError("say what to do: new, lint, diff or show (see: rappor collection --help)")


def _add_lint(actions: Any) -> Any:
    parser = actions.add_parser(
        "lint",
        help="the paper's cautions as named errors and warnings",
        description="Judges definitions, all files together: what is wrong, why, and the way out. "
        "Exit code 1 if there is an error.",
        epilog="Example: rappor collection lint collections/",
        allow_abbrev=False,
    )
    parser.add_argument("paths", metavar="FILE|FOLDER", nargs="+", help="definitions")
    parser.add_argument("--strict", action="store_true", help="warnings count as errors")
    parser.set_defaults(run=run_lint)
    return parser


def _add_diff(actions: Any) -> Any:
    parser = actions.add_parser(
        "diff",
        help="what a change means, and what it costs in ε",
        description="Compares two definitions of one collection. Exit code 1 if the new one may "
        "not take the old one's place.",
        epilog="Example: rappor collection diff homepage.toml homepage-new.toml",
        allow_abbrev=False,
    )
    parser.add_argument("old", metavar="OLD", help="the definition in use")
    parser.add_argument("new", metavar="NEW", help="the definition to be")
    parser.set_defaults(run=run_diff)
    return parser


def _add_show(actions: Any) -> Any:
    parser = actions.add_parser(
        "show",
        help="a page for people: what is collected, ε, what leaves, what is kept",
        description="Shows a definition as a page: what is collected, what leaves the client, what "
        "is kept, and ε.",
        epilog="Example: rappor collection show homepage.toml",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a definition")
    parser.set_defaults(run=run_show)
    return parser


def run_lint(args: argparse.Namespace) -> int:
    """Judge files together."""
    files = [file for path in args.paths for file in _definitions(path)]
    if not files:
        raise ParamsError(f"no *.toml files in {', '.join(args.paths)}")
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
                "findings": [asdict(each) for each in findings],
            }
        )
    else:
        for line in finding_lines(findings):
            say(line)
        say(f"{plain(len(files), 'definition')}: {plain(wrong, 'error')}, "
            f"{plain(warnings, 'warning')}")  # fmt: skip
    return 1 if wrong or (args.strict and warnings) else 0


def _definitions(path: str) -> list[Path]:
    place = Path(path).expanduser()
    return definition_files(place) if place.is_dir() else [place]


def _read_all(files: list[Path]) -> tuple[list[Collection], list[LintFinding]]:
    """The collections that can be read, and findings for those that cannot."""
    found: list[Collection] = []
    findings: list[LintFinding] = []
    for file in files:
        if not file.exists():
            raise ParamsError(f"{file}: no such file")
        try:
            made = Collection.read(file)
            Registry([*found, made])  # refuses one version twice
            found.append(made)
            findings += renamed(made, formats.read_text(file))
        except ParamsError as error:
            findings.append(
                LintFinding(
                    "invalid-definition",
                    "error",
                    "",
                    str(error).removeprefix(f"{file}: "),
                    "Correct the named key; docs/collections.md tells every field.",
                    file.name,
                )
            )
    return found, findings


def run_diff(args: argparse.Namespace) -> int:
    """Compare two definitions."""
    found = diff(Collection.read(args.old), Collection.read(args.new))
    if args.json:
        changes = [
            {"field": each.field, "needs": each.needs, "why": each.why} for each in found.changes
        ]
        say_json(
            {
                "allowed": found.allowed,
                "refusal": found.refusal,
                "cost": found.cost,
                "same_memo": found.same_memo,
                "epsilon_before": found.epsilon_before,
                "epsilon_after": found.epsilon_after,
                "changes": changes,
            }
        )
    else:
        for line in difference_lines(found):
            say(line)
    return 0 if found.allowed else 1


def run_show(args: argparse.Namespace) -> int:
    """Show a definition."""
    collection = Collection.read(args.file)
    if args.json:
        say_json(facts_of(collection))
    else:
        for line in page(collection):
            say(line)
    return 0
