"""`rappor attack`: what an attacker learns, computed exactly and simulated (paper §6)."""

from __future__ import annotations

import argparse
import importlib.util
import textwrap
from typing import TYPE_CHECKING, Any

from rappor.checks import did_you_mean
from rappor.cli.arguments import UsageError, add_params, count, params_from
from rappor.cli.output import Ticker, paint, say, say_json, table
from rappor.cli.paths import path_of
from rappor.errors import MissingExtraError
from rappor.formats import parse_number
from rappor.privacy.rounding import up

if TYPE_CHECKING:
    from rappor.attack import AttackResult, Bound
    from rappor.mechanism.views import Views

EVERY = "all"
_WIDTH = 96
_NO_BREAK = "\u00a0"
_SETTINGS = ("reports", "clients", "secrets", "frequency", "forged", "trials", "seed")


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "attack",
        help="show what an attacker learns: exact numbers and a simulation",
        description="Run an attack on a set of parameters and show what the attacker sees and "
        "does, how well the attack works (exactly and in a simulation), the ε that limits it, and "
        "what it means. Without a name, list the attacks.",
        epilog="Examples: rappor attack window --preset windows --reports 7; "
        "rappor attack all --collection collections/homepage.toml; "
        "rappor attack linkage --clients 400 --reports 14; rappor attack all --json",
        allow_abbrev=False,
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help=f"an attack, or {EVERY}; see --list"
    )
    parser.add_argument("--list", action="store_true", help="list the attacks and their settings")
    add_params(parser, default="windows", definition=True)
    group = parser.add_argument_group("settings: each attack takes some of them")
    group.add_argument(
        "--reports", type=count, metavar="N", help="number of reports, on one value or in total"
    )
    group.add_argument("--clients", type=count, metavar="N", help="clients in the attacked group")
    group.add_argument(
        "--secrets", type=count, metavar="N", help="secrets or devices of one person"
    )
    group.add_argument("--frequency", metavar="X", help="share of clients that hold the value")
    group.add_argument("--forged", metavar="X", help="share of reports that are forged")
    group.add_argument("--trials", type=count, metavar="T", help="simulated trials")
    group.add_argument(
        "--seed", type=_seed, metavar="N", help="seed of the simulation (default: 0)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """List the attacks, or run one or all."""
    if any(importlib.util.find_spec(package) is None for package in ("numpy", "scipy")):
        raise MissingExtraError("attack", "analysis")
    from rappor.attack import ATTACKS
    from rappor.attack import run as run_attack

    if args.list or args.name is None:
        _list(args.json)
        return 0
    if args.name != EVERY and args.name not in ATTACKS:
        hint = did_you_mean(args.name, [*ATTACKS, EVERY])
        raise UsageError(f"unknown attack {args.name[:60]!r}{hint}; see: rappor attack --list")
    params, _ = params_from(args)
    views = _views(args)
    given = _settings(args)
    names = list(ATTACKS) if args.name == EVERY else [args.name]
    findings = []
    with Ticker() as tick:
        for name in names:
            tick(f"attack {name} ...")
            taken = {key: value for key, value in given.items() if key in ATTACKS[name].settings}
            if args.name != EVERY and len(taken) < len(given):
                _refuse(name, [key for key in given if key not in taken], ATTACKS[name].settings)
            findings.append(run_attack(name, params, views=views, **taken))
    if args.json:
        documents = [finding.to_dict() for finding in findings]
        say_json({"attacks": documents} if args.name == EVERY else documents[0])
        return 0
    for number, finding in enumerate(findings):
        for line in ([""] * 2 if number else []) + describe(finding):
            say(line)
    return 0


def _views(args: argparse.Namespace) -> Views | None:
    """The views of the definition that was given, if it is of kind tuple."""
    if args.definition is None:
        return None
    from rappor.collection import Collection

    return Collection.read(path_of(args.definition)).tuple_views


def _seed(text: str) -> int:
    """A whole number of at least 0."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text[:60]!r} is not a whole number of at least 0")
    return int(text)


def _settings(args: argparse.Namespace) -> dict[str, int | float]:
    """The settings on the command line."""
    given = {name: getattr(args, name) for name in _SETTINGS if getattr(args, name) is not None}
    for name in ("frequency", "forged"):
        if name in given:
            given[name] = parse_number(name, given[name])
    return given


def _refuse(name: str, unknown: list[str], settings: Any) -> None:
    listed = ", ".join(f"--{setting}" for setting in settings)
    raise UsageError(f"attack {name} does not take --{unknown[0]}; it takes {listed}")


def _list(as_json: bool) -> None:
    from rappor.attack import ATTACKS

    if as_json:
        say_json(
            {
                "attacks": [
                    {"name": attack.name, "about": attack.about, "settings": dict(attack.settings)}
                    for attack in ATTACKS.values()
                ]
            }
        )
        return
    rows = [
        (attack.name, attack.about, " ".join(f"--{s}" for s in attack.settings if s != "seed"))
        for attack in ATTACKS.values()
    ]
    for line in table(rows, left=3):
        say(line)
    say()
    say(f"rappor attack NAME runs one attack, rappor attack {EVERY} all; --seed N repeats a run.")


def describe(finding: AttackResult) -> list[str]:
    """A finding as lines for a terminal."""
    numbers = ", ".join(f"{name} = {value:g}" for name, value in finding.params.to_dict().items())
    settings = ", ".join(f"{name} {value:,}" for name, value in finding.settings.items())
    lines = [
        paint(f"{finding.name}: {finding.title}", "1"),
        "",
        *_named("sees", finding.sees),
        *_named("does", finding.does),
        *_named("against", numbers),
        *_named("settings", settings),
        "",
        *(f"  {line}" for line in table(_figures(finding))),
    ]
    if finding.table:
        rows = [
            (label, up(value) if "ε" in label else _number(value))
            for label, value in finding.table.items()
        ]
        lines += ["", *(f"  {line}" for line in table(rows))]
    if finding.bound is not None:
        lines += ["", *_named("bound", _limit(finding.bound))]
    lines += ["", *_wrapped(f"In a sentence: {finding.meaning}")]
    return lines


def _named(name: str, text: str) -> list[str]:
    start = f"  {name:<9} "
    return _wrapped(text, start)


def _wrapped(text: str, start: str = "") -> list[str]:
    """Lines that keep a percent sign with its number."""
    lines = textwrap.wrap(
        text.replace(" %", f"{_NO_BREAK}%"),
        _WIDTH,
        initial_indent=start,
        subsequent_indent=" " * len(start),
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def _figures(finding: AttackResult) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("", "exact", "simulated")]
    for figure in finding.figures:
        exact = _number(figure.exact)
        if figure.exact_error:
            exact += f" ± {figure.exact_error:.2g}"
        simulated = "too rare to simulate"
        if figure.simulated is not None and figure.std_error is not None:
            simulated = f"{_number(figure.simulated)} ± {figure.std_error:.2g}"
        rows.append((figure.label, exact, simulated))
    return rows


def _limit(bound: Bound) -> str:
    text = f"{bound.symbol} = {up(bound.epsilon)}"
    if bound.figure is None:
        return f"{text} limits what is learnt about the values, not this number"
    side = "at least" if bound.least else "at most"
    return f"{text}: {side} {_number(bound.figure)}, for any rule of the attacker"


def _number(value: float) -> str:
    """Four decimals, more if they were all 0; a number below 1 is never shown as 1."""
    if 0.99995 <= value < 1:
        return f"1 - {1 - value:.1g}"
    if value == 0 or 1e-4 <= abs(value) < 1e5:
        return f"{value:.4f}" if abs(value) < 100 else f"{value:.1f}"
    return f"{value:.3g}"
