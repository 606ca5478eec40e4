"""Counts drawn from their exact distribution, without making the reports (§4).

Given how many clients of a cohort truly set a bit, the number that set it in B' is a sum of two
binomials, and so is the number of their reports that set it. Bits are independent given the values,
so the counts have exactly the distribution of counted reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.checks import called_with
from rappor.mechanism.channel import channel
from rappor.mechanism.kinds import HASHED
from rappor.mechanism.prr import flip_probability
from rappor.params import Params
from rappor.simulate.crowd import Crowd, Section, draw_crowd
from rappor.simulate.scenario import Scenario
from rappor.typing import IntArray


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulated counts, and the truth: how many reports really hold each value."""

    counts: Counts
    truth: dict[str, int] = field(repr=False)


@called_with(Scenario)
def simulate(scenario: Scenario) -> Simulated:
    """Draw a collection: which client holds which value, and the counts of their noisy reports.

    The arguments are the fields of `rappor.simulate.Scenario`.
    """
    return draw_counts(draw_crowd(scenario))


@called_with(Scenario)
def counts(scenario: Scenario) -> Counts:
    """Draw the counts of a collection.

    The arguments are the fields of `rappor.simulate.Scenario`.
    """
    return draw_counts(draw_crowd(scenario)).counts


def draw_counts(crowd: Crowd) -> Simulated:
    """Draw the counts of a crowd's reports; once for each crowd, because it uses its generator."""
    params = crowd.params
    totals = np.zeros(params.m, np.int64)
    ones = np.zeros((params.m, params.k), np.int64)
    truth = np.zeros(len(crowd.names), np.int64)
    for section in crowd.sections:
        totals[section.cohort] += section.clients * section.reports_each
    for times, group in _groups(crowd):
        truth += times * group.held
        ones += _reported(group, params, times, crowd.generator)
    made = Counts(
        params,
        totals,
        ones,
        kind=crowd.kind,
        dialect=crowd.dialect if crowd.kind in HASHED else None,
        reports_per_client=crowd.repeats,
    )
    return Simulated(made, named(crowd.names, crowd.nobody, truth))


def named(names: Sequence[str], nobody: Sequence[str], truth: IntArray) -> dict[str, int]:
    """Reports of each value by name; candidates that nobody holds come last, with 0."""
    found = {name: int(number) for name, number in zip(names, truth, strict=True)}
    return found | dict.fromkeys(nobody, 0)


class _ClientGroup(NamedTuple):
    """Memos (one client, one value) with the same number of reports.

    holders: how many in each cohort, (m,); truly: how many of them set each bit, (m, k);
    held: how many of each value in all cohorts, (M,).
    """

    holders: IntArray
    truly: IntArray
    held: IntArray


def _groups(crowd: Crowd) -> Iterator[tuple[int, _ClientGroup]]:
    """The memos by their number of reports, in ascending order."""
    m, size = crowd.params.m, len(crowd.names)
    found: dict[int, _ClientGroup] = {}
    for section in crowd.sections:
        for times, held in _memos(crowd, section):
            if times not in found:
                truly = np.zeros((m, crowd.params.k), np.int64)
                found[times] = _ClientGroup(np.zeros(m, np.int64), truly, np.zeros(size, np.int64))
            group = found[times]
            group.holders[section.cohort] += held.sum()
            group.truly[section.cohort] += crowd.filters.ones(section.cohort, held)
            group.held[:] += held
    yield from sorted(found.items())


def _memos(crowd: Crowd, section: Section) -> Iterator[tuple[int, IntArray]]:
    """For each number of reports: how many clients made that many on each value, (M,)."""
    if crowd.held is not None:
        yield section.reports_each, crowd.held[section.number]
        return
    size = len(crowd.names)
    values = crowd.values_of(section)
    if crowd.values == "distinct" or section.reports_each == 1:
        yield 1, np.bincount(values.ravel(), minlength=size)
        return
    values.sort(axis=1)
    starts = np.ones(values.shape, np.bool_)
    np.not_equal(values[:, 1:], values[:, :-1], out=starts[:, 1:])
    places = np.flatnonzero(starts)
    lengths = np.diff(places, append=values.size)
    of_each = values.ravel()[places]
    for times in np.unique(lengths).tolist():
        yield times, np.bincount(of_each[lengths == times], minlength=size)


def _reported(
    group: _ClientGroup, params: Params, times: int, generator: np.random.Generator
) -> IntArray:
    """Noisy ones, shape (m, k)."""
    holders = group.holders[:, None]
    if times == 1:
        p_star, q_star = (float(number) for number in channel(params))
        sent = generator.binomial(group.truly, q_star)
        return sent + generator.binomial(holders - group.truly, p_star)
    return reported_ones(group.truly, holders, params, times, generator)


def reported_ones(
    truly: IntArray,
    holders: IntArray | int,
    params: Params,
    times: int,
    generator: np.random.Generator,
) -> IntArray:
    """How many reports set each bit that `truly` of `holders` clients set: B -> B' -> S.

    Args:
        truly: for each bit, the number of clients that set it; any shape.
        holders: the number of clients, one number or in a shape that fits.
        params: the parameters of the collection.
        times: reports of each client, all with one B'.
        generator: the source of the noise.

    >>> windows = Params.preset("windows")  # q* = .6875, p* = .5625
    >>> reported_ones(np.array([1000, 0]), 1000, windows, 1, np.random.default_rng(1)).tolist()
    [700, 536]
    """
    flip = float(flip_probability(params))
    kept = generator.binomial(truly, 1 - flip) + generator.binomial(holders - truly, flip)
    sent = generator.binomial(times * kept, params.q)
    return sent + generator.binomial(times * (holders - kept), params.p)
