"""The paper's cautions as checks on a plan (§6.1, R64-R71): what to know, and what is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rappor.errors import ParamsError
from rappor.params import Params
from rappor.planning.request import PlanRequest
from rappor.privacy import (
    MIN_COHORT,
    SMALL_COHORT,
    epsilon_infinity,
    epsilon_one,
    identifying_bits,
)


@dataclass(frozen=True, slots=True)
class Caution:
    """Something to know before collecting, with the requirement it comes from."""

    code: str
    requirement: str
    text: str


def refuse_unsound(request: PlanRequest) -> None:
    """ParamsError for what no choice of parameters makes private."""
    if request.values == "fast" and not request.one_time:
        raise ParamsError(
            "values that change fast cannot be kept private by memoization: each new value has its "
            "own ε, and that it changed can be seen (R71). Plan a one-time collection, or spread a "
            "budget over the periods with rappor.privacy.spend and plan for one period's ε"
        )
    if request.reports is not None and request.reports < MIN_COHORT * request.cells:
        where = "" if request.cells == 1 else f" in {request.cells:,} cells"
        raise ParamsError(
            f"{request.reports:,} reports{where} are too few to hide in (R67): collect at least "
            f"{MIN_COHORT * request.cells:,}, or use fewer periods and dimensions"
        )


def cautions(request: PlanRequest, params: Params, reports: int) -> tuple[Caution, ...]:
    """What a reader of a plan should know, worst first."""
    ever = epsilon_infinity(params, request.kind)
    once = epsilon_one(params, request.kind)
    total = once if request.one_time else ever
    found = [
        _forgetful(request),
        _linkable(params),
        _several(
            "several-devices", "R64", request.devices, "devices or accounts of a person", total
        ),
        _several("several-collections", "R65-R66", request.collections, "collections", total),
        _changing(request, total),
        _small_cohorts(request, params, reports),
        _trackable(request, params, reports),
    ]
    return tuple(each for each in found if each is not None)


def _forgetful(request: PlanRequest) -> Caution | None:
    if request.platform != "web":
        return None
    what = "reports again" if request.one_time else "draws another secret, B' and cohort"
    return Caution(
        "forgetful-platform",
        "R68",
        f"A browser that clears its storage {what}: ε holds between two clearings, and n of them "
        "cost n times as much. Keep the secret with the person's account instead.",
    )


def _linkable(params: Params) -> Caution | None:
    if params.p > 0 or params.q < 1:
        return None
    return Caution(
        "linkable-reports",
        "R69",
        "With p = 0 and q = 1 every report is B' itself, the same each time: whoever sees two "
        "can tell that they come from one client. An epsilon_one below epsilon_infinity hides it.",
    )


def _several(code: str, requirement: str, number: int, what: str, total: float) -> Caution | None:
    if number == 1:
        return None
    return Caution(
        code,
        requirement,
        f"{number} {what} add up to ε = {_up(number * total)} together, if "
        "they are about the same thing"
        + ("; one shared secret per account avoids it." if code == "several-devices" else "."),
    )


def _changing(request: PlanRequest, total: float) -> Caution | None:
    if request.values != "slow":
        return None
    return Caution(
        "changing-values",
        "R30",
        f"Each value that a client has over time costs its own ε of up to {_up(total)}, and that "
        "it changed can be seen from many reports.",
    )


def _small_cohorts(request: PlanRequest, params: Params, reports: int) -> Caution | None:
    size = reports / params.m / request.cells
    if size >= SMALL_COHORT:
        return None
    return Caution(
        "small-cohorts",
        "R67",
        f"A cohort has about {size:,.0f} reports in a cell: few to hide among. More reports, or "
        "fewer periods and dimensions, would allow larger ones.",
    )


def _trackable(request: PlanRequest, params: Params, reports: int) -> Caution | None:
    bits = identifying_bits(params)
    if request.kind == "boolean" or bits <= math.log2(reports) or request.one_time:
        return None
    return Caution(
        "trackable-bits",
        "R69",
        f"If all clients hold the same value, their {params.k} permanent bits differ by about "
        f"{bits:.0f} bits of chance, enough to track one by very many reports. Plan with "
        "shared (--shared) for such a value.",
    )


def _up(epsilon: float) -> str:
    """ε with four decimals, never rounded down."""
    return f"{math.ceil(1e4 * epsilon) / 1e4:.4f}"
