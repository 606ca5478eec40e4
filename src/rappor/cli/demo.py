"""`rappor demo`: the whole system in a minute: a crowd, a server, results, a dashboard."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from rappor.cli.arguments import UsageError, count, port
from rappor.cli.output import note, say, say_json
from rappor.cli.paths import output_folder, path_of
from rappor.errors import MissingExtraError, ParamsError, RapporError
from rappor.host import check_server_system

if TYPE_CHECKING:
    from rappor.demo.interrupts import Interrupts
    from rappor.demo.server import DemoServer

REPORTS, MIN_REPORTS, MAX_REPORTS = 1_000_000, 1_000, 100_000_000
SEED = 1
_NEEDED = (  # packages of the collector, of decoding, of the dashboard
    *("httptools", "prometheus_client", "uvicorn"),
    *("numpy", "scipy"),
    *("jinja2", "pyarrow", "python_multipart", "starlette", "vl_convert"),
)
_TICK_SECONDS = 0.2
_ABOUT = """\
Start the real server on this machine, let a simulated crowd report the
homepages of its browsers, decode them, and compare the results with the truth.
On a terminal, then serve the dashboard until Ctrl-C."""
_EXAMPLE = """examples:
  rappor demo
  rappor demo --no-serve --json
  rappor demo --keep demo --reports 2e6

Only the people are simulated: the rest is what applications and operators run.
The noise is new in each run and has no seed. docs/demo.md explains each step."""


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "demo",
        help="run the whole system with a simulated crowd, and open its dashboard",
        description=_ABOUT,
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--reports",
        type=count,
        metavar="N",
        help=f"approximate number of reports to send (default: {REPORTS:,})",
    )
    parser.add_argument(
        "--seed", type=count, metavar="N", help=f"seed of the simulated people (default: {SEED})"
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep all files in this folder, which must be new or empty"
    )
    parser.add_argument("--no-serve", action="store_true", help="exit after the results")
    parser.add_argument(
        "--port", type=port, metavar="N", help="port of the collector (default: free)"
    )
    parser.add_argument(
        "--dashboard-port",
        type=port,
        metavar="N",
        help="port of the dashboard (default: free)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON and exit")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the demo; on a terminal, serve the dashboard afterwards."""
    check_server_system()
    _check(args)
    if any(find_spec(package) is None for package in _NEEDED):
        raise MissingExtraError("demo", "analysis,server")
    from rappor.demo.interrupts import Interrupts

    with Interrupts() as interrupts:
        try:
            return _run(args, interrupts)
        except RapporError:
            interrupts.check()  # a failure caused by Ctrl-C is not an error
            raise


def _check(args: argparse.Namespace) -> None:
    if args.reports is not None and not MIN_REPORTS <= args.reports <= MAX_REPORTS:
        raise UsageError(
            f"--reports must be from {MIN_REPORTS:,} to {MAX_REPORTS:,}, got {args.reports:,}"
        )
    if args.keep is not None:
        folder = output_folder(args.keep)
        if folder.exists() and any(folder.iterdir()):
            raise ParamsError(f"{args.keep}: this folder is not empty; give a new or empty one")


def _run(args: argparse.Namespace, interrupts: Interrupts) -> int:
    from rappor.cli import demo_output
    from rappor.demo import run as demo
    from rappor.demo.folder import demo_folder
    from rappor.demo.population import DemoPopulation
    from rappor.demo.server import DemoServer

    reports, seed = args.reports or REPORTS, args.seed or SEED
    population, today = DemoPopulation.for_reports(reports, seed), datetime.now(UTC).date()
    keep = None if args.keep is None else path_of(args.keep)
    with ExitStack() as started:
        with interrupts.held():
            where = started.enter_context(demo_folder(keep))
        collections = demo.prepare(where, population, today)
        if not args.json:
            demo_output.introduce(population, collections[0])
        progress = started.enter_context(demo_output.DemoProgress())
        progress("starting the server", 0, 0)
        with interrupts.held():
            ports = (args.port or 0, args.dashboard_port or 0)
            server = started.enter_context(DemoServer(where, *ports))
        server.wait(server.port)
        outcome = demo.collect(where, server, collections, population, today, progress, interrupts)
        progress.close()
        if keep is not None:
            server.wait(server.dashboard_port)  # it has saved the list of candidates by then
            demo.write_truth(where, outcome.truth, outcome.results.period)
        if args.json:
            say_json(demo_output.document(outcome))
            return 0
        for line in demo_output.lines(outcome):
            say(line)
        if sys.stdout.isatty() and not args.no_serve:
            _serve(server, outcome.results.reports, interrupts)
        if keep is not None:
            for line in demo_output.again(where, outcome.periods[0]):
                note(line)
    return 0


def _serve(server: DemoServer, reports: dict[str, int], interrupts: Interrupts) -> None:
    """Print links to the dashboard, and serve it until Ctrl-C."""
    from rappor.cli import demo_output

    server.wait(server.dashboard_port)
    server.wait_for_pages(reports)
    for line in demo_output.invite(server.login_links()):
        say(line)
    sys.stdout.flush()
    try:
        while True:
            interrupts.check()
            server.check()
            time.sleep(_TICK_SECONDS)
    except KeyboardInterrupt:
        note("\nstopping the server")
