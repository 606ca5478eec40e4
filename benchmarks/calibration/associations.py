"""Joint tables of two variables: coverage of cells, and how often independence is rejected."""

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
from rappor.mechanism import Field, Views

ROWS, COLUMNS = 5, 4
Joint = dict[tuple[str, str], float]
_TUPLE = Params(64, 1, 16, 0.2001, 0.2239, 0.5307)
_PAIR = Params(32, 2, 16, 0.5, 0.25, 0.75), Params(16, 2, 16, 0.5, 0.25, 0.75)
_REPORTS = 30_000


@dataclass(frozen=True, slots=True)
class Pairing:
    """How two variables are reported, how often, and what is not listed."""

    name: str
    about: str
    method: Literal["tuple", "separate"]
    repeats: int = 1
    diffuse: float = 0.0  # share of a thousand unlisted first values
    heavy: float = 0.0  # share of a single one


def measure_association(name: str, seed: int, same_names: bool = False) -> Record:
    """One dependent and one independent table of a scenario in one seed; ready for JSON."""
    scenario, found = ASSOCIATIONS[name], Tallies()
    label = label_of(seed, same_names)
    for is_dependent in (True, False):
        joint = _joint(scenario, label, is_dependent)
        key = [seed, FRESH, is_dependent, crc32(name.encode())]
        made, truth = _made(scenario, joint, label, key)
        if is_dependent:
            inner = made.share[:ROWS, :COLUMNS], made.std_error[:ROWS, :COLUMNS]
            real = [
                [truth.get((one, two), 0.0) for two in made.labels[1][:COLUMNS]]
                for one in made.labels[0][:ROWS]
            ]
            found.add("intervals that hold", (np.abs(inner[0] - real) < 1.96 * inner[1]).ravel())
        else:
            found.add("independence rejected", made.is_associated)
            found.add("family-wise error", bool(made.associated))
    return {"scenario": name, "seed": seed, "method": "auto", "tallies": found.to_json()}


def _joint(scenario: Pairing, label: str, is_dependent: bool) -> Joint:
    """Zipf margins; dependent: the columns of two rows come in another order."""
    listed = 1 - scenario.diffuse - scenario.heavy
    first = 1 / np.arange(1, ROWS + 1)
    second = 1 / np.arange(1, COLUMNS + 1)
    first, second = listed * first / first.sum(), second / second.sum()
    shares = {f"{label}x{row}": (row, float(share)) for row, share in enumerate(first)}
    if scenario.diffuse:
        shares |= {f"{label}u{number}": (ROWS, scenario.diffuse / 1000) for number in range(1000)}
    if scenario.heavy:
        shares[f"{label}h"] = ROWS, scenario.heavy
    return {
        (one, f"y{column}"): share * float(part)
        for one, (row, share) in shares.items()
        for column, part in enumerate(
            np.roll(second[::-1], row) if is_dependent and row < 2 else second
        )
    }


def _made(
    scenario: Pairing, joint: Joint, label: str, seed: list[int]
) -> tuple[Association, Mapping[tuple[str, str], float]]:
    """The result, and the shares that the reports really hold."""
    reports = _REPORTS // scenario.repeats * scenario.repeats
    lists = [f"{label}x{row}" for row in range(ROWS)], [f"y{column}" for column in range(COLUMNS)]
    if scenario.method == "separate":
        drawn = simulate.pair_reports(
            joint, _PAIR, reports, seed=seed, reports_per_client=scenario.repeats
        )
        truth = {pair: number / reports for pair, number in drawn.truth.items()}
        return associate(drawn.count(), lists, alpha=ALPHA), truth
    views = Views((Field("x", "string"), Field("y", "category", categories=tuple(lists[1]))))
    named = dict(zip(simulate.tuples(views.fields, joint), joint, strict=True))
    made = simulate.simulate(
        simulate.tuples(views.fields, joint),
        _TUPLE,
        reports=reports,
        seed=seed,
        kind="tuple",
        fields=views.fields,
        cohort_sizes="random",
        reports_per_client=scenario.repeats,
    )
    truth = {named[text]: number / reports for text, number in made.truth.items()}
    return associate(made.counts, (lists[0], None), views=views, alpha=ALPHA), truth


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
    ]


ASSOCIATIONS = {scenario.name: scenario for scenario in _all()}
