"""`rappor dashboard`: serve the web pages of a data folder."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any

from rappor.cli.arguments import port
from rappor.cli.paths import existing_folder
from rappor.cli.store_options import add_store, link_store
from rappor.errors import MissingExtraError
from rappor.host import check_server_system

DEFAULT_PORT = 8766
_EXAMPLE = """examples:
  rappor dashboard --data data --collections collections
  rappor access link ada --role analyst --data data

Run the second one in another terminal: it prints a link that logs in once. `rappor serve` runs
collector and dashboard together. docs/dashboard.md explains each page."""


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "dashboard",
        help="serve the web pages of a data folder: results, trends, diagnostics, ingest",
        description="Serve the web pages of a data folder, on this machine only by default.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--data", required=True, metavar="DIR", help="the data folder")
    add_store(parser)
    parser.add_argument(
        "--collections", metavar="DIR", help="the folder of collection files and candidate lists"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s)"
    )
    parser.add_argument(
        "--port",
        type=port,
        default=DEFAULT_PORT,
        metavar="N",
        help="port; 0 means any free one (default: %(default)s)",
    )
    add_options(parser)
    parser.add_argument(
        "--collector", metavar="URL", help="address of the collector, for the page Ingest"
    )
    parser.add_argument(
        "--log-level",
        default="info",
        choices=("debug", "info", "warning", "error"),
        help="least severe messages to log (default: %(default)s)",
    )
    parser.set_defaults(run=run)
    return parser


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `dashboard` and `serve` share."""
    parser.add_argument(
        "--url",
        metavar="URL",
        help="public address of the dashboard, if it is behind an HTTPS proxy",
    )
    parser.add_argument(
        "--simulated",
        action="store_true",
        help="say on every page of the dashboard that the data is simulated",
    )


def run(args: argparse.Namespace) -> int:
    """Serve until stopped."""
    check_server_system()
    check_packages()
    from rappor.dashboard import process
    from rappor.dashboard.settings import DashboardSettings

    if args.store is not None:
        link_store(args)
    data = existing_folder(args.data, "data folder")
    definitions = args.collections
    settings = DashboardSettings(
        data=data,
        collections=definitions and existing_folder(definitions, "folder of collections"),
        host=args.host,
        port=args.port,
        collector=args.collector,
        url=args.url,
        simulated=args.simulated,
    )
    return process.run(settings, args.log_level)


def check_packages() -> None:
    """Raise MissingExtraError if a package that the pages need is missing."""
    for package, extra in {
        "starlette": "server",
        "jinja2": "server",
        "uvicorn": "server",
        "python_multipart": "server",
        "numpy": "analysis",
        "scipy": "analysis",
        "pyarrow": "analysis",
        "vl_convert": "analysis",
    }.items():
        if find_spec(package) is None:
            raise MissingExtraError("dashboard", extra)
