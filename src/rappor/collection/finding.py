"""Finding: one thing that lint has to say about a collection, under a code that never changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong or unwise, why, and what to do about it.

    Attributes:
        code: its stable name; docs/collections.md lists them all.
        severity: error (do not collect like this) or warning (know this).
        requirement: the line of the requirements or section of the paper that it comes from.
        text: what was found, in one or two sentences.
        way_out: what to change.
        collection: the name and version it is about, or the file.
    """

    code: str
    severity: str
    requirement: str
    text: str
    way_out: str
    collection: str


def errors(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Those that forbid collecting."""
    return tuple(each for each in findings if each.severity == "error")
