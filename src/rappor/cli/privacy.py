"""`rappor privacy`: the ε of a set of parameters, and what they can detect."""

from __future__ import annotations

import argparse
import math
from typing import Any

from rappor.checks import plural
from rappor.cli.arguments import UsageError, add_kind, add_params, count, params_from
from rappor.cli.output import bar, percent, percent_up, say, say_json, table
from rappor.cli.paths import path_of
from rappor.mechanism import channel
from rappor.mechanism.kinds import HASHED
from rappor.params import Params
from rappor.privacy import (
    candidates_per_pattern,
    deniability,
    detectable,
    epsilon_infinity,
    epsilon_n,
    epsilon_one,
    signal_bits,
)
from rappor.privacy.rounding import up
from rappor.typing import Kind

REPORTS_SHOWN = (1, 2, 5, 10, 30, 100, 1000)
POWERS = (0.5, 0.8, 0.95)


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "privacy",
        help="show ε and detection limits of a set of parameters",
        description="Show p*, q*, deniability, and the ε of one report, of n reports and of any "
        "number of reports by one client on one unchanged value. With --reports and --candidates, "
        "also show what can be detected.",
        epilog="Examples: rappor privacy --preset windows --reports 1e6 --candidates 200; "
        "rappor privacy --collection collections/homepage.toml; "
        "rappor privacy --k 1 --h 1 --m 1 --f .5 --p .5 --q .75 --kind boolean --json",
        allow_abbrev=False,
    )
    add_params(parser, definition=True)
    add_kind(parser)
    parser.add_argument(
        "--n", metavar="N,N", help="numbers of reports to show ε_n for, such as 1,10,1e3"
    )
    parser.add_argument(
        "--reports", type=count, metavar="N", help="number of reports in the collection"
    )
    parser.add_argument("--candidates", type=count, metavar="M", help="number of strings to test")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Compute everything once, then print it."""
    params, preset_kind = params_from(args)
    if (args.reports is None) != (args.candidates is None):
        raise UsageError("--reports and --candidates go together: give both, or neither")
    facts = privacy_facts(
        params, args.kind or preset_kind, _reports_shown(args.n), args.reports, args.candidates
    )
    if args.json:
        say_json(facts)
    else:
        for line in (*describe(facts, params), *_held_to(args.definition)):
            say(line)
    return 0


def _held_to(definition: str | None) -> list[str]:
    """What a client spends under the limits of a collection; nothing without one."""
    if definition is None:
        return []
    from rappor.cli.collection_text import epsilon_rows
    from rappor.collection import Collection
    from rappor.collection.summary import summary

    collection = Collection.read(path_of(definition))
    rows = epsilon_rows(collection, summary(collection))
    return [
        "",
        f"What {collection.name} v{collection.version} lets a client spend, rounded up:",
        "",
        *(f"  {line}" for line in table(rows)),
        "",
        f"What leaves, what is kept and how long: rappor collection show {definition}",
    ]


def privacy_facts(
    params: Params,
    kind: Kind,
    shown: tuple[int, ...] = REPORTS_SHOWN,
    reports: int | None = None,
    candidates: int | None = None,
) -> dict[str, Any]:
    """All numbers of the verb, as one JSON document."""
    p_star, q_star = channel(params)
    facts: dict[str, Any] = {
        "params": params.to_dict(),
        "digest": params.digest,
        "kind": kind,
        "p_star": float(p_star),
        "q_star": float(q_star),
        "epsilon_one": epsilon_one(params, kind),
        "epsilon_n": {str(n): epsilon_n(params, n, kind) for n in shown},
        "epsilon_infinity": epsilon_infinity(params, kind),
        "warnings": _shape_warnings(params, kind),
    }
    fewest, most = signal_bits(params, kind)
    facts["deniability"] = _deniability(params, most)
    if fewest < most:
        facts["deniability"]["one_bit"] = _deniability(params, fewest)
    if reports is not None and candidates is not None:
        hashes = params.h if kind in HASHED else 1
        levels = [detectable(params, reports, candidates, power, hashes=hashes) for power in POWERS]
        facts["detectable"] = {
            "reports": reports,
            "candidates": candidates,
            "alpha": 0.05,
            "power": {
                str(level.power): {"count": level.count, "frequency": level.frequency}
                for level in levels
            },
        }
        if kind in HASHED:
            facts["candidates_per_pattern"] = float(candidates_per_pattern(params, candidates))
    return facts


def _deniability(params: Params, bits: int) -> dict[str, Any]:
    """Deniability of a value that sets this many bits."""
    all_zero, all_replaced = deniability(params, bits)
    return {
        "signal_bits": bits,
        "all_zero": float(all_zero),
        "all_replaced": float(all_replaced),
    }


def describe(facts: dict[str, Any], params: Params) -> list[str]:
    """The document as text."""
    return [
        "  ".join(f"{name} = {value}" for name, value in params.to_dict().items())
        + f"  ({facts['kind']})",
        "",
        f"p* = {facts['p_star']:<10.6g} chance that a reported bit is 1 if the true bit is 0",
        f"q* = {facts['q_star']:<10.6g} chance that a reported bit is 1 if the true bit is 1",
        "",
        "Privacy loss ε, for one client and one unchanged value in this collection, rounded up:",
        "",
        *_epsilon_table(facts),
        "",
        "Other values, other collections and a lost secret add to this: see "
        "docs/theory/composition.md.",
        *_deniability_lines(facts),
        *_detectable_lines(facts),
        *(line for warning in facts["warnings"] for line in ("", f"Note: {warning}.")),
    ]


def _epsilon_table(facts: dict[str, Any]) -> list[str]:
    losses = [(f"{n} report{'s' * (n != '1')}", value) for n, value in facts["epsilon_n"].items()]
    losses.append(("any number  ε∞", facts["epsilon_infinity"]))
    if "1" not in facts["epsilon_n"]:
        losses.insert(0, ("1 report", facts["epsilon_one"]))
    longest = max((value for _, value in losses if value < math.inf), default=1.0)
    rows = [(name, up(value)) for name, value in losses]
    bars = [bar(value / longest) if value < math.inf else bar(1) + "→" for _, value in losses]
    return [f"  {line}  {drawn}" for line, drawn in zip(table(rows), bars, strict=True)]


def _deniability_lines(facts: dict[str, Any]) -> list[str]:
    found = facts["deniability"]
    replaced, zero = percent(found["all_replaced"]), percent(found["all_zero"])
    if facts["kind"] == "bits":
        one = found.get("one_bit", found)
        said = [
            f"Deniability of a value that sets one bit: for {percent(one['all_replaced'])} of "
            f"clients it is permanently random; for {percent(one['all_zero'])},",
            f"it is 0. Of a value that sets all {found['signal_bits']} bits: for {replaced} of "
            f"clients all are random; for {zero}, all are 0.",
            "Neither means that nothing is learnt: ε is the bound.",
        ]
    elif found["signal_bits"] == 1:
        whose = "of clients that hold true" if facts["kind"] == "boolean" else "of clients"
        said = [
            f"Deniability: for {replaced} {whose}, the bit of the value is permanently random; "
            f"for {zero},",
            "it is 0. Neither means that nothing is learnt: ε is the bound.",
        ]
    else:
        said = [
            f"Deniability: for {replaced} of clients, all bits of a value are permanently random; "
            f"for {zero},",
            "all of them are 0. Neither means that nothing is learnt: ε is the bound.",
        ]
    return ["", *said]


def _detectable_lines(facts: dict[str, Any]) -> list[str]:
    if "detectable" not in facts:
        return ["", "Add --reports N --candidates M to see what can be detected."]
    limits = facts["detectable"]
    rows = [("chance of detection", "true count", "share of reports")]
    for power, least in limits["power"].items():
        rows.append(
            (percent(float(power)), _whole_up(least["count"]), percent_up(least["frequency"]))
        )
    lines = [
        "",
        f"Smallest true count that {limits['reports']:,} reports reveal among "
        f"{plural(limits['candidates'], 'candidate', 'candidates')} (family-wise error 5 %):",
        "",
        *(f"  {line}" for line in table(rows)),
    ]
    if limits["power"]["0.5"]["frequency"] > 1:
        lines += ["", "That is more than all reports: this many reports detect nothing."]
    if "candidates_per_pattern" in facts:
        others = facts["candidates_per_pattern"]
        lines += [
            "",
            f"On average a {facts['kind']} shares its bits in a cohort with {others:.2g} other "
            "candidates.",
        ]
    return lines


def _whole_up(count_needed: float) -> str:
    return "∞" if count_needed == math.inf else f"{math.ceil(count_needed):,}"


def _shape_warnings(params: Params, kind: str) -> list[str]:
    """A warning if no encoder of this kind accepts the parameters."""
    if kind in HASHED and params.h >= params.k:
        return [f"{kind}s need h < k; no client reports with h = {params.h}, k = {params.k}"]
    if kind in ("category", "ordinal", "boolean") and params.h != 1:
        return [f"kind {kind} uses h = 1; ε is the same, but no client has h = {params.h}"]
    if kind == "boolean" and params.k != 1:
        return [
            f"kind boolean uses k = 1; ε is the same, but no client reports with k = {params.k}"
        ]
    return []


def _reports_shown(text: str | None) -> tuple[int, ...]:
    if text is None:
        return REPORTS_SHOWN
    try:
        return tuple(sorted({count(part) for part in text.split(",")}))
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"--n: {error}") from None
