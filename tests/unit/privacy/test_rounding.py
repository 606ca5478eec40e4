"""ε is shown with three decimals, rounded up, by one function: in code, in documents, on pages."""

from __future__ import annotations

import ast
import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappor.privacy.rounding import PLACES, as_set, up

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "src" / "rappor"
HOME = PACKAGE / "privacy" / "rounding.py"
SOURCES = [file for file in sorted(PACKAGE.rglob("*.py")) if file != HOME]
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "SECURITY.md", *ROOT.glob("docs/**/*.md")])
SHOWN = {"up", "as_set", "show_epsilon", "math.exp"}  # e^ε is a factor on odds, not an ε
# "ε = 1.08", "ε∞ of 4.39": a number with decimals that a document gives as an ε.
WRITTEN = re.compile(r"ε[₁∞1n_]{0,2} ?(?:=|of|is|:)? ?\[?(\d+\.\d+)")


@given(st.floats(0, 1e6))
def test_epsilon_is_never_shown_smaller_and_less_than_a_thousandth_larger(epsilon: float) -> None:
    shown = Decimal(up(epsilon))
    exact = Fraction(repr(epsilon))
    assert exact <= Fraction(shown) < exact + Fraction(1, 1000)
    assert -int(shown.as_tuple().exponent) == PLACES


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (0.0, "0.000"),
        (5e-324, "0.001"),
        (1.0743, "1.075"),
        (4.4, "4.400"),  # the float is 4.4000000000000003553
        (4.394, "4.394"),
        (math.nextafter(4.394, 5), "4.395"),
        (3, "3.000"),
        (math.inf, "∞"),
    ],
)
def test_the_edges(epsilon: float, shown: str) -> None:
    assert up(epsilon) == shown


@given(st.floats(1e-9, 1e9))
def test_a_limit_is_repeated_in_the_digits_that_set_it(limit: float) -> None:
    assert float(as_set(limit)) == limit
    assert "e" not in as_set(limit)


def formatted_epsilons(source: str) -> list[str]:
    """Expressions that mention ε and become text without the function that rounds it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FormattedValue):
            inner, spec = node.value, node.format_spec
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("round", "format"):
            inner, spec = node, None
        else:
            continue
        named = [
            part
            for part in ast.walk(inner)
            if (isinstance(part, ast.Name) and part.id.startswith("epsilon"))
            or (isinstance(part, ast.Attribute) and "epsilon" in part.attr)
        ]
        called = {
            part.func.id if isinstance(part.func, ast.Name) else ast.unparse(part.func)
            for part in ast.walk(inner)
            if isinstance(part, ast.Call)
        }
        rounded_by_hand = spec is not None or "round" in called or "format" in called
        if named and rounded_by_hand and not called & SHOWN:
            found.append(ast.unparse(inner))
    return found


@pytest.mark.parametrize(
    "planted",
    ['f"{epsilon:.4f}"', 'f"{goal.epsilon_one:g}"', "round(epsilon_infinity(params), 3)"],
)
def test_the_scan_sees_an_epsilon_that_is_rounded_by_hand(planted: str) -> None:
    assert formatted_epsilons(planted)
    assert not formatted_epsilons('f"{up(plan.epsilon_one):>8}"')


def test_no_source_rounds_epsilon_by_hand() -> None:
    again = {
        str(file.relative_to(PACKAGE)): found
        for file in SOURCES
        if "epsilon" in (source := file.read_text(encoding="utf-8"))
        and (found := formatted_epsilons(source))
    }
    assert again == {}


def test_templates_show_epsilon_through_the_filter() -> None:
    for file in PACKAGE.rglob("*.html"):
        for shown in re.findall(r"\{\{([^}]*epsilon[^}]*)\}\}", file.read_text(encoding="utf-8")):
            filtered = re.search(r"\|\s*epsilon(_sum)?\b|\bepsilon\(|value ==", shown)
            assert filtered, (file.name, shown)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_documents_write_epsilon_with_three_decimals(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    short = [found[0] for found in WRITTEN.finditer(text) if len(found[1].split(".")[1]) != PLACES]
    assert short == []
