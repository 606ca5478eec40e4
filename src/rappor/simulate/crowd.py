"""The clients of a simulated collection: their cohorts, how often they report, and their values.

A client keeps its cohort (§4). It may report several times, on one value or on several. Nothing
here is noisy: it is the truth that reports hide.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rappor.checks import show
from rappor.errors import ParamsError
from rappor.mechanism.kinds import check_kind
from rappor.params import Params, check_params
from rappor.simulate.filters import Filters, filters_of, tuple_filters
from rappor.simulate.populations import Population
from rappor.simulate.scenario import Members, Scenario, Seed
from rappor.typing import IntArray

Values = NDArray[np.int32]


class Section(NamedTuple):
    """Clients of one cohort that report equally often.

    Clients are numbered through all sections; `number` is the section's own.
    """

    number: int
    cohort: int
    clients: int
    reports_each: int
    first_client: int


@dataclass(frozen=True, slots=True)
class Crowd:
    """Clients and the values they hold; made by `draw_crowd`.

    Attributes:
        params: the parameters of the collection.
        kind: the kind of collection.
        dialect: how strings are placed.
        names: the M values that clients hold.
        nobody: candidates that nobody holds.
        shares: the share of each value, shape (M,).
        filters: the true bits of the values.
        values: same, changing or distinct.
        change: for changing values, the chance that a value is drawn again before a report.
        repeats: the largest number of reports that one client can make on one value.
        sections: clients by cohort and number of reports, without clients that never report.
        held: for values that stay the same, how many clients of each section hold each value;
            shape (S, M).
        generator: its next numbers are for the noise of counts.
    """

    params: Params
    kind: str
    dialect: str
    names: tuple[str, ...]
    nobody: tuple[str, ...]
    shares: NDArray[np.float64]
    filters: Filters
    values: str
    change: float
    repeats: int
    sections: tuple[Section, ...]
    held: IntArray | None
    generator: np.random.Generator

    @property
    def reports(self) -> int:
        """N."""
        return sum(section.clients * section.reports_each for section in self.sections)

    def stream(self, *place: int) -> np.random.Generator:
        """A separate generator for one part of the work, independent of the order of the parts."""
        root = self.generator.bit_generator.seed_seq
        if not isinstance(root, np.random.SeedSequence):
            raise ParamsError("seed must be a whole number, several, or None")
        child = np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, *place))
        return np.random.Generator(np.random.SFC64(child))

    def values_of(self, section: Section) -> Values:
        """The value of each report as an index into `names`, shape (clients, reports each).

        The shape is (clients, 1) if values stay the same.
        """
        generator = self.stream(0, section.number)
        if self.held is not None:
            places = np.arange(len(self.names), dtype=np.int32)
            values: Values = np.repeat(places, self.held[section.number])
            generator.shuffle(values)
            return values[:, None]
        if self.values == "distinct":
            return distinct_values(self.shares, section.clients, section.reports_each, generator)
        return self._changing(section, generator)

    def _changing(self, section: Section, generator: np.random.Generator) -> Values:
        ends = np.cumsum(self.shares)
        ends /= ends[-1]

        def drawn(number: int) -> Values:
            return np.searchsorted(ends, generator.random(number), side="right").astype(np.int32)

        values = np.empty((section.clients, section.reports_each), np.int32)
        values[:, 0] = drawn(section.clients)
        for number in range(1, section.reports_each):
            values[:, number] = values[:, number - 1]
            again = np.flatnonzero(generator.random(section.clients) < self.change)
            values[again, number] = drawn(len(again))
        return values


def draw_crowd(scenario: Scenario) -> Crowd:
    """Draw the clients of a scenario: their cohorts, and the values that stay the same."""
    params, kind, values = scenario.params, scenario.kind, scenario.values
    check_params(params)
    if check_kind(kind) == "bits":
        raise ParamsError("kind bits has no list of values to draw from: simulate another kind")
    clients, reports_each, one_more = scenario.workload()
    chance = scenario.chance_of_change()
    names, shares, bits, nobody = _members(scenario.population, kind)
    most = reports_each + (one_more > 0)
    if values == "distinct" and most > MAX_EACH:
        raise ParamsError(
            f"a client has at most {MAX_EACH} distinct values, got {most}: choose fewer reports "
            "of each client"
        )
    if values == "distinct" and shares.max() * most > 1 + 1e-12:
        raise ParamsError(
            f"{names[int(shares.argmax())]!r} has a share of {shares.max():.4g}: clients with "
            f"{most} different values cannot hold it that often: give it at most {1 / most:.4g}"
        )
    if bits is not None and len(bits) + len(nobody) > params.k:
        raise ParamsError(
            f"{len(bits) + len(nobody)} values do not fit {params.k} bits: raise k, or give fewer"
        )
    views = scenario.tuple_views()
    if views is None:
        filters = filters_of(names, bits, params, kind, scenario.dialect)
    else:
        filters = tuple_filters(names, views, params, scenario.dialect)
    generator = _generator(scenario.seed)
    sizes = _cohort_sizes(scenario.cohort_sizes, params.m, clients, generator)
    sections = tuple(_sections(sizes, reports_each, one_more))
    held = None
    if values == "same":
        held = np.zeros((len(sections), len(names)), np.int64)
        for section in sections:
            held[section.number] = generator.multinomial(section.clients, shares)
    return Crowd(
        params,
        kind,
        scenario.dialect,
        names,
        nobody,
        shares,
        filters,
        values,
        chance,
        1 if values == "distinct" else max(1, most),
        sections,
        held,
        generator,
    )


def _generator(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ParamsError(
            f"seed must be a whole number from 0 on, several, or None; got {show(seed)}"
        ) from None


def _members(
    population: Members, kind: str
) -> tuple[tuple[str, ...], NDArray[np.float64], list[int] | None, tuple[str, ...]]:
    """The held values, their shares, their bits, and candidates that nobody holds."""
    if not isinstance(population, Population):
        names, shares = _shares(population)
        return tuple(names), shares, None, ()
    held = {
        name: share
        for name, share in zip(population.strings, population.shares, strict=True)
        if share > 0
    }
    bits = None
    if kind in ("category", "ordinal"):
        place = {name: bit for bit, name in enumerate(population.candidates)}
        if any(name not in place for name in held):
            raise ParamsError(
                f"kind {kind} has a bit for each candidate: no string is unlisted; leave unlisted "
                "ones out"
            )
        bits = [place[name] for name in held]
    return tuple(held), np.array(list(held.values())), bits, population.absent


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


def _cohort_sizes(
    given: ArrayLike | str | None, m: int, clients: int, generator: np.random.Generator
) -> IntArray:
    """Clients in each cohort: drawn, or in proportion to the given sizes; they add up exactly."""
    if isinstance(given, str) and given == "random":
        return generator.multinomial(clients, np.full(m, 1 / m))
    try:
        relative = np.ones(m) if given is None else np.asarray(given, np.float64)
    except (TypeError, ValueError):
        relative = np.empty(0)
    if relative.shape != (m,) or not np.isfinite(relative).all() or (relative < 0).any():
        raise ParamsError(f'cohort_sizes must be {m} numbers from 0 on, or "random"')
    if not relative.sum() > 0:
        raise ParamsError("cohort_sizes must not all be 0")
    return _in_proportion(relative, clients)


def _in_proportion(relative: NDArray[np.float64], total: int) -> IntArray:
    edges = np.round(np.cumsum(relative) / relative.sum() * total).astype(np.int64)
    sizes: IntArray = np.diff(edges, prepend=0)
    return sizes


def _sections(sizes: IntArray, reports_each: int, one_more: int) -> Iterator[Section]:
    """Clients by cohort: first those with `reports_each` reports, then those with one more."""
    extra = _in_proportion(sizes.astype(np.float64), one_more) if one_more else np.zeros_like(sizes)
    number = first_client = 0
    for cohort, (size, longer) in enumerate(zip(sizes.tolist(), extra.tolist(), strict=True)):
        for clients, times in ((size - longer, reports_each), (longer, reports_each + 1)):
            if clients and times:
                yield Section(number, cohort, clients, times, first_client)
                number += 1
            first_client += clients


UNIT = 1 << 40  # lengths on the line are whole numbers, so that rounding never hits a value twice
TOGETHER = 8  # clients that share one order of the values; each has its own offset
MAX_EACH = 1 << 22  # so that the line's length fits 64 bits


def distinct_values(
    shares: NDArray[np.float64], clients: int, each: int, generator: np.random.Generator
) -> Values:
    """Different values for each client, shape (clients, each), as indices into `shares`.

    Args:
        shares: adding up to 1, none above 1 / each.
        clients: how many.
        each: number of values of each client, at most 2^22.
        generator: the source of orders and offsets.

    >>> import numpy as np
    >>> distinct_values(np.full(3, 1 / 3), 1, 3, np.random.default_rng(1)).sum()
    np.int64(3)
    """
    lengths = unit_lengths(shares, each)
    teeth = np.arange(each, dtype=np.int64) * UNIT
    values = np.empty((clients, each), np.int32)
    for start in range(0, clients, TOGETHER):
        combs = generator.integers(0, UNIT, min(TOGETHER, clients - start))
        order = generator.permutation(len(lengths))
        ends = np.cumsum(lengths[order])
        hit = np.searchsorted(ends, combs[:, None] + teeth, side="right")
        values[start : start + TOGETHER] = order[hit]
    return values


def unit_lengths(shares: NDArray[np.float64], each: int) -> NDArray[np.int64]:
    """Share × reports of each value in whole numbers, none above UNIT, adding up to each × UNIT."""
    exact = np.minimum(shares * each, 1.0) * UNIT
    lengths: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    missing = each * UNIT - int(lengths.sum())
    while missing > 0:  # less than one unit a value, apart from the rounding of shares
        room = np.flatnonzero((lengths < UNIT) & (shares > 0))
        if len(room) == 0:
            raise ValueError("shares do not add up to 1")
        nearest = room[np.argsort(lengths[room] - exact[room], kind="stable")][:missing]
        lengths[nearest] += 1
        missing -= len(nearest)
    if missing < 0:
        lengths[int(lengths.argmax())] += missing
    return lengths
