"""`rappor plan`: find parameters for a goal, with their ε and what they can detect."""

from __future__ import annotations

import argparse
import math
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from rappor.checks import did_you_mean
from rappor.cli.arguments import UsageError, count, need_analysis
from rappor.cli.output import Ticker, note, say, say_json
from rappor.cli.paths import path_of, target_of
from rappor.cli.result_files import replacing
from rappor.errors import ParamsError

if TYPE_CHECKING:
    from rappor.planning import AssociationPlan, Plan, Plans
    from rappor.simulate.populations import Population

SHAPES = ("exponential", "uniform", "zipf")
_ENDINGS = (".svg", ".png", ".html", ".json")
_REPORTS_SHOWN = "7,30,365"


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "plan",
        help="find parameters for a given ε, number of reports and frequency to detect",
        description="Find parameters whose ε is within the limits. The best plan comes first: the "
        "shortest report among those that detect within 1 % of the rarest string. The others are "
        "ordered by the rarest string that they detect. Give two of ε, --reports and --frequency, "
        "and the third is computed; or give all three. The best plan is checked by simulation.",
        epilog="Examples: rappor plan --epsilon-one 1 --epsilon-infinity 4 --reports 1e6 "
        "--candidates 200; rappor plan --epsilon-one 1 --frequency .01; "
        "rappor plan --reports 1e6 --frequency .01 --json",
        allow_abbrev=False,
    )
    goals = parser.add_argument_group("goals: two of ε, reports and frequency, or all three")
    goals.add_argument("--epsilon-one", type=_number, metavar="E", help="maximum ε of one report")
    goals.add_argument(
        "--epsilon-infinity",
        type=_number,
        metavar="E",
        help="maximum ε of all reports on one value (default: 4 times --epsilon-one)",
    )
    goals.add_argument("--one-time", action="store_true", help="each client reports only once")
    goals.add_argument("--reports", type=_number, metavar="N", help="number of reports")
    goals.add_argument(
        "--frequency", type=_number, metavar="X", help="share of reports to detect, such as .01"
    )
    goals.add_argument(
        "--power", type=float, default=0.8, metavar="X", help="chance to detect it (default: 0.8)"
    )
    goals.add_argument(
        "--candidates", type=count, metavar="M", help="number of strings to test (default: 100)"
    )
    goals.add_argument(
        "--alpha", type=float, default=0.05, metavar="X", help="family-wise error (default: 0.05)"
    )
    joint = parser.add_argument_group("an association of two fields, instead of one string")
    joint.add_argument(
        "--associate",
        metavar="RxC",
        help="plan a tuple of two fields with this many values, such as 50x10",
    )
    joint.add_argument(
        "--strength",
        type=_number,
        metavar="X",
        help="share of clients whose first value decides the second (default: 0.1)",
    )
    joint.add_argument(
        "--open",
        choices=("first", "both", "none"),
        help="which fields may hold values that are not listed (default: first)",
    )
    what = parser.add_argument_group("what is collected")
    what.add_argument(
        "--kind", default="string", metavar="KIND", help="string (default), category or boolean"
    )
    what.add_argument(
        "--population",
        default="exponential",
        metavar="SHAPE|FILE",
        help="frequencies to expect: exponential (default), uniform, zipf, or a file with "
        "string,frequency",
    )
    what.add_argument(
        "--n",
        metavar="N,N",
        help=f"numbers of reports to show ε_n for (default: {_REPORTS_SHOWN})",
    )
    what.add_argument(
        "--max-bytes",
        type=count,
        default=128,
        metavar="B",
        help="maximum size of a report (default: 128)",
    )
    what.add_argument(  # the earlier name
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
        help="how values change: fixed (default), slow or fast",
    )
    caution.add_argument(
        "--shared", action="store_true", help="most clients may hold the same value"
    )
    for name, about in (
        ("devices", "clients of one person (default: 1)"),
        ("collections", "collections on the same subject (default: 1)"),
        ("cells", "cells that share the reports: periods times dimensions (default: 1)"),
    ):
        caution.add_argument(f"--{name}", type=count, default=1, metavar="N", help=about)
    parser.add_argument(
        "--check",
        type=_collections,
        default=20,
        metavar="N",
        help="number of simulations that check the best plan (default: 20; 0: none)",
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the trade-off as .svg, .png, .html or .json"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Plan, then print."""
    if args.associate is not None:
        return _associate(args)
    for option in ("strength", "open"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} goes with --associate")
    if args.plot is not None and not args.plot.lower().endswith(_ENDINGS):
        raise UsageError(f"--plot must end in {', '.join(_ENDINGS)}; got {args.plot}")
    if args.plot is not None:  # before the work
        target_of(args.plot)
        if not args.plot.lower().endswith(".json"):
            need_analysis("charts", "vl_convert")
    if args.n is not None and args.one_time:
        raise UsageError(
            "--n is about repeated reports, and with --one-time there are none: leave it out"
        )
    kind = args.kind
    candidates = args.candidates or (1 if kind == "boolean" else 100)
    try:
        shown = tuple(count(part) for part in (args.n or _REPORTS_SHOWN).split(","))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--n: {error}") from None
    need_analysis("plan")
    from rappor.planning import plan
    from rappor.planning.plan_text import describe

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


def _associate(args: argparse.Namespace) -> int:
    """Plan an association, then print."""
    for option in ("frequency", "candidates", "plot", "n"):
        if getattr(args, option) is not None:
            raise UsageError(f"--{option} does not go with --associate: leave it out")
    if args.one_time:
        raise UsageError("--one-time does not go with --associate: leave it out")
    need_analysis("plan")
    from rappor.planning import plan
    from rappor.planning.association_request import DEFAULT_STRENGTH, table_of
    from rappor.planning.plan_text import describe_association

    try:
        table = table_of(args.associate)
    except ParamsError as error:
        raise UsageError(f"--associate: {error}") from None
    with Ticker() as progress:
        found = plan(
            args.epsilon_one,
            args.epsilon_infinity,
            args.reports,
            associate=table,
            strength=DEFAULT_STRENGTH if args.strength is None else args.strength,
            power=args.power,
            alpha=args.alpha,
            open_fields=args.open or "first",
            max_bytes=args.max_bytes,
            check=args.check,
            progress=progress,
        )
    if args.json:
        say_json(_association_document(found))
    else:
        for line in describe_association(found):
            say(line)
    return 0


def _association_document(found: AssociationPlan) -> dict[str, Any]:
    separate = found.separate_reports
    return {
        "table": list(found.table),
        "kind": "tuple",
        "params": found.params.to_dict(),
        "views": [{"fields": list(view.fields), "share": view.share} for view in found.views.views],
        "epsilon_one": found.epsilon_one,
        "epsilon_infinity": found.epsilon_infinity,
        "reports": found.reports,
        "strength": found.strength,
        "power": found.power,
        "detectable_strength": found.detectable,
        "alpha": found.alpha,
        "solved": found.solved,
        "separate_reports": "inf" if math.isinf(separate) else separate,
        "bytes_per_report": found.bytes_per_report,
        "checked": None
        if found.checked is None
        else {
            "found": found.checked.found,
            "collections": found.checked.collections,
            "falls_short": found.falls_short,
        },
    }


def _population(name: str, candidates: int) -> Population:
    """The population with this name, or in this file."""
    from rappor.planning.request import usual_population
    from rappor.simulate.population_files import read_population

    if name in SHAPES:
        return usual_population(name, candidates)
    if not path_of(name).exists():
        hint = did_you_mean(name, SHAPES)
        shapes = ", ".join(SHAPES)
        raise ParamsError(f"--population must be {shapes} or a file; no file {name}{hint}")
    return read_population(name)


def _number(text: str) -> float | int:
    """A number; whole numbers stay whole. Its range is checked later."""
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
        message = f"{text!r} is not a whole number of at least 0"
        raise argparse.ArgumentTypeError(message) from None


# Plans as JSON


def document(found: Plans) -> dict[str, Any]:
    """The plans as JSON."""
    goal, reports, frequency, solved = found.settled
    return {
        "request": {
            "epsilon_one": goal.epsilon_one,
            "epsilon_infinity": goal.epsilon_infinity,
            "reports": reports,
            "frequency": frequency,
            "power": found.request.power,
            "candidates": found.request.candidates,
            "alpha": found.request.alpha,
            "kind": found.request.kind,
            "solved": solved or None,
        },
        "plans": [_plan_document(plan) for plan in found],
        "checked": None
        if found.checked is None
        else {
            "collections": found.checked.collections,
            "holds": found.checked.holds,
            "corrected": found.checked.corrected,
            "power": [
                level._asdict() | {"verdict": level.verdict} for level in found.checked.levels
            ],
        },
    }


def _plan_document(plan: Plan) -> dict[str, Any]:
    return {
        "params": plan.params.to_dict(),
        "kind": plan.kind,
        "epsilon_one": plan.epsilon_one,
        "epsilon_n": plan.epsilon_n,
        "epsilon_infinity": plan.epsilon_infinity,
        "detectable": {
            str(level.power): {"count": level.count, "frequency": level.frequency}
            for level in plan.detectable
        },
        "expected": plan.expected._asdict(),
        "bytes_per_report": plan.bytes_per_report,
        "cohort_size": plan.cohort_size,
        "cautions": [
            {"code": caution.code, "source": caution.source, "text": caution.text}
            for caution in plan.cautions
        ],
    }
