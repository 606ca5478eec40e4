"""`rappor collection new|lint|diff|show|export|retire`: the life of a definition."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rappor import formats
from rappor.cli import collection_export, collection_new, retire
from rappor.cli.arguments import UsageError
from rappor.cli.collection_text import facts_of, finding_lines, page, plain, wrapped
from rappor.cli.output import say, say_json
from rappor.cli.paths import path_of
from rappor.collection import (
    Collection,
    DefinitionDifference,
    LintFinding,
    Registry,
    diff,
    lint_all,
)
from rappor.collection.findings import errors
from rappor.collection.lint import lint_text
from rappor.collection.registry import definition_files
from rappor.errors import ParamsError
from rappor.privacy.rounding import up


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb and its actions."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "collection",
        help="write, check, compare, show, export and end collections (new, lint, diff, show, "
        "export, retire)",
        description="A collection is defined in one TOML file: what clients report, who collects "
        "it, for how long, and at what cost in ε. docs/collections.md explains every field.",
        epilog="Example: rappor collection new homepage --preset windows --output homepage.toml; "
        "rappor collection lint homepage.toml",
        allow_abbrev=False,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    for add in (
        collection_new.add_new,
        _add_lint,
        _add_diff,
        _add_show,
        collection_export.add_export,
        retire.add_retire,
    ):
        action: argparse.ArgumentParser = add(actions)
        if add is not collection_export.add_export:  # which prints JSON by itself
            action.add_argument("--json", action="store_true", help="print JSON")
        action.add_argument(
            "--debug", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
        action.set_defaults(parser=action)
    parser.set_defaults(run=_no_action)
    return parser


def _no_action(_: argparse.Namespace) -> int:
    raise UsageError(
        "give an action: new, lint, diff, show, export or retire (see: rappor collection --help)"
    )


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
        lines += wrapped(f"{change.field}: {change.needs}: {change.why}", "")
        lines += wrapped(
            f"{_brief(change.field, change.before)} → {_brief(change.field, change.after)}"
        )
    if not difference.changes:
        lines.append("nothing changed, except perhaps the version")
    lines += wrapped(f"cost: {difference.cost}", "")
    if any(change.needs == "review" for change in difference.changes):
        lines.append("review: another person should approve this change before it is used")
    lines += wrapped("allowed" if difference.allowed else f"refused: {difference.refusal}", "")
    return lines


def _brief(field: str, value: Any) -> str:
    if field == "max_epsilon":
        return up(value)
    text = str(value) if value not in (None, "", (), {}) else "(none)"
    return text if len(text) <= 200 else text[:197] + "..."


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
