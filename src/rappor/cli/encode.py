"""`rappor encode`: turn values into the reports that one client would send."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from rappor.cli.arguments import (
    add_encoder,
    add_params,
    create_secret,
    encoder_from,
    read_secret,
    value_from,
)
from rappor.cli.output import note
from rappor.cli.paths import path_of
from rappor.errors import EncodeError, ParamsError
from rappor.wire import to_text


def register(verbs: Any) -> argparse.ArgumentParser:
    """Add the verb."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        "encode",
        help="turn values into randomized reports",
        description="Encode values, given as arguments or one a line on standard input, as "
        "reports of one client. Print CSV with the header cohort,rappor (bit k-1 first), or JSON "
        "lines.",
        epilog="Example: rappor encode --preset windows --secret-file secret --create-secret "
        "example.com",
        allow_abbrev=False,
    )
    parser.add_argument(
        "values", nargs="*", metavar="VALUE", help="values (default: standard input)"
    )
    add_params(parser)
    add_encoder(parser)
    parser.add_argument(
        "--secret-file", required=True, metavar="FILE", help="file with the client's secret"
    )
    parser.add_argument(
        "--create-secret", action="store_true", help="create the secret file if it is missing"
    )
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Encode each value in turn."""
    encoder_from(args, b"any")  # refuses bad options before a secret is created
    if args.create_secret:
        create_secret(args.secret_file)
    elif not path_of(args.secret_file).exists():
        raise ParamsError(f"{args.secret_file}: no such secret file; --create-secret makes it")
    encoder = encoder_from(args, read_secret(args.secret_file))
    if not args.json:
        print("cohort,rappor")
    for number, text in enumerate(_values(args.values), 1):
        try:
            cohort, bits = encoder.encode(value_from(text, encoder.kind))
        except (EncodeError, ParamsError) as error:
            raise EncodeError(f"value {number}: {error}") from None
        bit_text = to_text(bits, encoder.params.k)
        if args.json:
            print(json.dumps({"cohort": cohort, "rappor": bit_text}))
        else:
            print(f"{cohort},{bit_text}")
    return 0


def _values(given: list[str]) -> Iterator[str]:
    if given:
        yield from given
        return
    if sys.stdin is None:
        raise EncodeError(
            "no values given, and standard input is closed: name values, or pipe them in, one a "
            "line"
        )
    if sys.stdin.isatty():
        note("reading values from the terminal, one a line; press Ctrl-D to end")
    try:
        for line in sys.stdin:
            yield line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise EncodeError(
            "standard input is not text in this terminal's encoding: pipe UTF-8, or set "
            "PYTHONUTF8=1"
        ) from None
