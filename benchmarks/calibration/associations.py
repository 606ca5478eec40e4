"""Joint tables of two variables: coverage of every interval, and rejections of independence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal
from zlib import crc32

import numpy as np

from calibration.draw import FRESH, label_of
from calibration.measure import ALPHA, Record
from calibration.tallies import Tallies
from rappor import Params, associate, simulate
from rappor.decoding.association import Association
from rappor.mechanism import Field, View, Views

Joint = dict[tuple[str, str], float]
_TUPLE = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)
_PAIR = Params(32, 2, 16, 0.5, 0.25, 0.75), Params(16, 2, 16, 0.5, 0.25, 0.75)


@dataclass(frozen=True, slots=True)
class Pairing:
    """How two variables are reported, how often, how many values they have, what is not listed."""

    name: str
    about: str
    method: Literal["tuple", "separate"]
    repeats: int = 1
    diffuse: float = 0.0  # share of `unlisted` first values
    heavy: float = 0.0  # share of a single one
    second_diffuse: float | None = None  # share of unlisted second values; None: a closed field
    unlisted: int = 1000  # how many values share a diffuse mass
    rows: int = 5
    columns: int = 4
    reports: int = 30_000


def measure_association(name: str, seed: int, same_names: bool = False) -> Record:
    """One dependent and one independent table of a scenario in one seed; ready for JSON."""
    scenario, found = ASSOCIATIONS[name], Tallies()
    label = label_of(seed, same_names)
    for is_dependent in (True, False):
        joint = _joint(scenario, label, is_dependent)
        key = [seed, FRESH, is_dependent, crc32(name.encode())]
        made, truth = _made(scenario, joint, label, key)
        if is_dependent:
            _add_coverage(found, made, _real(made, truth), (scenario.rows, scenario.columns))
        else:
            found.add("independence rejected", made.is_associated)
            found.add("family-wise error", bool(made.associated))
    return {"scenario": name, "seed": seed, "method": "auto", "tallies": found.to_json()}


def _add_coverage(
    found: Tallies, made: Association, real: np.ndarray, listed: tuple[int, int]
) -> None:
    """Which intervals hold the realised share; what no cohort tells has none.

    Conditional shares have one where the value that they are given is not too rare.
    """
    rows, columns = listed
    is_listed = np.zeros(real.shape, bool)
    is_listed[:rows, :columns] = True
    ends = np.array([made.rows.columns[f"{end}_95"] for end in ("low", "high")])
    _add_held(found, "intervals that hold", ends[:, is_listed], real[is_listed])
    _add_held(found, "other cells that hold", ends[:, ~is_listed], real[~is_listed])
    for margin, sums in zip(made.margins, (real.sum(axis=1), real.sum(axis=0)), strict=True):
        ends = np.array([(value.low_95, value.high_95) for value in margin]).T
        _add_held(found, "margins that hold", ends, sums)
    for side, axis in (("first", 1), ("second", 0)):
        sums = real.sum(axis=axis, keepdims=True)
        ends = np.array([made.rows.columns[f"given_{side}_{end}_95"] for end in ("low", "high")])
        given = np.divide(real, sums, out=np.full_like(real, np.nan), where=sums > 0)
        _add_held(found, "conditional shares that hold", ends, given)
    _, low, high = made.unlisted_mass
    found.add("unlisted mass covered", low <= 1 - real[:rows, :columns].sum() <= high)


def _add_held(found: Tallies, name: str, ends: np.ndarray, real: np.ndarray) -> None:
    """Count the intervals (low, high) that hold a share, of those that there are."""
    low, high = ends
    told = np.isfinite(low) & np.isfinite(real)
    if told.any():
        found.add(name, ((low <= real) & (real <= high))[told])


def _real(made: Association, truth: Mapping[tuple[str, str], float]) -> np.ndarray:
    """The realised shares in the shape of the table, whose last row or column is "other"."""
    first, second = ({label: place for place, label in enumerate(side)} for side in made.labels)
    table = np.zeros(made.share.shape)
    for (one, two), share in truth.items():
        table[first.get(one, len(first) - 1), second.get(two, len(second) - 1)] += share
    return table


def _joint(scenario: Pairing, label: str, is_dependent: bool) -> Joint:
    """Zipf margins; dependent: the columns of two rows come in another order."""
    first, second = _listed(scenario, label)
    unlisted = range(scenario.unlisted)
    rows = _zipf(first, 1 - scenario.diffuse - scenario.heavy)
    rows |= {f"{label}u{n}": scenario.diffuse / len(unlisted) for n in unlisted if scenario.diffuse}
    rows |= {f"{label}h": scenario.heavy} if scenario.heavy else {}
    lost = scenario.second_diffuse or 0.0
    columns = _zipf(second, 1 - lost)
    others = {f"{label}v{n}": lost / len(unlisted) for n in unlisted if lost}
    joint = {}
    for row, (one, share) in enumerate(rows.items()):
        parts = list(columns.values())
        parts = np.roll(parts[::-1], row).tolist() if is_dependent and row < 2 else parts
        here = dict(zip(columns, parts, strict=True)) | others
        joint |= {(one, two): share * part for two, part in here.items()}
    return joint


def _listed(scenario: Pairing, label: str) -> tuple[list[str], list[str]]:
    """The listed values; second ones have the same names in all seeds, unless any may be there."""
    mark = "" if scenario.second_diffuse is None else label
    return (
        [f"{label}x{row}" for row in range(scenario.rows)],
        [f"{mark}y{column}" for column in range(scenario.columns)],
    )


def _zipf(names: Sequence[str], mass: float) -> dict[str, float]:
    shares = 1 / np.arange(1, len(names) + 1)
    return dict(zip(names, (mass * shares / shares.sum()).tolist(), strict=True))


def _made(
    scenario: Pairing, joint: Joint, label: str, seed: list[int]
) -> tuple[Association, Mapping[tuple[str, str], float]]:
    """The result, and the shares that the reports really hold."""
    reports = scenario.reports // scenario.repeats * scenario.repeats
    lists = _listed(scenario, label)
    if scenario.method == "separate":
        drawn = simulate.pair_reports(
            joint, _PAIR, reports, seed=seed, reports_per_client=scenario.repeats
        )
        truth = {pair: number / reports for pair, number in drawn.truth.items()}
        return associate(drawn.count(), lists, alpha=ALPHA), truth
    views = _views(scenario, lists[1])
    named = dict(zip(simulate.tuples(views.fields, joint), joint, strict=True))
    made = simulate.simulate(
        simulate.tuples(views.fields, joint),
        _TUPLE,
        reports=reports,
        seed=seed,
        kind="tuple",
        fields=views.fields,
        views=views.views,
        cohort_sizes="random",
        reports_per_client=scenario.repeats,
    )
    truth = {named[text]: number / reports for text, number in made.truth.items()}
    values = lists[0], None if scenario.second_diffuse is None else lists[1]
    return associate(made.counts, values, views=views, alpha=ALPHA), truth


def _views(scenario: Pairing, second: list[str]) -> Views:
    """The default views of a string and categories; of two strings also the second alone."""
    if scenario.second_diffuse is None:
        return Views((Field("x", "string"), Field("y", "category", categories=tuple(second))))
    alone = (View(("x", "y"), 0.6), View(("x",), 0.2), View(("y",), 0.2))
    return Views((Field("x", "string"), Field("y", "string")), alone)


def _all() -> Sequence[Pairing]:
    return [
        Pairing("A1", "tuple, one report", "tuple"),
        Pairing("A2", "tuple, 7 reports, 30 % diffuse", "tuple", 7, diffuse=0.3),
        Pairing("A3", "tuple, 30 reports, 15 % heavy", "tuple", 30, heavy=0.15),
        Pairing("A4", "tuple, 30 % diffuse", "tuple", diffuse=0.3),
        Pairing("A5", "tuple, 15 % heavy", "tuple", heavy=0.15),
        Pairing("A6", "separate, one report", "separate"),
        Pairing("A7", "separate, 7 reports, 30 % diffuse", "separate", 7, diffuse=0.3),
        Pairing("A8", "separate, 30 reports, 15 % heavy", "separate", 30, heavy=0.15),
        Pairing("A9", "tuple, 12 x 6, 100,000 reports", "tuple", rows=12, columns=6,
                reports=100_000),
        Pairing("A10", "tuple of two strings, 20 % diffuse each", "tuple", diffuse=0.2,
                second_diffuse=0.2, unlisted=100),
    ]  # fmt: skip


ASSOCIATIONS = {scenario.name: scenario for scenario in _all()}
