"""Summaries and verdicts as Markdown tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan

from calibration.associations import ASSOCIATIONS
from calibration.closed_forms import CLOSED_FORMS
from calibration.comparisons import COMPARISONS
from calibration.measure import NULL_LEVELS
from calibration.rules import Verdict
from calibration.scenarios import SCENARIOS
from calibration.summary import Mean, Share, Summary

Totals = Mapping[str, Mapping[str, Share]]  # by scenario, by what was counted
Summaries = Mapping[str, Mapping[str, Summary]]  # by method, by scenario


def markdown(found: Summaries, tallies: Totals, verdicts: Sequence[Verdict], about: str) -> str:
    """The whole report."""
    parts = [about]
    if found["auto"]:
        parts += [
            "**True positives, family-wise 5 % / FDR 5 %**",
            power_table(found),
            "**Errors**",
            error_table(found["auto"]),
            "**Estimates and intervals** (family-wise / FDR)",
            accuracy_table(found["auto"]),
        ]
    if tallies:
        parts += ["**Kinds with a bit for each value, and comparisons**", tally_table(tallies)]
    parts += ["**Rules**", rules_table(verdicts)]
    short = [each for each in verdicts if not each.passed]
    if short:
        parts.append(f"{len(short)} of {len(verdicts)} checks FALL SHORT.")
    else:
        parts.append(f"All {len(verdicts)} checks pass.")
    return "\n\n".join(parts) + "\n"


def power_table(found: Summaries) -> str:
    """What is detected, next to the goal and to what others detect."""
    rows = []
    for name, summary in found["auto"].items():
        scenario = SCENARIOS[name]
        rows.append(
            (
                f"{name} {scenario.about}",
                summary.seeds,
                _pair(summary),
                _figures(scenario.reach),
                _pair(found.get("oracle", {}).get(name)),
                _of_oracle(summary, found.get("oracle", {}).get(name)),
                _figures(scenario.oracle),
                _pair(found.get("lasso", {}).get(name)),
                _figures(scenario.paper),
                scenario.reference,
            )
        )
    heads = (
        "scenario", "seeds", "rappor", "to reach", "oracle here", "of it", "oracle, stored",
        "paper's method here", "paper's, stored", "google/rappor TP / FP",
    )  # fmt: skip
    return table(heads, rows)


def error_table(found: Mapping[str, Summary]) -> str:
    """Whether stated error rates hold."""
    rows = []
    for name, summary in found.items():
        rows.append(
            (
                name,
                _share(summary.detection["family"].any_false),
                _mean(summary.detection["fdr"].false_share),
                _mean(summary.detection["fdr"].negligible_share),
                *(_ratio(summary.nulls[level], level) for level in NULL_LEVELS),
                _percent(summary.robust),
                f"{summary.chi2_dof:.2f}" if summary.chi2_dof is not None else "",
            )
        )
    heads = (
        "scenario", "family-wise error", "FDR", "practical FDR",
        *(f"null p ≤ {level:g} / nominal" for level in NULL_LEVELS),
        "robust path", "χ²/dof",
    )  # fmt: skip
    return table(heads, rows)


def accuracy_table(found: Mapping[str, Summary]) -> str:
    """How good estimates and intervals are, and how long a decode takes."""
    rows = []
    for name, summary in found.items():
        both = [summary.accuracy[label] for label in ("family", "fdr")]
        rows.append(
            (
                name,
                " / ".join(_number(each.covered.value, 3) for each in both),
                " / ".join(_number(each.naive_covered.value, 3) for each in both),
                " / ".join(_number(each.width, 2) for each in both),
                " / ".join(_number(each.rmse, 0) for each in both),
                _percent(summary.undetected_mass_covered),
                f"{summary.seconds:.2f}" if summary.seconds is not None else "",
            )
        )
    heads = (
        "scenario", "coverage", "naive coverage", "width / naive", "RMSE, reports",
        "undetected mass covered", "seconds",
    )  # fmt: skip
    return table(heads, rows)


def tally_table(tallies: Totals) -> str:
    """What was counted in each scenario."""
    scenarios = CLOSED_FORMS | COMPARISONS | ASSOCIATIONS
    about = {name: scenario.about for name, scenario in scenarios.items()}
    rows = [
        (f"{name} {about[name]}", rule, f"{share.hits:,} of {share.of:,}", _number(share.value, 3))
        for name, found in tallies.items()
        for rule, share in found.items()
        if not (rule.startswith("false alarms") and share.hits == 0)
    ]
    return table(("scenario", "counted", "", "share"), rows)


def rules_table(verdicts: Iterable[Verdict]) -> str:
    return table(
        ("rule", "scenario", "", "numbers"),
        [
            (each.rule, each.scenario, "pass" if each.passed else "FALLS SHORT", each.numbers)
            for each in verdicts
        ],
    )


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table whose columns also line up in a terminal.

    >>> print(table(("a", "b"), [(1, "xyz")]))
    | a | b   |
    |---|-----|
    | 1 | xyz |
    """
    lines = [[str(cell) for cell in line] for line in (heads, *rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    padded = (
        [cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines
    )
    shown = [f"| {' | '.join(line)} |" for line in padded]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([shown[0], rule, *shown[1:]])


def to_json(
    found: Summaries, tallies: Totals, verdicts: Sequence[Verdict], digest: str
) -> dict[str, object]:
    """Everything as plain data."""
    return {
        "digest": digest,
        "passed": all(each.passed for each in verdicts),
        "verdicts": [each._asdict() for each in verdicts],
        "summaries": {
            method: {name: each.to_json() for name, each in of.items()}
            for method, of in found.items()
        },
        "tallies": {name: dict(each) for name, each in tallies.items()},
    }


def _pair(summary: Summary | None) -> str:
    if summary is None:
        return ""
    return " / ".join(
        f"{each.value:.1f} ± {each.error:.1f}"
        for each in (summary.detection["family"].true, summary.detection["fdr"].true)
    )


def _of_oracle(summary: Summary, oracle: Summary | None) -> str:
    """True positives as a share of the oracle's, if both were measured on the same seeds."""
    if oracle is None or oracle.seeds != summary.seeds:
        return ""
    return " / ".join(
        f"{100 * summary.detection[label].true.value / oracle.detection[label].true.value:.0f} %"
        for label in ("family", "fdr")
    )


def _figures(pair: tuple[float, float] | None) -> str:
    return f"{pair[0]:g} / {pair[1]:g}" if pair else ""


def _share(share: Share) -> str:
    return f"{share.value:.3f} ± {share.error:.3f}"


def _mean(mean: Mean) -> str:
    return f"{mean.value:.3f} ± {mean.error:.3f}"


def _ratio(share: Share, level: float) -> str:
    return _number(share.value / level, 2)


def _percent(share: Share | None) -> str:
    return f"{100 * share.value:.0f} %" if share and share.of else ""


def _number(value: float, digits: int) -> str:
    return "" if isnan(value) else f"{value:,.{digits}f}"
