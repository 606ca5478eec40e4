"""Joint populations for tests of associations, and the maximum likelihood that they are held to."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rappor import Counts, Params
from rappor.decoding.field_design import FieldDesign
from rappor.mechanism import Field, View, Views
from rappor.mechanism.channel import channel
from rappor.simulate import PairReports, pair_reports, simulate, tuples
from rappor.typing import ByteArray, FloatArray, IntArray

Pair = tuple[str, str]


class WholeReports(NamedTuple):
    """How likely each pair of values makes whole reports on two variables.

    Attributes:
        told: a row for each sort of report, a column for each pair, row by row; up to a factor
            for each row, which changes no maximum.
        number: how many reports are of each sort.
        shape: values of both variables.
    """

    told: FloatArray
    number: IntArray
    shape: tuple[int, int]


def whole_reports(
    cohorts: IntArray, bits: tuple[ByteArray, ByteArray], fields: tuple[FieldDesign, FieldDesign]
) -> WholeReports:
    """The likelihoods of reports.

    Args:
        cohorts: of each report, shape (N,).
        bits: the bits of each report on both variables, 0 or 1, bit 0 first; shape (N, k).
        fields: the values of both variables.
    """
    chances = []
    for seen, each in zip(bits, fields, strict=True):
        p_star, q_star = map(float, channel(each.params))
        ones = p_star + (q_star - p_star) * each.table[:, 1:]
        likelihood = np.ones((len(cohorts), len(each.labels)))
        for bit in range(each.params.k):
            chance = ones[cohorts, bit]
            likelihood *= np.where(seen[:, bit : bit + 1] == 1, chance, 1 - chance)
        chances.append(likelihood)
    joint = (chances[0][:, :, None] * chances[1][:, None, :]).reshape(len(cohorts), -1)
    scaled = (joint / joint.max(axis=1, keepdims=True)).round(12)
    told, number = np.unique(scaled, axis=0, return_counts=True)
    return WholeReports(told, number, (len(fields[0].labels), len(fields[1].labels)))


def dependent(
    rows: int, columns: int, unlisted: float = 0.0, heavy: float = 0.0
) -> dict[Pair, float]:
    """Pairs x0 … × y0 …: Zipf margins, and two rows whose columns come in another order.

    `unlisted` is the share of a thousand other first values, `heavy` that of a single one.
    """
    return _joint(rows, columns, unlisted, heavy, shifted=True)


def independent(
    rows: int, columns: int, unlisted: float = 0.0, heavy: float = 0.0
) -> dict[Pair, float]:
    """The same margins without any association."""
    return _joint(rows, columns, unlisted, heavy, shifted=False)


def _joint(
    rows: int, columns: int, unlisted: float, heavy: float, *, shifted: bool
) -> dict[Pair, float]:
    first = 1 / np.arange(1, rows + 1)
    second = 1 / np.arange(1, columns + 1)
    first, second = (1 - unlisted - heavy) * first / first.sum(), second / second.sum()
    joint = {}
    for row, share in enumerate(first.tolist()):
        here = np.roll(second, row) if shifted and row < 2 else second
        here = here[::-1] if shifted and row == 0 else here
        for column, part in enumerate(here.tolist()):
            joint[f"x{row}", _second(column, columns)] = share * part
    others = {f"u{number}": unlisted / 1000 for number in range(1000)} if unlisted else {}
    others |= {"h": heavy} if heavy else {}
    for name, share in others.items():
        for column, part in enumerate(second.tolist()):
            joint[name, _second(column, columns)] = share * part
    return joint


def _second(column: int, columns: int) -> str:
    return ("true", "false")[column] if columns == 2 else f"y{column}"


def listed(joint: dict[Pair, float]) -> tuple[list[str], list[str]]:
    """The values of both variables that an analyst lists: all x and y."""
    first = [name for name in dict.fromkeys(pair[0] for pair in joint) if name.startswith("x")]
    return first, list(dict.fromkeys(pair[1] for pair in joint))


def realised(reports: PairReports, first: tuple[str, ...], second: tuple[str, ...]) -> FloatArray:
    """The shares that the reports really hold, in the shape of a table with these values."""
    return in_table(reports.truth, first, second) / len(reports.cohorts)


def tuple_views(
    second: Sequence[str] | None, shares: Sequence[float] = (0.8, 0.2), first: str = "string"
) -> Views:
    """A tuple (x, y) whose cohorts see both, x alone and y alone with these shares.

    `second` lists the categories of y; None makes it a string. A `first` that is not "string" is
    the number of its categories.
    """
    field = (
        Field("x", "string")
        if first == "string"
        else Field("x", "category", categories=tuple(f"x{n}" for n in range(int(first))))
    )
    other = (
        Field("y", "string") if second is None else Field("y", "category", categories=tuple(second))
    )
    seen = (("x", "y"), ("x",), ("y",))
    chosen = tuple(View(names, share) for names, share in zip(seen, shares, strict=False) if share)
    return Views((field, other), chosen)


def tuple_counts(
    joint: Mapping[Pair, float],
    views: Views,
    params: Params,
    reports: int,
    *,
    seed: int | list[int],
    repeats: int = 1,
) -> tuple[Counts, dict[Pair, float]]:
    """Simulated counts of a tuple, and the share of the reports that really hold each pair."""
    drawn = simulate(
        tuples(views.fields, joint),
        params,
        reports=reports,
        seed=seed,
        kind="tuple",
        fields=views.fields,
        views=views.views,
        cohort_sizes="random",
        reports_per_client=repeats,
    )
    truth = {}
    for name, number in drawn.truth.items():
        one, two = json.loads(name).values()
        truth[one, two] = number / reports
    return drawn.counts, truth


def renamed(joint: Mapping[Pair, float], mark: object) -> dict[Pair, float]:
    """The same with other names for unlisted values: their bits are a new draw in every run."""
    return {
        (one if one.startswith("x") else f"{one}-{mark}", two): share
        for (one, two), share in joint.items()
    }


def in_table(
    truth: Mapping[Pair, float], first: tuple[str, ...], second: tuple[str, ...]
) -> FloatArray:
    """Shares in the shape of a table with these values, the last of which stand for others."""
    table = np.zeros((len(first), len(second)))
    for (one, two), share in truth.items():
        row = first.index(one) if one in first else len(first) - 1
        column = second.index(two) if two in second else len(second) - 1
        table[row, column] += share
    return table


def maximum_likelihood(reports: WholeReports, steps: int = 200_000) -> FloatArray:
    """The joint shares that make whole reports likeliest, by EM until it has converged.

    Without errors, and from every report: what estimates from pair counts are held to. By the
    gradient D of the logarithm of the likelihood, N (max D - 1) bounds what is still to be gained.
    """
    told, number = reports.told, reports.number
    share = np.full(told.shape[1], 1 / told.shape[1])
    for _ in range(steps):
        gradient = ((number / (told @ share)) @ told) / number.sum()
        if number.sum() * (gradient.max() - 1) < 1e-4:
            return np.asarray(share.reshape(reports.shape))
        share = share * gradient
    raise AssertionError(f"EM still moves after {steps} steps")


def unrestricted_likelihood(reports: WholeReports) -> FloatArray:
    """The same where shares may be negative, as those of `rappor.associate`; by Newton's method."""
    told, number = reports.told, reports.number
    size = told.shape[1]
    free = np.vstack([np.eye(size - 1), -np.ones(size - 1)])  # steps that keep the sum
    share = np.full(size, 1 / size)
    for _ in range(100):
        mixed = told @ share
        gradient = free.T @ ((number / mixed) @ told)
        curved = told @ free * (np.sqrt(number) / mixed)[:, None]
        step = free @ np.linalg.solve(curved.T @ curved, gradient)
        while (told @ (share + step) <= 0).any():
            step = step / 2
        share = share + step
        if np.abs(step).max() < 1e-12:
            return np.asarray(share.reshape(reports.shape))
    raise AssertionError("Newton's method does not converge")


def bits_of(reports: PairReports) -> tuple[ByteArray, ByteArray]:
    """The bits of simulated reports on both variables, bit 0 first; shape (N, k)."""
    first, second = (
        np.unpackbits(packed, axis=1, count=params.k, bitorder="little")
        for packed, params in zip(reports.packed, reports.params, strict=True)
    )
    return first, second


def write_google_files(folder: Path, reports: PairReports, names: Pair) -> None:
    """The reports as google/rappor's association files: reports.csv, rappor-vars.csv, params."""
    text = ["metric, var, var_type, params"]
    columns = []
    for name, kind, params, bits in zip(
        names, reports.kinds, reports.params, bits_of(reports), strict=True
    ):
        text.append(f"m,{name},{kind},{name}_params")
        _params_file(folder / f"{name}_params.csv", params)
        columns.append(["".join(map(str, row)) for row in bits[:, ::-1].tolist()])
    (folder / "rappor-vars.csv").write_text("\n".join(text) + "\n", encoding="utf-8")
    lines = [f"client,cohort,{names[0]},{names[1]}"]
    cohorts = reports.cohorts.tolist()
    for number, (cohort, one, two) in enumerate(zip(cohorts, *columns, strict=True)):
        lines.append(f"c{number},{cohort},{one},{two}")
    (folder / "reports.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_small_pairs(folder: Path, reports: int = 2_000) -> None:
    """Association files of 4 domains and a boolean, with a list of domains, in a new folder."""
    folder.mkdir()
    params = Params(8, 1, 16, 0.25, 0.25, 0.75), Params(1, 1, 16, 0.25, 0.25, 0.75)
    drawn = pair_reports(
        dependent(4, 2), params, reports, seed=1, kinds=("string", "boolean"), dialect="google"
    )
    write_google_files(folder, drawn, ("domain", "https"))
    (folder / "domains.txt").write_text("x0\nx1\nx2\nx3\n", encoding="utf-8")


def _params_file(path: Path, params: Params) -> None:
    params.to_csv(path)
