"""Regimes judged by counting: of how many things that could go wrong, how many did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from calibration.summary import Share


class Tallies:
    """Hits and trials by what was looked at."""

    def __init__(self) -> None:
        """Count from 0."""
        self._counted: dict[str, list[int]] = {}

    def add(self, name: str, hits: bool | np.ndarray) -> None:
        """Count one trial, or one for each element."""
        trials = np.atleast_1d(hits)
        entry = self._counted.setdefault(name, [0, 0])
        entry[0] += int(trials.sum())
        entry[1] += len(trials)

    def to_json(self) -> dict[str, list[int]]:
        """Names with [hits, trials]."""
        return self._counted


def total(records: Iterable[Mapping[str, Any]]) -> dict[str, Share]:
    """The tallies of many seeds together."""
    found: dict[str, Share] = {}
    for record in records:
        for name, (hits, of) in record["tallies"].items():
            before = found.get(name, Share(0, 0))
            found[name] = Share(before.hits + hits, before.of + of)
    return found
