"""Plans as a table for a person and as a document for programs."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from rappor.checks import plural
from rappor.cli.output import percent, percent_up, table
from rappor.privacy.rounding import up

if TYPE_CHECKING:
    from rappor.planning import Plan, Plans

_WIDTH = 100


def document(found: Plans) -> dict[str, Any]:
    """Everything a plan says, ready for JSON."""
    goal, reports, frequency, solved = found.settled
    return {
        "request": {
            "epsilon_one": goal.epsilon_one,
            "epsilon_infinity": goal.epsilon_infinity,
            "reports": reports,
            "frequency": frequency,
            "power": found.request.power,
            "candidates": found.request.candidates,
            "alpha": found.request.alpha,
            "kind": found.request.kind,
            "solved": solved or None,
        },
        "plans": [_plan_document(each) for each in found],
        "checked": None
        if found.checked is None
        else {
            "collections": found.checked.collections,
            "holds": found.checked.holds,
            "corrected": found.checked.corrected,
            "power": [each._asdict() for each in found.checked.levels],
        },
    }


def _plan_document(plan: Plan) -> dict[str, Any]:
    return {
        "params": plan.params.to_dict(),
        "kind": plan.kind,
        "epsilon_one": plan.epsilon_one,
        "epsilon_n": plan.epsilon_n,
        "epsilon_infinity": plan.epsilon_infinity,
        "detectable": {
            str(each.power): {"count": each.count, "frequency": each.frequency}
            for each in plan.detectable
        },
        "expected": plan.expected._asdict(),
        "bytes_per_report": plan.bytes_per_report,
        "cohort_size": plan.cohort_size,
        "cautions": [
            {"code": each.code, "source": each.source, "text": each.text} for each in plan.cautions
        ],
    }


def describe(found: Plans) -> list[str]:
    """The plans as lines for a person."""
    goal, reports, frequency, solved = found.settled
    best, request = found.best, found.request
    ever = (
        "each client reports once"
        if goal.epsilon_infinity == math.inf
        else (f"ε∞ up to {goal.epsilon_infinity:g}")
    )
    solved_for = {"reports": "Reports needed", "epsilon": "Smallest ε1"}.get(solved)
    answer = {"reports": f"{reports:,}", "epsilon": f"{goal.epsilon_one:g}"}.get(solved)
    lines = [
        f"Goal: ε1 up to {goal.epsilon_one:g}, {ever}; {reports:,} reports, "
        f"{plural(request.candidates, 'candidate', 'candidates')} ({request.kind}).",
    ]
    if solved_for:
        lines.append(f"{solved_for} to detect {percent(frequency)} of them: {answer}.")
    lines += ["", "Best plan:", f"  {_flags(best)}", ""]
    lines += [f"  {line}" for line in table(_facts(found))]
    lines += ["", "The best plan, then the others by the rarest string they detect:", ""]
    lines += [f"  {line}" for line in table(_trade_off(found), left=0)]
    lines += ["", *_check_lines(found)]
    for caution in best.cautions:
        words = f"Caution ({caution.code}, {caution.source}): {caution.text}"
        lines += ["", *textwrap.wrap(words, _WIDTH)]
    return lines


def _flags(plan: Plan) -> str:
    return " ".join(f"--{name} {value:.15g}" for name, value in plan.params.to_dict().items())


def _facts(found: Plans) -> list[tuple[str, str]]:
    best = found.best
    rows = [("ε of one report", up(best.epsilon_one))]
    rows += [(f"ε of {n:,} reports", up(value)) for n, value in best.epsilon_n.items()]
    rows.append(("ε for ever", up(best.epsilon_infinity)))
    rows += [
        (f"detected with {percent(each.power)} chance, from", _share(each.frequency))
        for each in best.detectable
    ]
    if best.kind != "boolean":
        wise, fdr, present = best.expected
        alpha = percent(found.request.alpha)
        rows += [
            (f"of {present:,} strings found, family-wise error {alpha}", f"{wise:.1f}"),
            (f"of {present:,} strings found, false discoveries {alpha}", f"{fdr:.1f}"),
        ]
    size = best.bytes_per_report
    rows += [
        ("a report takes", f"{size} byte{'s' * (size != 1)}"),
        ("reports in a cohort", f"{best.cohort_size:,.0f}"),
    ]
    return rows


def _trade_off(found: Plans) -> list[tuple[str, ...]]:
    shown = found.best.detectable
    head = ("k", "h", "m", "f", "p", "q", "ε1", "ε∞")
    rows = [(*head, *(f"{100 * each.power:g} %" for each in shown), "found", "bytes", "cohort")]
    for plan in found:
        params = plan.params
        rows.append(
            (
                str(params.k),
                str(params.h),
                str(params.m),
                *(f"{number:.6g}" for number in (params.f, params.p, params.q)),
                up(plan.epsilon_one),
                up(plan.epsilon_infinity),
                *(_share(each.frequency) for each in plan.detectable),
                f"{plan.expected.fdr:.1f}",
                str(plan.bytes_per_report),
                f"{plan.cohort_size:,.0f}",
            )
        )
    return rows


def _share(frequency: float) -> str:
    return "nothing" if frequency > 1 else percent_up(frequency)


def _check_lines(found: Plans) -> list[str]:
    checked = found.checked
    if checked is None:
        return ["Not checked by simulation."]
    agree = "agree" if checked.holds else "DISAGREE"
    said = f"{checked.collections:,} simulated collections and the promise {agree}"
    if checked.corrected:
        said += ". They had not agreed with the formula, so the frequencies are those they showed"
    lines = [*textwrap.wrap(f"{said}:", _WIDTH), ""]
    rows = [("detected, promised", "measured", "of strings with this share")]
    rows += [
        (
            percent(each.power),
            f"{percent(each.measured)} ± {100 * each.std_error:.1f}",
            f"{each.strings:,}",
        )
        for each in checked.levels
    ]
    return [*lines, *(f"  {line}" for line in table(rows, left=0))]
