"""Requests that can be met, with the open number solved for; and refusals of all others.

A refusal says what is impossible and the nearest that is possible.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

from rappor.checks import is_real
from rappor.errors import ParamsError
from rappor.planning.expected_detections import ExpectedCrowd
from rappor.planning.noise import Goal
from rappor.planning.request import MAX_EPSILON, MAX_REPORTS, RATIO, PlanRequest, Progress
from rappor.planning.solve import Solver
from rappor.privacy.rounding import as_set

_COMMON = 0.01  # the frequency to detect if a request gives none
_EVERYBODY = 0.99


class Settled(NamedTuple):
    """A request's goal, reports and frequency, and which of them was solved for, if any."""

    goal: Goal
    reports: int
    frequency: float
    solved: str


def settle(request: PlanRequest, crowd: ExpectedCrowd, say: Progress) -> Settled:
    """Solve for the one of ε, N and frequency that was not given, or raise ParamsError."""
    solver = Solver(request, crowd)
    goal, reports, frequency = request.goal, request.reports, request.frequency
    if reports is None and goal is not None and frequency is not None:
        say("solving for the number of reports")
        fewest = solver.min_reports(goal, frequency)
        if fewest is None:
            raise ParamsError(_too_rare(solver, goal, frequency))
        return Settled(goal, fewest, frequency, "reports")
    if goal is None and reports is not None and frequency is not None:
        say("solving for the smallest ε")
        smallest = solver.min_epsilon(reports, frequency, request.epsilon_infinity)
        if smallest is None:
            raise ParamsError(_no_epsilon_enough(solver, reports, frequency))
        return Settled(smallest, reports, frequency, "epsilon")
    if goal is None or reports is None:
        raise ParamsError(
            "give two of epsilon_one (or epsilon_infinity), reports and frequency: the third "
            "follows from them"
        )
    reachable = solver.rarest(goal, reports)
    if frequency is None:
        if reachable > 1:
            raise ParamsError(_nothing(solver, goal, reports))
        return Settled(goal, reports, reachable, "frequency")
    if reachable > frequency:
        raise ParamsError(_contradiction(solver, goal, reports, frequency, reachable))
    return Settled(goal, reports, frequency, "")


def refuse_impossible(given: PlanRequest) -> None:
    """Raise ParamsError for an ε or N of 0 or less, and for less than one report."""
    for name in ("epsilon_one", "epsilon_infinity"):
        epsilon = getattr(given, name)
        if is_real(epsilon) and epsilon <= 0:
            raise ParamsError(_no_epsilon(name, given))
    reports: Any = given.reports  # as the caller gave them: not checked yet
    frequency: Any = given.frequency
    if is_real(frequency) and frequency >= 1:
        raise ParamsError(
            f"frequency = {frequency} is impossible: a share of reports is below 1. The nearest is "
            "what nearly everybody holds, frequency = 0.99"
        )
    if is_real(reports) and reports <= 0:
        raise ParamsError(_no_reports(given))
    if is_real(frequency) and frequency <= 0:
        raise ParamsError(
            f"frequency = {frequency} cannot be detected: nobody holds it. Leave frequency out "
            "to be "
            "told the smallest that the reports can reveal"
        )
    if is_real(frequency) and is_real(reports) and frequency * reports < 1:
        raise ParamsError(_less_than_one(given, frequency, reports))


def _no_epsilon(name: str, given: PlanRequest) -> str:
    epsilon = getattr(given, name)
    why = "says nothing" if epsilon == 0 else "does not exist"
    said = f"{name} = {epsilon} is impossible: a report with no privacy loss {why}. "
    frequency = given.frequency or _COMMON
    solver = _opened(given, epsilon_one=None, epsilon_infinity=None, frequency=frequency)
    if solver is None or solver.request.reports is None:
        return said + "The nearest is a small number above 0; values in use go from 0.01 to 10"
    reports = solver.request.reports
    found = solver.min_epsilon(reports, frequency, solver.request.epsilon_infinity)
    return said + (
        f"The nearest that lets {_count(reports)} reports detect {_percent(frequency)} of them: "
        + (_epsilons(found) if found else "none; it takes more reports or a larger frequency")
    )


def _no_reports(given: PlanRequest) -> str:
    said = f"reports = {given.reports} is impossible: nothing can be learnt from no reports. "
    frequency = given.frequency or _COMMON
    solver = _opened(given, reports=None, frequency=frequency)
    if solver is None or solver.request.goal is None:
        return said + (
            "The nearest: leave reports out, and give ε and a frequency to be told how many it "
            "takes"
        )
    goal = solver.request.goal
    found = solver.min_reports(goal, frequency)
    return said + (
        f"The nearest: to detect {_percent(frequency)} of them with {_epsilons(goal)} "
        + (f"it takes {_count(found)}" if found else f"not even {MAX_REPORTS:.0e} are enough")
    )


def _less_than_one(given: PlanRequest, frequency: float, reports: int) -> str:
    said = (
        f"frequency = {frequency:g} of {_count(reports)} reports is {frequency * reports:.3g} of a "
        "report, and no method can detect less than one. "
    )
    solver = _opened(given, frequency=None)
    if solver is None or solver.request.goal is None:
        return said + f"The nearest: at least {_count(math.ceil(1 / frequency))} reports"
    goal = solver.request.goal
    reachable, needed = solver.rarest(goal, reports), solver.min_reports(goal, frequency)
    these = f"these detect {_percent(reachable)}" if reachable <= 1 else "these detect nothing"
    return said + (
        f"The nearest: with {_epsilons(goal)} {these}, and "
        + (f"{frequency:g} takes {_count(needed)}" if needed else f"nothing detects {frequency:g}")
    )


def _opened(given: PlanRequest, **changes: Any) -> Solver | None:
    """A solver for the request with some fields changed; None if that request is refused too."""
    try:
        request = replace(given, **changes).checked()
    except ParamsError:
        return None
    return Solver(request, ExpectedCrowd.of(request.shape))


def _contradiction(
    solver: Solver, goal: Goal, reports: int, frequency: float, reachable: float
) -> str:
    request = solver.request
    said = [
        f"{_count(reports)} reports with {_epsilons(goal)} cannot detect {_percent(frequency)} of "
        f"them with {100 * request.power:g} % chance among {request.candidates:,} candidates. ",
        f"Nearest: {_percent(reachable)}" if reachable <= 1 else "They detect nothing",
    ]
    fewest = solver.min_reports(goal, frequency)
    if fewest is not None:
        said.append(f"; or {_count(fewest)} reports")
    smallest = solver.min_epsilon(reports, frequency, math.inf if request.one_time else None)
    if smallest is not None:
        said.append(f"; or {_epsilons(smallest)}")
    return "".join(said)


def _nothing(solver: Solver, goal: Goal, reports: int) -> str:
    fewest = solver.min_reports(goal, _EVERYBODY)
    more = "no number of reports is enough" if fewest is None else f"it takes {_count(fewest)}"
    return (
        f"{_count(reports)} reports with {_epsilons(goal)} detect nothing among "
        f"{solver.request.candidates:,} candidates, not even a string that nearly everybody "
        "holds: for that "
        f"{more}"
    )


def _too_rare(solver: Solver, goal: Goal, frequency: float) -> str:
    reachable = solver.rarest(goal, MAX_REPORTS)
    return (
        f"no number of reports up to {MAX_REPORTS:.0e} detects {_percent(frequency)} of them with "
        f"{_epsilons(goal)}. Nearest: {_percent(reachable)}, or a larger ε"
    )


def _no_epsilon_enough(solver: Solver, reports: int, frequency: float) -> str:
    ever = solver.request.epsilon_infinity
    once = MAX_EPSILON / RATIO if ever is None else min(ever, MAX_EPSILON)
    loosest = Goal(once, RATIO * once if ever is None else ever)
    reachable = solver.rarest(loosest, reports)
    nearest = _percent(reachable) if reachable <= 1 else "none"
    return (
        f"{_count(reports)} reports cannot detect {_percent(frequency)} of them, not even with "
        f"{_epsilons(loosest)}. Nearest: {nearest}, or more reports"
    )


def _epsilons(goal: Goal) -> str:
    said = f"epsilon_one = {as_set(goal.epsilon_one)}"
    if goal.epsilon_infinity == math.inf:
        return f"{said}, once"
    return f"{said} and epsilon_infinity = {as_set(goal.epsilon_infinity)}"


def _count(number: float) -> str:
    return f"{number:,}" if number < 1e15 else f"{float(number):.3g}"


def _percent(frequency: float) -> str:
    """Three significant digits, rounded up, so that the stated frequency is possible."""
    place = 2 - math.floor(math.log10(frequency))
    return f"{100 * math.ceil(round(frequency * 10.0**place, 6)) / 10.0**place:.3g} %"
