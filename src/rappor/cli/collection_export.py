"""`rappor collection export`: what clients in any language read, and nothing else."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rappor.cli.collection_text import plain
from rappor.cli.output import note
from rappor.cli.paths import new_target
from rappor.cli.result_files import replacing
from rappor.collection import Collection, lint
from rappor.collection.findings import errors

FORMATS = ("json",)


def add_export(actions: Any) -> Any:
    """Add the action."""
    parser = actions.add_parser(
        "export",
        help="write a definition as the JSON that clients read",
        description="Write what a client needs of a definition, as canonical JSON, for the "
        "JavaScript client and for clients in other languages. Owner, reviews, retention and "
        "everything else that clients do not use is left out. docs/clients.md describes the "
        "format.",
        epilog="Example: rappor collection export homepage.toml --format json --output "
        "homepage.json",
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="a definition")
    parser.add_argument(
        "--format", choices=FORMATS, default="json", help="the format (default: json)"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="file to write (default, or -: standard output)"
    )
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.set_defaults(run=run_export)
    return parser


def run_export(args: argparse.Namespace) -> int:
    """Write a definition for clients; findings of lint that forbid collecting are named."""
    collection = Collection.read(args.file)
    data = collection.to_client_json().encode() + b"\n"
    if args.output in (None, "-"):
        sys.stdout.flush()
        sys.stdout.buffer.write(data)  # UTF-8, whatever the terminal's encoding
    else:
        new_target(args.output, force=args.force)
        with replacing(args.output) as path:
            path.write_bytes(data)
        note(f"wrote {args.output}")
    wrong = errors(lint(collection))
    if wrong:
        codes = ", ".join(finding.code for finding in wrong)
        note(
            f"lint finds {plain(len(wrong), 'error')} ({codes}): do not release this to clients; "
            f"see rappor collection lint {args.file}"
        )
    return 0
