"""`rappor serve`: the collector as a supervised process, restarted when it fails."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from rappor.cli.collect import add_options, check_options, options_again

_EXAMPLE = """example:
  rappor serve --data data --collections collections --port 8765

The parent does nothing but watch: a process that ends with an error is started again, at first at
once, then after growing pauses. SIGTERM stops all of them, SIGHUP has them read their files again.
docs/operate.md is the operator's guide."""


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "serve",
        help="run the collector, and restart it when it fails",
        description="Run the collector as a process of its own and keep it running.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Supervise until stopped."""
    check_options(args)
    from rappor.collector import log
    from rappor.collector.supervise import Child, Supervisor

    log.set_up(args.log_level)
    collect = (sys.executable, "-m", "rappor", "collect", *options_again(args))
    return Supervisor([Child("collector", collect)]).run()
