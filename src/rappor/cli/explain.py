"""`rappor explain VALUE`: the life of a report, bit by bit (Figure 1 of the paper)."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from typing import Any

from rappor.cli.arguments import (
    add_encoder,
    add_params,
    encoder_from,
    ranges_from,
    read_secret,
    value_from,
)
from rappor.cli.output import paint, say, say_json
from rappor.mechanism import Encoder, Trace, expected_ones, new_secret
from rappor.privacy import epsilon_infinity, epsilon_one
from rappor.privacy.rounding import up
from rappor.wire import to_text

_STAGES = (
    ("B", "the bits of the value: they never leave the client"),
    ("B'", "permanent response: always the same, never sent"),
    ("S", "instantaneous response: new for each report; only this is sent"),
)
_ONE_STEP = (  # p = 0, q = 1: one-time RAPPOR
    _STAGES[0],
    ("B'", "permanent response: always the same"),
    ("S", "only this is sent: B' itself, because p = 0 and q = 1"),
)


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "explain",
        help="show what happens to one value, bit by bit",
        description="Show the filter B of a value, its permanent response B' and a report S as "
        "rows of bits: bit 0 first, but for kind bits in the order of VALUE, bit k-1 first. JSON "
        "has bit k-1 first, as reports.csv. Without --secret-file, a temporary secret is used.",
        epilog="Examples: rappor explain example.com; rappor explain 42 --kind ordinal "
        "--edges 10,50 --k 3 --h 1 --m 1 --f .5 --p .5 --q .75",
        allow_abbrev=False,
    )
    parser.add_argument("value", metavar="VALUE", help="the value to report")
    add_params(parser, default="life-of-a-report")
    add_encoder(parser)
    parser.add_argument("--secret-file", metavar="FILE", help="file with a client's secret")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Trace one value."""
    secret = new_secret() if args.secret_file is None else read_secret(args.secret_file)
    encoder = encoder_from(args, secret)
    trace = encoder.trace(value_from(args.value, encoder.kind))
    if args.json:
        k = encoder.params.k
        say_json(
            {
                "value": args.value,
                "cohort": encoder.cohort,
                "view": encoder.view,
                "signal": to_text(trace.signal, k),
                "permanent": to_text(trace.permanent, k),
                "report": to_text(trace.report.bits, k),
                "expected_ones": float(expected_ones(encoder.params, trace.signal.bit_count())),
                "epsilon_one": epsilon_one(encoder.params, encoder.kind),
                "epsilon_infinity": epsilon_infinity(encoder.params, encoder.kind),
            }
        )
    else:
        for line in describe(args.value, encoder, trace, _bit_names(args)):
            say(line)
    return 0


def _bit_names(args: argparse.Namespace) -> Sequence[str]:
    """The meaning of each bit, if it has one."""
    if args.categories is not None:
        return list(args.categories.split(","))
    return () if args.edges is None else ranges_from(args.edges).labels


def describe(
    value: str, encoder: Encoder, trace: Trace, bit_names: Sequence[str] = ()
) -> list[str]:
    """The trace as text; bit 0 is drawn first, and last for kind bits."""
    params = encoder.params
    size = f"{params.k} bit{'s' * (params.k != 1)}"
    lines = [f"v   {value!r}, in cohort {encoder.cohort} of {params.m}, {size}"]
    if encoder.view is not None:
        lines.append(f"    (this cohort reports only: {', '.join(encoder.view)})")
    order: Sequence[int] = range(params.k)
    if encoder.kind == "bits":  # as the value is written
        order = order[::-1]
        lines.append(f"    (from the left: bit {params.k - 1} to bit 0, as in VALUE)")
    if bit_names:
        lines.append(f"    (from the left: {'; '.join(bit_names)})")
    for (name, about), bits in zip(
        _ONE_STEP if (params.p, params.q) == (0, 1) else _STAGES,
        (trace.signal, trace.permanent, trace.report.bits),
        strict=True,
    ):
        ones = bits.bit_count()
        lines += ["", f"{name:<3} {about} ({ones} one{'s' * (ones != 1)})"]
        lines += _rows(bits, trace.signal, order)
    expected = float(expected_ones(params, trace.signal.bit_count()))
    once, ever = (up(e(params, encoder.kind)) for e in (epsilon_one, epsilon_infinity))
    lines += [
        "",
        f"Every bit of S is random; {expected:g} ones are expected for this value.",
        f"One S reveals at most ε = {once} about v. All reports on this value together reveal at",
        f"most ε = {ever}, as long as the client's secret stays secret.",
    ]
    return lines


def _rows(bits: int, signal: int, order: Sequence[int]) -> list[str]:
    """Bits in this order, in lines that fit the terminal; the bits of the value are marked."""
    width = shutil.get_terminal_size((80, 24)).columns - 4
    per_line = max(8, min(64, width // 8 * 8))
    rows = []
    for start in range(0, len(order), per_line):
        drawn = ""
        for bit in order[start : start + per_line]:
            glyph = "█" if bits >> bit & 1 else "·"
            drawn += paint(glyph, "1;33") if signal >> bit & 1 else glyph
        rows.append(f"    {drawn}")
    return rows
