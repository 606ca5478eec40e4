"""Findings of lint: what is wrong or unwise with a collection, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rappor.collection.definition import Collection

LARGE_EPSILON = 10.0  # the largest ε in the literature, by §4.1


@dataclass(frozen=True, slots=True)
class LintFinding:
    """What is wrong or unwise, why, and what to do about it.

    Attributes:
        code: its stable name; docs/collections.md lists all codes.
        severity: error (do not collect like this) or warning (know this before you collect).
        source: the section of the paper that it comes from; empty if there is none.
        text: what lint found, in one or two sentences.
        way_out: what to change.
        collection: the name and version of the collection, or the name of the file.
    """

    code: str
    severity: str
    source: str
    text: str
    way_out: str
    collection: str


def errors(findings: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    """The findings that forbid collecting."""
    return tuple(finding for finding in findings if finding.severity == "error")


def errors_first(findings: Iterable[LintFinding]) -> tuple[LintFinding, ...]:
    """The same findings, errors before warnings."""
    return tuple(sorted(findings, key=lambda finding: finding.severity != "error"))


Say = Callable[[str, str, str, str, str], LintFinding]
Check = Callable[[Collection], Iterator[LintFinding]]


def about(collection: Collection) -> Say:
    """A function that makes the findings of a collection."""
    label = f"{collection.name} v{collection.version}"

    def say(code: str, severity: str, source: str, text: str, way_out: str) -> LintFinding:
        return LintFinding(code, severity, source, text, way_out, label)

    return say
