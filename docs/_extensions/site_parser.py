"""The parser of the command line, for the reference of commands."""

from __future__ import annotations

import argparse
import re

from rappor.cli.main import build_parser


def site_parser() -> argparse.ArgumentParser:
    """The parser, with examples as literal text and without "Default: False" at every flag."""
    parser = build_parser()
    for found in _with_actions(parser):
        if found.epilog:
            found.epilog = _with_literal_examples(found.epilog)
        for action in found._actions:
            if action.default is False:
                action.default = argparse.SUPPRESS
    return parser


def _with_literal_examples(epilog: str) -> str:
    epilog = re.sub(r"^(examples?):\n", r"\1::\n\n", epilog, flags=re.MULTILINE)
    word, colon, commands = epilog.partition(": ")
    if word not in ("Example", "Examples") or not colon:
        return epilog
    commands, _, rest = commands.partition(". ")  # sentences may follow
    lines = [f"  {command}\n" for command in commands.removesuffix(".").split("; ")]
    return f"{word}::\n\n{''.join(lines)}\n{rest}"


def _with_actions(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    children = [
        child
        for action in parser._actions
        if isinstance(action, argparse._SubParsersAction)
        for child in action.choices.values()
    ]
    return [parser, *(found for child in children for found in _with_actions(child))]
