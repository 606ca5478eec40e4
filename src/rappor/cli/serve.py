"""`rappor serve`: run collector and dashboard as two processes, and restart them if they fail."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from rappor.cli import dashboard
from rappor.cli.arguments import MAX_PORT, UsageError, count, port
from rappor.cli.collect import add_options, check_options, options_again
from rappor.cli.output import note, say
from rappor.cli.paths import output_folder
from rappor.errors import MissingExtraError
from rappor.host import LOOPBACK, bound, check_server_system, free_port, no_core_dumps

if TYPE_CHECKING:
    from rappor.collector.supervisor import Child

_EXAMPLE = """example:
  rappor serve --data data --collections collections --port 8765 --dashboard-port 8766

  rappor serve --no-dashboard --collections collections --collectors 4 \\
      --store postgresql://rappor_ingest@db.example.org/rappor

The parent only watches: it restarts a process that ends with an error, at first immediately, then
after growing pauses. SIGTERM stops all processes, SIGHUP makes them reload their files. The
dashboard listens only on this machine. docs/operate.md is the operator's guide."""
FIRST_METRICS_PORT = 8770  # of several collectors
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - the address to connect to


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "serve",
        help="run collector and dashboard, and restart them if they fail",
        description="Run the collector and the dashboard as two processes, and keep them running.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.add_argument(
        "--dashboard-port",
        type=port,
        default=dashboard.DEFAULT_PORT,
        metavar="N",
        help="port of the dashboard, on this machine only; 0 means any free one (default: "
        "%(default)s)",
    )
    dashboard.add_options(parser)
    parser.add_argument(
        "--collectors",
        type=count,
        default=1,
        metavar="N",
        help="number of collectors that share the port; more than one needs --store, and then the "
        f"pages of each have a port of their own, from --metrics-port on ({FIRST_METRICS_PORT} if "
        "it is not given) (default: %(default)s)",
    )
    parser.add_argument("--no-dashboard", action="store_true", help="run only the collector")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Supervise until stopped."""
    check_server_system()
    if args.collectors > 1 and args.store is None:
        raise UsageError("--collectors needs --store URL: a data folder has one collector")
    args.share_port = args.share_port or args.collectors > 1
    check_options(args)
    if args.data is None and not args.no_dashboard:
        raise UsageError("the dashboard needs --data DIR for its own files; or give --no-dashboard")
    no_core_dumps()  # for this process and those that it starts
    with_dashboard = not args.no_dashboard and _has_packages()
    from rappor.collector import log
    from rappor.collector.folder_lock import CollectorLock
    from rappor.collector.supervisor import Child, Supervisor

    log.set_up(args.log_level)
    if args.store is None:
        CollectorLock(args.data).close()  # raises StoreError if another process has the folder
    args.port = args.port or free_port(args.host)  # a restarted collector keeps its port
    children = _collectors(args)
    if with_dashboard:
        chosen = args.dashboard_port or free_port(LOOPBACK)
        output_folder(args.data).mkdir(mode=0o700, parents=True, exist_ok=True)
        children.append(Child("dashboard", _command("dashboard", *dashboard_options(args, chosen))))
        say(f"dashboard: {args.url or f'http://{LOOPBACK}:{chosen}'}")
        data = shlex.quote(args.data)
        say(f"log in: rappor access link NAME --role operator --data {data}")
    sys.stdout.flush()
    return Supervisor(children).run()


def _collectors(args: argparse.Namespace) -> list[Child]:
    """The collectors, and a line about each on standard output."""
    from rappor.collector.supervisor import Child

    ports = metrics_ports(args.metrics_port, args.collectors)
    say(f"collector: {collector_address(args)}")
    args.metrics_port = ports[0]  # the dashboard asks the first
    children = []
    for number, metrics_port in enumerate(ports, 1):
        name = "collector" if number == 1 else f"collector-{number}"
        alone = [] if metrics_port is None else ["--metrics-port", str(metrics_port)]
        children.append(Child(name, _command("collect", *options_again(args), *alone)))
        if metrics_port is not None:
            say(f"pages of {name}: {_scheme(args)}://{LOOPBACK}:{metrics_port}")
    return children


def metrics_ports(first: int | None, number: int) -> list[int | None]:
    """The port for the pages of each collector; None if one collector has none of its own.

    They are consecutive, or any free ones if the first is 0.

    >>> metrics_ports(None, 1), metrics_ports(9000, 3)
    ([None], [9000, 9001, 9002])
    """
    if first is None and number == 1:
        return [None]
    if first == 0:
        with ExitStack() as held:  # together, so that no port is given twice
            sockets = [held.enter_context(bound(LOOPBACK, 0)) for _ in range(number)]
            return [int(one.getsockname()[1]) for one in sockets]
    first = FIRST_METRICS_PORT if first is None else first
    if first + number - 1 > MAX_PORT:
        raise UsageError(
            f"--metrics-port {first}: {number} ports from there on end above {MAX_PORT}; name an "
            "earlier one"
        )
    return list(range(first, first + number))


def _has_packages() -> bool:
    """Whether the packages of the dashboard are installed; the collector needs fewer."""
    try:
        dashboard.check_packages()
    except MissingExtraError as error:
        note(f"no dashboard: {error} (--no-dashboard hides this note)")
        return False
    return True


def _command(verb: str, *options: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "rappor", verb, *options)


def dashboard_options(args: argparse.Namespace, number: int) -> list[str]:
    """The dashboard's options as a command line."""
    options = ["--data", args.data, "--collections", args.collections, "--port", str(number)]
    options += ["--log-level", args.log_level]
    if args.collectors == 1:  # otherwise each question would be answered by another collector
        options += ["--collector", pages_address(args)]
    options += [] if args.store is None else ["--store", args.store]
    options += ["--url", args.url] if args.url is not None else []
    return [*options, "--simulated"] if args.simulated else options


def collector_address(args: argparse.Namespace) -> str:
    """The address at which this machine reaches the collector."""
    host = _ANY_ADDRESS.get(args.host, args.host)
    shown = f"[{host}]" if ":" in host else host
    return f"{_scheme(args)}://{shown}:{args.port}"


def pages_address(args: argparse.Namespace) -> str:
    """The address at which this machine reaches the pages of the first collector."""
    if args.metrics_port is None:
        return collector_address(args)
    return f"{_scheme(args)}://{LOOPBACK}:{args.metrics_port}"


def _scheme(args: argparse.Namespace) -> str:
    return "http" if args.tls_cert is None else "https"
