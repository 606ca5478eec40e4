"""`rappor demo`: the whole system in a minute: a crowd, a server, the results, the dashboard."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, count, port
from rappor.cli.output import note, say, say_json
from rappor.errors import MissingExtraError, RapporError

if TYPE_CHECKING:
    from rappor.demo.folder import DemoFolder
    from rappor.demo.interrupts import Interrupts
    from rappor.demo.server import DemoServer

REPORTS, LEAST_REPORTS, MOST_REPORTS = 1_000_000, 1_000, 100_000_000
SEED = 1
_NEEDED = (  # by the collector, by decoding, by the dashboard
    *("httptools", "uvicorn"),
    *("numpy", "scipy"),
    *("jinja2", "pyarrow", "python_multipart", "starlette", "vl_convert"),
)
_TICK_SECONDS = 0.2
_ABOUT = """\
Starts the real server on this machine, has a simulated crowd report its
browsers' homepages, decodes them, and sets what was found beside the truth.
On a terminal it then serves the dashboard until Ctrl-C."""
_EXAMPLE = """examples:
  rappor demo
  rappor demo --no-serve --json
  rappor demo --keep demo --reports 2e6

The people are simulated; everything else is what an application and an
operator run. The noise is new in each run and has no seed. docs/demo.md tells
what happens, step by step."""


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "demo",
        help="see the whole system at work in a minute, with a dashboard to click through",
        description=_ABOUT,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--reports",
        type=count,
        metavar="N",
        help=f"how many reports are sent, about (default: {REPORTS:,})",
    )
    parser.add_argument(
        "--seed", type=count, metavar="N", help=f"of the population (default: {SEED})"
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep everything in this folder, which must be new or empty"
    )
    parser.add_argument("--no-serve", action="store_true", help="end after the results")
    parser.add_argument(
        "--port", type=port, metavar="N", help="the collector's port (default: a free one)"
    )
    parser.add_argument(
        "--dashboard-port", type=port, metavar="N", help="the dashboard's (default: a free one)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, and end")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the demo, and serve where someone can look."""
    _check(args)
    if any(find_spec(package) is None for package in _NEEDED):
        raise MissingExtraError("demo", "analysis,server")
    from rappor.demo.interrupts import Interrupts

    with Interrupts() as interrupts:
        try:
            return _run(args, interrupts)
        except RapporError:
            interrupts.check()  # what fails because it was interrupted is not an error
            raise


def _check(args: argparse.Namespace) -> None:
    if args.reports is not None and not LEAST_REPORTS <= args.reports <= MOST_REPORTS:
        raise UsageError(
            f"--reports goes from {LEAST_REPORTS:,} to {MOST_REPORTS:,}, got {args.reports:,}"
        )
    if args.keep is not None:
        folder = Path(args.keep).expanduser()
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(f"--keep {args.keep}: there is something already; name a new folder")


def _run(args: argparse.Namespace, interrupts: Interrupts) -> int:
    from rappor.cli import demo_text
    from rappor.cli.demo_progress import DemoProgress
    from rappor.demo import run as demo
    from rappor.demo.folder import place
    from rappor.demo.population import DemoPopulation
    from rappor.demo.server import DemoServer

    reports, seed = args.reports or REPORTS, args.seed or SEED
    population, today = DemoPopulation.for_reports(reports, seed), datetime.now(UTC).date()
    keep = None if args.keep is None else Path(args.keep).expanduser()
    with ExitStack() as started:
        with interrupts.held():
            where = started.enter_context(place(keep))
        collections = demo.prepare(where, population, today)
        if not args.json:
            demo_text.introduce(population, collections[0])
        progress = started.enter_context(DemoProgress())
        progress("starting the server", 0, 0)
        with interrupts.held():
            ports = (args.port or 0, args.dashboard_port or 0)
            server = started.enter_context(DemoServer(where, *ports))
        server.wait(server.port)
        outcome = demo.collect(where, server, collections, population, today, progress, interrupts)
        progress.close()
        if keep is not None:
            demo.write_truth(where, outcome.truth)
        if args.json:
            say_json(demo_text.document(outcome))
            return 0
        for line in demo_text.lines(outcome):
            say(line)
        if sys.stdout.isatty() and not args.no_serve:
            _serve(server, where, interrupts)
        if keep is not None:
            for line in demo_text.again(where):
                note(line)
    return 0


def _serve(server: DemoServer, where: DemoFolder, interrupts: Interrupts) -> None:
    """Until Ctrl-C: the dashboard, with a link that opens it once."""
    from rappor.cli import demo_text
    from rappor.demo.login import MINUTES, link

    server.wait(server.dashboard_port)
    for line in demo_text.invite(link(where, server.dashboard_url), MINUTES):
        say(line)
    sys.stdout.flush()
    try:
        while True:
            interrupts.check()
            server.check()
            time.sleep(_TICK_SECONDS)
    except KeyboardInterrupt:
        note("\nstopping the server")
