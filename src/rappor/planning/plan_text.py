"""Plans as text: what `print` and `rappor plan` print."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from rappor.checks import plural
from rappor.privacy.rounding import up
from rappor.terminal import percent, percent_up, table

if TYPE_CHECKING:
    from rappor.planning.association_plan import AssociationPlan
    from rappor.planning.plan import Plan, Plans
    from rappor.planning.power_check import Checked, PlanCheck

_WIDTH = 100


def describe(found: Plans) -> list[str]:
    """The plans as text."""
    goal, reports, frequency, solved = found.settled
    best, request = found.best, found.request
    ever = (
        "each client reports once"
        if goal.epsilon_infinity == math.inf
        else (f"ε∞ up to {up(goal.epsilon_infinity)}")
    )
    solved_for = {"reports": "Reports needed", "epsilon": "Smallest ε1"}.get(solved)
    answer = {"reports": f"{reports:,}", "epsilon": up(goal.epsilon_one)}.get(solved)
    lines = [
        f"Goal: ε1 up to {up(goal.epsilon_one)}, {ever}; {reports:,} reports, "
        f"{plural(request.candidates, 'candidate', 'candidates')} ({request.kind}).",
    ]
    if solved_for:
        lines.append(f"{solved_for} to detect {percent(frequency)} of them: {answer}.")
    lines += ["", "Best plan:", f"  {_flags(best)}", ""]
    lines += [f"  {line}" for line in table(_facts(found))]
    lines += [
        "",
        "The best plan first (the shortest report within 1 % of the rarest string), the others "
        "ordered by",
        "the rarest string that they detect:",
        "",
    ]
    lines += [f"  {line}" for line in table(_trade_off(found), left=0)]
    lines += ["", *_check_lines(found)]
    for caution in best.cautions:
        words = f"Caution ({caution.code}, {caution.source}): {caution.text}"
        lines += ["", *textwrap.wrap(words, _WIDTH)]
    return lines


def describe_association(found: AssociationPlan) -> list[str]:
    """The plan of an association as text."""
    rows, columns = found.table
    answer = {
        "reports": f"Reports needed: {found.reports:,}.",
        "epsilon": f"Smallest ε1: {up(found.epsilon_one)}, with {found.reports:,} reports.",
        "power": f"Power with {found.reports:,} reports: {percent(found.power)}.",
    }[found.solved]
    views = [
        (" and ".join(view.fields), percent(view.share) + " of the cohorts")
        for view in found.views.views
    ]
    times = found.separate_reports / found.reports
    separate = f"about {times:,.0f} times as many" if math.isfinite(times) else "more than any"
    lines = [
        f"Question: are the fields of a table of {rows} × {columns} associated, if for "
        f"{percent(found.strength)} of the clients",
        f"the first value decides the second? Level {percent(found.alpha)}.",
        answer,
        "",
        'One report on a tuple (kind = "tuple"):',
        f"  {_flags(found)}",
        "",
        *(f"  {line}" for line in table([("view", "share"), *views])),
        "",
        f"  ε of one report on both fields   {up(found.epsilon_one)}",
        f"  ε of any number of reports       {up(found.epsilon_infinity)}",
        f"  chance to find the association   {percent(found.power)}",
        f"  smallest strength that is found  {percent(found.detectable)}",
        f"  bytes of a report                {found.bytes_per_report}",
        "",
        f"Two separate reports with the same ε in all need {separate} reports: use the tuple.",
    ]
    if found.checked is not None:
        number, of = found.checked.found, found.checked.collections
        lines.append(f"Checked with {of} simulated collections: {number} were found.")
    if found.falls_short:
        lines.append("That CONTRADICTS the plan: count on what was measured.")
    return lines


def _flags(plan: Plan | AssociationPlan) -> str:
    return " ".join(f"--{name} {value:.15g}" for name, value in plan.params.to_dict().items())


def _facts(found: Plans) -> list[tuple[str, str]]:
    best = found.best
    rows = [("ε of one report", up(best.epsilon_one))]
    rows += [(f"ε of {n:,} reports", up(value)) for n, value in best.epsilon_n.items()]
    if not found.request.one_time:
        rows.append(("ε of any number of reports", up(best.epsilon_infinity)))
    rows += [
        (f"share detected with a chance of {percent(level.power)}", _share(level.frequency))
        for level in best.detectable
    ]
    if best.kind != "boolean":
        wise, fdr, present = best.expected
        alpha = percent(found.request.alpha)
        rows += [
            (f"detected of {present:,} strings, family-wise error {alpha}", f"{wise:.1f}"),
            (f"detected of {present:,} strings, false discovery rate {alpha}", f"{fdr:.1f}"),
        ]
    size = best.bytes_per_report
    rows += [
        ("size of a report", f"{size} byte{'s' * (size != 1)}"),
        ("reports in a cohort", f"{best.cohort_size:,.0f}"),
    ]
    return rows


def _trade_off(found: Plans) -> list[tuple[str, ...]]:
    shown = found.best.detectable
    repeated = not found.request.one_time
    head = ("k", "h", "m", "f", "p", "q", "ε1", *["ε∞"] * repeated)
    rows = [(*head, *(f"{100 * level.power:g} %" for level in shown), "found", "bytes", "cohort")]
    for plan in found:
        params = plan.params
        rows.append(
            (
                str(params.k),
                str(params.h),
                str(params.m),
                *(f"{number:.6g}" for number in (params.f, params.p, params.q)),
                up(plan.epsilon_one),
                *[up(plan.epsilon_infinity)] * repeated,
                *(_share(level.frequency) for level in plan.detectable),
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
    said = judgement(checked, 10 * found.request.check)
    sentence = f"Checked with {checked.collections:,} simulated collections. {said}"
    if checked.corrected:
        sentence += (
            " Earlier simulations did not agree with the formula, so the plan shows their "
            "frequencies."
        )
    rows = [("planned chance", "measured", "which is", "strings with this share")]
    rows += [
        (
            percent(level.power),
            f"{percent(level.measured)} ± {100 * level.std_error:.1f}",
            _standing(level),
            f"{level.strings:,}",
        )
        for level in checked.levels
    ]
    return [*textwrap.wrap(sentence, _WIDTH), "", *(f"  {line}" for line in table(rows, left=0))]


def _standing(level: Checked) -> str:
    """Where the measured power lies: "within 2 standard errors", "2.2 standard errors below"."""
    if level.verdict == "within":
        return "within 2 standard errors"
    return f"{abs(level.deviation):.1f} standard errors {level.verdict}"


def judgement(checked: PlanCheck, more: int) -> str:
    """What the simulations say about the plan; `more` collections would say it more closely."""
    apart = {
        verdict: " and ".join(
            percent(level.power) for level in checked.levels if level.verdict == verdict
        )
        for verdict in ("below", "above")
    }
    if not any(apart.values()):
        return "Every measured chance is within 2 standard errors of the planned one."
    said = " and ".join(
        f"{verdict} the planned chance of {levels}" for verdict, levels in apart.items() if levels
    )
    text = f"They measured a chance {said}."
    if not checked.holds:
        return f"{text} That CONTRADICTS the plan: count on what was measured."
    return f"{text} Chance alone can do that: --check {more} measures more closely."
