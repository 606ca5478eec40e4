"""Full reports of a simulated collection, at array speed: what its clients would send (§2).

Coins are exact to the last binary digit, and B' is shared, as in a real client. Each piece of work
has its own generator, so the reports of a seed do not depend on the number of threads.

>>> from rappor import Params
>>> made = reports({"a.org": 3, "b.org": 1}, Params.preset("windows"), 1000, seed=7)
>>> made.packed.shape, made.count().reports, sum(made.truth.values())
((1000, 16), 1000, 1000)
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate.counts import Counts
from rappor.aggregate.kernel import count
from rappor.checks import called_with, whole
from rappor.mechanism.kinds import HASHED
from rappor.params import Params
from rappor.simulate import coins
from rappor.simulate.crowd import Crowd, Section, Values, draw_crowd
from rappor.simulate.drawn_counts import named
from rappor.simulate.memos import memos_of, respond
from rappor.simulate.scenario import Scenario
from rappor.typing import ByteArray

PIECE_BYTES = 1 << 20  # of reports made at once, so that their arrays stay in the cache
Progress = Callable[[int], object]  # called with the number of new reports


@dataclass(frozen=True, slots=True, eq=False)
class Reports:
    """Simulated reports, with the truth that real ones hide.

    Attributes:
        params: the parameters of the collection.
        kind: the kind of collection.
        dialect: how strings were placed; None for other kinds.
        names: the values that clients hold.
        nobody: candidates that nobody holds.
        cohorts: of each report, shape (N,); reports are in the order of their cohorts.
        packed: the reports, shape (N, ceil(k/8)), packed as on the wire.
        values: the index in `names` of each report's value, shape (N,).
        clients: the number of each report's client, shape (N,).
        reports_per_client: the largest number of reports that one client can have made on one
            value.
        bloom: B, packed; None unless it was kept.
        prr: B', packed; None unless it was kept.
    """

    params: Params
    kind: str
    dialect: str | None
    names: tuple[str, ...] = field(repr=False)
    nobody: tuple[str, ...] = field(repr=False)
    cohorts: NDArray[np.uint16] = field(repr=False)
    packed: ByteArray = field(repr=False)
    values: Values = field(repr=False)
    clients: NDArray[np.int64] = field(repr=False)
    reports_per_client: int
    bloom: ByteArray | None = field(repr=False, default=None)
    prr: ByteArray | None = field(repr=False, default=None)

    def __len__(self) -> int:
        return len(self.packed)

    def count(self) -> Counts:
        """The counts of the reports, as `rappor aggregate` makes them."""
        return count(
            self.packed,
            self.cohorts,
            self.params,
            kind=self.kind,
            dialect=self.dialect,
            reports_per_client=self.reports_per_client,
        )

    @property
    def truth(self) -> dict[str, int]:
        """How many reports really hold each value."""
        held = np.bincount(self.values, minlength=len(self.names))
        return named(self.names, self.nobody, held)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ReportsScenario(Scenario):
    """A scenario, and how to make its reports.

    Attributes:
        keep_steps: also keep B and B' of each report, which a real client never shows.
        threads: at once (default: the cores, at most four); the result does not depend on it.
        progress: called now and then with the number of reports made since the last call.
    """

    keep_steps: bool = False
    threads: int | None = None
    progress: Progress | None = field(default=None, repr=False)


@called_with(ReportsScenario)
def reports(scenario: ReportsScenario) -> Reports:
    """Draw the reports of a collection, all in memory (ceil(k/8) + 14 bytes each).

    The arguments are the fields of `rappor.simulate.Scenario`, and `keep_steps`, `threads` and
    `progress` of `ReportsScenario`.
    """
    crowd = draw_crowd(scenario)
    keep_steps = scenario.keep_steps
    whole_run = _empty(crowd, keep_steps)
    done = 0
    for part in pieces(crowd, keep_steps=keep_steps, threads=scenario.threads):
        upto = done + len(part)
        for name in ("cohorts", "packed", "values", "clients", "bloom", "prr"):
            target = getattr(whole_run, name)
            if target is not None:
                target[done:upto] = getattr(part, name)
        done = upto
        if scenario.progress is not None:
            scenario.progress(len(part))
    return whole_run


def _empty(crowd: Crowd, keep: bool) -> Reports:
    number, width = crowd.reports, (crowd.params.k + 7) // 8
    return Reports(
        crowd.params,
        crowd.kind,
        crowd.dialect if crowd.kind in HASHED else None,
        crowd.names,
        crowd.nobody,
        np.empty(number, np.uint16),
        np.empty((number, width), np.uint8),
        np.empty(number, np.int32),
        np.empty(number, np.int64),
        crowd.repeats,
        np.empty((number, width), np.uint8) if keep else None,
        np.empty((number, width), np.uint8) if keep else None,
    )


class _Piece(NamedTuple):
    """Some clients of a section: the first client's number, and values (clients, each or 1)."""

    section: Section
    number: int
    first_client: int
    values: Values


def pieces(
    crowd: Crowd, *, keep_steps: bool = False, threads: int | None = None
) -> Iterator[Reports]:
    """The reports of a crowd piece by piece, in order, in memory that does not grow."""
    workers = min(4, os.cpu_count() or 1) if threads is None else whole("threads", threads, 1, 256)
    waiting: deque[Future[Reports]] = deque()
    with ThreadPoolExecutor(workers, "rappor-simulate") as pool:
        try:
            for job in _jobs(crowd):
                waiting.append(pool.submit(_make, crowd, *job, keep_steps))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _jobs(crowd: Crowd) -> Iterator[tuple[_Piece, ByteArray]]:
    """The work in order, with the filters of its cohort."""
    width = (crowd.params.k + 7) // 8
    number = 0
    cohort, filters = -1, np.empty((0, width), np.uint8)
    for section in crowd.sections:
        if section.cohort != cohort:
            cohort, filters = section.cohort, crowd.filters.packed(section.cohort)
        values = crowd.values_of(section)
        size = max(1, PIECE_BYTES // (width * section.reports_each))
        for start in range(0, section.clients, size):
            first = section.first_client + start
            yield _Piece(section, number, first, values[start : start + size]), filters
            number += 1


def _make(crowd: Crowd, piece: _Piece, filters: ByteArray, keep: bool) -> Reports:
    """The reports of one piece; runs in a thread."""
    section, values = piece.section, piece.values
    clients, each = len(values), section.reports_each
    memo: Any = None
    if each == 1 or crowd.values == "distinct":
        held = values.ravel()
        of_reports = held
    elif crowd.values == "same":
        held = values.ravel()
        memo = np.repeat(np.arange(clients), each)
        of_reports = np.repeat(held, each)
    else:
        held, memo = memos_of(values)
        of_reports = values.ravel()
    read = coins.reader(crowd.stream(1, piece.number))
    steps = respond(filters[held], memo, crowd.params, read, keep=keep)
    numbers = np.arange(piece.first_client, piece.first_client + clients)
    return Reports(
        crowd.params,
        crowd.kind,
        crowd.dialect if crowd.kind in HASHED else None,
        crowd.names,
        crowd.nobody,
        np.full(clients * each, section.cohort, np.uint16),
        steps.irr,
        of_reports,
        np.repeat(numbers, each),
        crowd.repeats,
        steps.bloom,
        steps.prr,
    )
