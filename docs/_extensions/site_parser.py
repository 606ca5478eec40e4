"""The parser of the command line, for the reference of commands."""

from __future__ import annotations

import argparse
import re

from rappor.cli.main import build_parser


def site_parser() -> argparse.ArgumentParser:
    """The parser, with the examples of its epilogs marked as literal text."""
    parser = build_parser()
    for found in _with_actions(parser):
        if found.epilog:
            found.epilog = re.sub(r"^(examples?):\n", r"\1::\n\n", found.epilog, flags=re.MULTILINE)
    return parser


def _with_actions(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    children = [
        child
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for child in action.choices.values()
    ]
    return [parser, *(found for child in children for found in _with_actions(child))]
