"""A message about wrong input says what is wrong and what to do, in the same sentence."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "rappor"
# What a person at a terminal or in a notebook meets; the client, the wire and the store have
# vocabularies of their own, with tests of their own.
FOLDERS = ("aggregate", "attack", "cli", "collection", "decoding", "experiments", "planning")
FILES = [
    *(
        file
        for folder in (*FOLDERS, "simulate")
        for file in sorted((PACKAGE / folder).rglob("*.py"))
    ),
    *(PACKAGE / f"{name}.py" for name in ("formats", "params", "stored_view", "workspace")),
    PACKAGE / "view_results.py",
]
ERRORS = ("ParamsError", "DecodeError", "EncodeError", "UsageError")
# "must", "expected" and "needs" say what is right; the others say what to do.
WAY_OUT = re.compile(
    r"\b(must|expected|needs?|give|name|choose|check|leave|keep|write|list|pipe|add|read|use|run|"
    r"make|made|mend|restore|remove|rename|replace|save|copy|collect|plan|decode|compare|count|"
    r"raise|lower|create|replaces|call|install|import|start|see|try|is one of|is the old name|"
    r"takes?|may have|"
    r"did you mean|allowed|wait|wanted|may differ|it has|it takes|there are|only|the nearest|"
    r"nearest|goes? with|go together|makes it|export|means?|simulate|"
    r"is the map of|is it|are these|--force|force=True|choose from)\b",
    re.IGNORECASE,
)


# Parts that hold the way out, or another error's whole message.
HELD = re.compile(r"\{(error|hint|known|lacks|wrong|_EACH|str\(error\).*)\}")


def words(node: ast.expr) -> str:
    """The text of a message, with its parts in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(map(words, node.values))
    if isinstance(node, ast.FormattedValue):
        return words(node.value)
    if isinstance(node, ast.BinOp):
        return words(node.left) + words(node.right)
    return f"{{{ast.unparse(node)}}}"


def messages(source: str) -> list[str]:
    """The messages of the errors that a file raises; those made elsewhere are left out."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            text = words(node.exc.args[0])
            if ast.unparse(node.exc.func) in ERRORS and not re.fullmatch(r"\{.*\}", text):
                found.append(text)
    return found


def is_stuck(text: str) -> bool:
    """Whether nothing in a message says what to do."""
    return not (WAY_OUT.search(re.sub(r"\{[^{}]*\}", "", text)) or HELD.search(text))


def test_the_scan_sees_a_message_without_a_way_out() -> None:
    (text,) = messages("raise DecodeError('no candidates')")
    assert is_stuck(text)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_every_message_has_a_way_out(file: Path) -> None:
    assert [text for text in messages(file.read_text(encoding="utf-8")) if is_stuck(text)] == []
