"""The paper's cautions as checks on a plan (§6.1): what to know, and what is refused."""

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
from rappor.privacy.rounding import up

_SOURCE = "§6.1"


@dataclass(frozen=True, slots=True)
class Caution:
    """Something to know before collecting; `source` is the section of the paper it comes from."""

    code: str
    source: str
    text: str


def refuse_unsound(request: PlanRequest) -> None:
    """Raise ParamsError for a request that no parameters can make private."""
    if request.values == "fast" and not request.one_time:
        raise ParamsError(
            "memoization cannot keep values private that change fast: each new value has its own "
            "ε, "
            "and an attacker can see that the value changed. Plan a one-time collection, or spread "
            "a budget over the periods with rappor.privacy.spend and plan for one period's ε"
        )
    if request.reports is not None and request.reports < MIN_COHORT * request.cells:
        where = "" if request.cells == 1 else f" in {request.cells:,} cells"
        raise ParamsError(
            f"{request.reports:,} reports{where} are too few to hide in: collect at least "
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
        _several("several-devices", request.devices, "devices or accounts of a person", total),
        _several("several-collections", request.collections, "collections", total),
        _changing(request, total),
        _small_cohorts(request, params, reports),
        _trackable(request, params, reports),
    ]
    return tuple(caution for caution in found if caution is not None)


def _forgetful(request: PlanRequest) -> Caution | None:
    if request.platform != "web":
        return None
    what = "reports again" if request.one_time else "draws another secret, B' and cohort"
    return Caution(
        "forgetful-platform",
        _SOURCE,
        f"A browser that clears its storage {what}: ε holds until storage is cleared, and n "
        "clearings cost n times as much. Keep the secret with the person's account instead.",
    )


def _linkable(params: Params) -> Caution | None:
    if params.p > 0 or params.q < 1:
        return None
    return Caution(
        "linkable-reports",
        _SOURCE,
        "With p = 0 and q = 1 every report is B' itself, the same each time: anyone who sees two "
        "reports can tell that they come from one client. An epsilon_one below epsilon_infinity "
        "hides it.",
    )


def _several(code: str, number: int, what: str, total: float) -> Caution | None:
    if number == 1:
        return None
    return Caution(
        code,
        _SOURCE,
        f"{number} {what} add up to ε = {up(number * total)} together, if "
        "they are about the same thing"
        + ("; one shared secret per account avoids it." if code == "several-devices" else "."),
    )


def _changing(request: PlanRequest, total: float) -> Caution | None:
    if request.values != "slow":
        return None
    return Caution(
        "changing-values",
        _SOURCE,
        f"Each value that a client has over time costs its own ε of up to {up(total)}, and many "
        "reports show that the value changed.",
    )


def _small_cohorts(request: PlanRequest, params: Params, reports: int) -> Caution | None:
    size = reports / params.m / request.cells
    if size >= SMALL_COHORT:
        return None
    return Caution(
        "small-cohorts",
        _SOURCE,
        f"A cohort has about {size:,.0f} reports in a cell: few to hide among. Collect more "
        "reports, or use fewer periods and dimensions.",
    )


def _trackable(request: PlanRequest, params: Params, reports: int) -> Caution | None:
    bits = identifying_bits(params)
    if request.kind == "boolean" or bits <= math.log2(reports) or request.one_time:
        return None
    return Caution(
        "trackable-bits",
        _SOURCE,
        f"If all clients hold the same value, their {params.k} permanent bits differ by about "
        f"{bits:.0f} bits of chance, enough to track a client that sends very many reports. Plan "
        "with "
        "shared (--shared) for such a value.",
    )
