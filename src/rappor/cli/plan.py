"""`rappor plan`: parameters from goals, with what each costs and what it can detect."""

from __future__ import annotations

import argparse
import os
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from rappor.checks import did_you_mean
from rappor.cli.arguments import UsageError, count, need_analysis
from rappor.cli.output import Ticker, note, say, say_json
from rappor.cli.plan_table import describe, document
from rappor.cli.result_files import replacing, target_of
from rappor.errors import ParamsError

if TYPE_CHECKING:
    from rappor.simulate.populations import Population

SHAPES = ("exponential", "uniform", "zipf")
_ENDINGS = (".svg", ".png", ".html", ".json")


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "plan",
        help="choose parameters: from ε, reports and what must be detected",
        description="Finds parameters whose ε is never above the request, ranked by the rarest "
        "string that they detect. Give two of ε, --reports and --frequency, and the third is "
        "solved for; or all three. The best plan is checked by simulation.",
        epilog="Examples: rappor plan --epsilon-one 1 --epsilon-infinity 4 --reports 1e6 "
        "--candidates 200; rappor plan --epsilon-one 1 --frequency .01; "
        "rappor plan --reports 1e6 --frequency .01 --json",
        allow_abbrev=False,
    )
    goals = parser.add_argument_group("goals: two of ε, reports and frequency, or all three")
    goals.add_argument("--epsilon-one", type=_number, metavar="E", help="ε of one report, at most")
    goals.add_argument(
        "--epsilon-infinity",
        type=_number,
        metavar="E",
        help="ε of all reports on one value, at most (default: 4 times --epsilon-one)",
    )
    goals.add_argument("--one-time", action="store_true", help="each client reports once, ever")
    goals.add_argument("--reports", type=_number, metavar="N", help="reports in the collection")
    goals.add_argument(
        "--frequency", type=_number, metavar="X", help="share of reports to detect, such as .01"
    )
    goals.add_argument(
        "--power", type=float, default=0.8, metavar="X", help="with which chance (default: 0.8)"
    )
    goals.add_argument(
        "--candidates", type=count, metavar="M", help="strings to look for (default: 100)"
    )
    goals.add_argument(
        "--alpha", type=float, default=0.05, metavar="X", help="family-wise error (default: 0.05)"
    )
    what = parser.add_argument_group("what is collected")
    what.add_argument(
        "--kind", default="string", metavar="KIND", help="string (default), category or boolean"
    )
    what.add_argument(
        "--population",
        default="exponential",
        metavar="SHAPE",
        help="what strings found are counted in: exponential (default), uniform, zipf, or a file "
        "with string,frequency",
    )
    what.add_argument(
        "--n", metavar="N,N", default="7,30,365", help="reports to show ε_n for (default: 7,30,365)"
    )
    what.add_argument(
        "--max-bytes", type=count, default=128, metavar="B", help="of a report (default: 128)"
    )
    what.add_argument(  # its earlier name
        "--most-bytes", dest="max_bytes", type=count, default=128, help=argparse.SUPPRESS
    )
    caution = parser.add_argument_group("cautions (docs/plan.md)")
    caution.add_argument(
        "--platform", default="device", metavar="P", help="device (default) or web"
    )
    caution.add_argument(
        "--values",
        default="fixed",
        metavar="V",
        help="fixed (default), slow or fast: how they change",
    )
    caution.add_argument(
        "--shared", action="store_true", help="all clients may hold the same value"
    )
    for name, about in (
        ("devices", "clients of one person"),
        ("collections", "collections about the same thing"),
        ("cells", "periods times dimensions"),
    ):
        caution.add_argument(f"--{name}", type=count, default=1, metavar="N", help=about)
    parser.add_argument(
        "--check",
        type=_collections,
        default=20,
        metavar="N",
        help="simulated collections to check the best plan with (default: 20; 0: none)",
    )
    parser.add_argument("--plot", metavar="FILE", help="draw the trade-off (.svg, .png, .html)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Plan, then print."""
    if args.plot is not None and not args.plot.lower().endswith(_ENDINGS):
        raise UsageError(f"--plot writes {', '.join(_ENDINGS)}, got {args.plot}")
    if args.plot is not None:  # before the work
        target_of(args.plot)
        if not args.plot.lower().endswith(".json"):
            need_analysis("charts", "vl_convert")
    kind = args.kind
    candidates = args.candidates or (1 if kind == "boolean" else 100)
    try:
        shown = tuple(count(part) for part in args.n.split(","))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--n: {error}") from None
    need_analysis("plan")
    from rappor.planning import plan

    with Ticker() as progress:
        found = plan(
            args.epsilon_one,
            args.epsilon_infinity,
            args.reports,
            candidates,
            frequency=args.frequency,
            power=args.power,
            alpha=args.alpha,
            kind=kind,
            one_time=args.one_time,
            n=shown,
            population=_population(args.population, candidates),
            max_bytes=args.max_bytes,
            platform=args.platform,
            values=args.values,
            shared=args.shared,
            devices=args.devices,
            collections=args.collections,
            cells=args.cells,
            check=args.check,
            progress=progress,
        )
    if args.plot is not None:
        with replacing(args.plot) as path:
            found.plot().save(path)
        note(f"wrote {args.plot}")
    if args.json:
        say_json(document(found))
    else:
        for line in describe(found):
            say(line)
    return 0


def _population(name: str, candidates: int) -> Population:
    """The population of a name or file."""
    from rappor.planning.request import usual_population
    from rappor.simulate.population_files import read_population

    if name in SHAPES:
        return usual_population(name, candidates)
    if not os.path.exists(os.path.expanduser(name)):
        hint = did_you_mean(name, SHAPES)
        shapes = ", ".join(SHAPES)
        raise ParamsError(f"--population must be {shapes} or a file; no file {name}{hint}")
    return read_population(name)


def _number(text: str) -> float | int:
    """A number as people write it; whole ones stay whole, impossible ones are judged later."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number (1e6 is fine)") from None
    if number.is_nan():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number (1e6 is fine)")
    if number.is_finite() and number == number.to_integral_value() and abs(number) < 10**30:
        return int(number)
    return float(number)


def _collections(text: str) -> int:
    if text == "0":
        return 0
    try:
        return count(text)
    except argparse.ArgumentTypeError:
        message = f"{text!r} is not a whole number from 0 on"
        raise argparse.ArgumentTypeError(message) from None
