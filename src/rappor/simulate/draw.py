"""Counts drawn straight from their exact distribution: no report is made one by one (R20).

Given how many clients of a cohort truly have a bit set, the permanent response keeps or makes a
binomial number of them, and the instantaneous one adds two binomials of their reports. Bits are
independent given the values, so the counts have exactly the law of counted reports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.aggregate.counts import Counts
from rappor.checks import show, whole
from rappor.decoding.placement import place_all
from rappor.errors import ParamsError
from rappor.mechanism.channel import channel
from rappor.mechanism.kinds import check_kind
from rappor.params import Params, check_params

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Simulated:
    """Simulated counts and the truth behind them: reports that really held each value."""

    counts: Counts
    truth: dict[str, int] = field(repr=False)


def counts(
    population: Mapping[str, float] | Sequence[str],
    params: Params,
    reports: int,
    *,
    seed: int | Sequence[int] | None = None,
    kind: str = "string",
    dialect: str = "rappor-v1",
    cohort_sizes: ArrayLike | None = None,
    reports_per_client: int = 1,
) -> Counts:
    """Counts of a simulated collection; see `simulate`.

    >>> params = Params(128, 2, 16, 0.5, 0.5, 0.75)
    >>> counts({"a.org": 3, "b.org": 1}, params, reports=10**6, seed=7).reports
    1000000
    """
    return simulate(
        population,
        params,
        reports,
        seed=seed,
        kind=kind,
        dialect=dialect,
        cohort_sizes=cohort_sizes,
        reports_per_client=reports_per_client,
    ).counts


def simulate(
    population: Mapping[str, float] | Sequence[str],
    params: Params,
    reports: int,
    *,
    seed: int | Sequence[int] | None = None,
    kind: str = "string",
    dialect: str = "rappor-v1",
    cohort_sizes: ArrayLike | None = None,
    reports_per_client: int = 1,
) -> Simulated:
    """Draw a collection: who holds what, and the counts of their noisy reports.

    Args:
        population: how frequent each value is, in any unit; a plain list means all alike. For
            categories and ordinals, value i sets bit i.
        params: the parameters of the collection.
        reports: N, a multiple of `reports_per_client`.
        seed: of numpy's generator; None draws another collection each time.
        kind: the kind of collection; "bits" has no values to hold.
        dialect: how strings are placed.
        cohort_sizes: relative sizes of cohorts; by default all alike.
        reports_per_client: how often each client reports its one value.
    """
    check_params(params)
    if check_kind(kind) == "bits":
        raise ParamsError("kind bits has no list of values to draw from")
    n = whole("reports", reports, 0, 2**62)
    repeats = whole("reports_per_client", reports_per_client, 1, 2**31)
    if n % repeats:
        raise ParamsError(
            f"reports must be a multiple of reports_per_client, got {n} and {repeats}"
        )
    names, shares = _shares(population)
    generator = np.random.default_rng(seed)
    sizes = _cohort_sizes(cohort_sizes, params.m, n // repeats)
    held = np.stack([generator.multinomial(size, shares) for size in sizes])
    truly = _true_bits(held, names, params, kind, dialect)
    ones = _reported(truly, sizes, params, repeats, generator)
    truth = held.sum(axis=0) * repeats
    return Simulated(
        Counts(
            params,
            sizes * repeats,
            ones,
            kind=kind,
            dialect=dialect if kind == "string" else None,
            reports_per_client=repeats,
        ),
        {name: int(number) for name, number in zip(names, truth, strict=True)},
    )


def _shares(
    population: Mapping[str, float] | Sequence[str],
) -> tuple[list[str], NDArray[np.float64]]:
    try:
        if isinstance(population, (str, bytes)):
            raise TypeError
        names = list(population)
        frequencies = population.values() if isinstance(population, Mapping) else [1.0] * len(names)
        given = np.array([float(frequency) for frequency in frequencies])
    except (TypeError, ValueError):
        raise ParamsError(
            f"population must map values to frequencies, got {show(population)}"
        ) from None
    if len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
        raise ParamsError("population must be different strings")
    if not names or not np.isfinite(given).all() or (given < 0).any() or not given.sum() > 0:
        raise ParamsError(f"population must map values to frequencies, got {show(population)}")
    return names, given / given.sum()


def _cohort_sizes(given: ArrayLike | None, m: int, clients: int) -> IntArray:
    """Clients in each cohort, in proportion to what was given, adding up exactly."""
    try:
        relative = np.ones(m) if given is None else np.asarray(given, np.float64)
    except (TypeError, ValueError):
        relative = np.empty(0)
    if relative.shape != (m,) or not np.isfinite(relative).all() or (relative < 0).any():
        raise ParamsError(f"cohort_sizes must be {m} numbers from 0 on")
    if not relative.sum() > 0:
        raise ParamsError("cohort_sizes must not all be 0")
    edges = np.round(np.cumsum(relative) / relative.sum() * clients).astype(np.int64)
    sizes: IntArray = np.diff(edges, prepend=0)
    return sizes


def _true_bits(
    held: IntArray, names: list[str], params: Params, kind: str, dialect: str
) -> IntArray:
    """How many clients of each cohort have each bit set before any noise, shape (m, k)."""
    truly = np.zeros((params.m, params.k), np.int64)
    if kind != "string":
        if kind == "boolean":
            if params.k != 1 or set(names) - {"true", "false"}:
                raise ParamsError('kind boolean has k = 1 and the values "true" and "false"')
            return held[:, [names.index("true")]] if "true" in names else truly
        if len(names) > params.k:
            raise ParamsError(f"{len(names)} values do not fit {params.k} bits")
        truly[:, : len(names)] = held
        return truly
    placed = place_all([name.encode() for name in names], params, dialect)
    for row, positions in enumerate(placed):
        cohort = row // params.h
        first = ~(placed[cohort * params.h : row] == positions).any(axis=0)
        truly[cohort] += np.bincount(
            positions[first], held[cohort, first], minlength=params.k
        ).astype(np.int64)
    return truly


def _reported(
    truly: IntArray, sizes: IntArray, params: Params, repeats: int, generator: np.random.Generator
) -> IntArray:
    """Noisy ones, shape (m, k)."""
    absent = sizes[:, None] - truly
    if repeats == 1:
        p_star, q_star = (float(number) for number in channel(params))
        return generator.binomial(truly, q_star) + generator.binomial(absent, p_star)
    f, p, q = (float(number) for number in params.exact)
    kept = generator.binomial(truly, 1 - f / 2) + generator.binomial(absent, f / 2)
    return generator.binomial(repeats * kept, q) + generator.binomial(
        repeats * (sizes[:, None] - kept), p
    )
