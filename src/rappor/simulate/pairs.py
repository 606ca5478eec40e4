"""Reports of two variables at once, each with its own noise: what google/rappor's clients send.

A client holds a pair of values and has one cohort. It answers for both variables in one message,
through two mechanisms that share nothing but the cohort.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rappor.aggregate.pair_counts import PairCounts, count_pairs
from rappor.checks import whole
from rappor.errors import ParamsError
from rappor.params import Params
from rappor.simulate import coins
from rappor.simulate.crowd import _generator, _shares
from rappor.simulate.filters import filters_of
from rappor.simulate.memos import respond
from rappor.simulate.scenario import Seed
from rappor.typing import ByteArray, IntArray

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class PairReports:
    """Simulated reports of two variables, with the truth that real ones hide.

    Attributes:
        params: the parameters of both variables.
        kinds: their kinds.
        dialect: how strings were placed.
        pairs: the pairs of values that clients hold.
        cohorts: of each report, shape (N,).
        packed: the reports on each variable, shape (N, ceil(k/8)).
        values: the index in `pairs` of each report's values, shape (N,).
        reports_per_client: how many reports each client made.
    """

    params: tuple[Params, Params]
    kinds: tuple[str, str]
    dialect: str
    pairs: tuple[Pair, ...] = field(repr=False)
    cohorts: IntArray = field(repr=False)
    packed: tuple[ByteArray, ByteArray] = field(repr=False)
    values: NDArray[np.int64] = field(repr=False)
    reports_per_client: int = 1

    def count(self, names: Pair = ("first", "second")) -> PairCounts:
        """The pair counts of the reports."""
        dialects = [self.dialect if kind == "string" else None for kind in self.kinds]
        return count_pairs(
            self.packed[0],
            self.packed[1],
            self.cohorts,
            self.params,
            kinds=self.kinds,
            dialects=(dialects[0], dialects[1]),
            names=names,
            reports_per_client=self.reports_per_client,
        )

    @property
    def truth(self) -> dict[Pair, int]:
        """How many reports really hold each pair."""
        held = np.bincount(self.values, minlength=len(self.pairs))
        return dict(zip(self.pairs, held.tolist(), strict=True))


def pair_reports(
    joint: Mapping[Pair, float],
    params: tuple[Params, Params],
    reports: int,
    *,
    seed: Seed = None,
    kinds: tuple[str, str] = ("string", "string"),
    dialect: str = "rappor-v1",
    reports_per_client: int = 1,
) -> PairReports:
    """Draw the reports of clients that answer for two variables at once.

    Args:
        joint: how frequent each pair of values is, in any unit.
        params: the parameters of the two variables; m must agree.
        reports: N, a multiple of `reports_per_client`.
        seed: of numpy's generator; None draws other reports each time.
        kinds: string, or boolean with the values "true" and "false".
        dialect: how strings are placed.
        reports_per_client: how often each client reports; its values stay the same.

    >>> params = Params(8, 1, 4, 0.5, 0.25, 0.75)
    >>> drawn = pair_reports({("a", "x"): 3, ("b", "y"): 1}, (params, params), 100, seed=1)
    >>> drawn.count().both.shape, sum(drawn.truth.values())
    ((4, 8, 8), 100)
    """
    repeats = whole("reports_per_client", reports_per_client, 1, 2**31)
    number = whole("reports", reports, 0, 2**31)
    if number % repeats:
        raise ParamsError(
            f"reports must be a multiple of reports_per_client, got {number} and {repeats}"
        )
    if params[0].m != params[1].m:
        raise ParamsError(
            f"the two variables share their cohorts: m is {params[0].m} and {params[1].m}; "
            "give params of one m"
        )
    pairs = tuple(joint)
    _, shares = _shares({str(place): joint[pair] for place, pair in enumerate(pairs)})
    generator = _generator(seed)
    held = generator.choice(len(pairs), number // repeats, p=shares)
    cohorts = generator.integers(0, params[0].m, len(held))
    order = np.argsort(cohorts, kind="stable")
    held, cohorts = held[order], cohorts[order]
    memo = None if repeats == 1 else np.repeat(np.arange(len(held)), repeats)
    packed = []
    for which in (0, 1):
        names = list(dict.fromkeys(pair[which] for pair in pairs))
        places = np.array([names.index(pair[which]) for pair in pairs])
        filters = filters_of(names, None, params[which], kinds[which], dialect)
        bloom = np.zeros((len(held), (params[which].k + 7) // 8), np.uint8)
        starts = np.searchsorted(cohorts, np.arange(params[0].m + 1))
        for cohort in range(params[0].m):
            part = slice(starts[cohort], starts[cohort + 1])
            bloom[part] = filters.packed(cohort)[places[held[part]]]
        packed.append(respond(bloom, memo, params[which], coins.reader(generator)).irr)
    return PairReports(
        params,
        kinds,
        dialect,
        pairs,
        np.repeat(cohorts, repeats),
        (packed[0], packed[1]),
        np.repeat(held, repeats),
        repeats,
    )
