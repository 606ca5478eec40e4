"""Table 1 compared with ours, and what each rule detects (§5.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rappor.experiments.experiment import Table
from rappor.experiments.exponential.runs import (
    ABSENT,
    ALPHA,
    NAMES,
    PRESENT,
    REPORTS,
    RULES,
    SHARES,
    ExponentialRun,
    best_possible,
)
from rappor.experiments.published_tables import TABLE_1
from rappor.experiments.seeds import spread

_COLUMNS = ("Est.", "Stdev", "P.value", "Truth", "Prop.", "SNR")


def against_one_seed(first: ExponentialRun) -> Table:
    """The published rows and those of the first seed."""
    rows = []
    for row in TABLE_1:
        at = NAMES.index(row.string)
        estimate, error = first.estimate[at], first.error[at]
        rows.append(
            (
                *(row.string, row.estimate, row.stdev, f"{row.p_value:.2E}", row.truth),
                *(f"{row.proportion:.2f}", f"{row.snr:.2f}"),
                *(round(estimate), round(error), f"{first.p_value[at]:.2E}"),
                *(round(first.truth[at]), f"{first.truth[at] / REPORTS:.2f}"),
                f"{estimate / error:.2f}",
            )
        )
    paper, ours = ([f"{name} ({whose})" for name in _COLUMNS] for whose in ("paper", "ours"))
    return Table(
        "exponential-table-1",
        "Table 1: published, and one seed of ours",
        ("String", *paper, *ours),
        tuple(rows),
        "Rows in the paper's order. Ours is the first seed, not a chosen one. Prop. is the share "
        "of the "
        "truth, as it is in the paper (V_8, V_13). P-values differ: "
        "the paper's are two-sided t; ours are one-sided, the larger of a z-test's and of a test "
        "that places the string's bits at random.",
    )


def against_means(runs: Sequence[ExponentialRun]) -> Table:
    """The same rows as means over seeds."""
    rows = []
    for row in TABLE_1:
        at = NAMES.index(row.string)
        estimate = spread([float(run.estimate[at]) for run in runs])
        error = spread([float(run.error[at]) for run in runs]).mean
        truth = spread([float(run.truth[at]) for run in runs]).mean
        snr = spread([float(run.estimate[at] / run.error[at]) for run in runs]).mean
        middle = float(np.median([run.p_value[at] for run in runs]))
        rows.append(
            (
                *(row.string, row.estimate, round(estimate.mean), round(estimate.sd), row.stdev),
                *(round(error), f"{row.p_value:.2E}", f"{middle:.2E}", row.truth, round(truth)),
                *(f"{row.proportion:.2f}", f"{truth / REPORTS:.3f}"),
                *(f"{row.snr:.2f}", f"{snr:.2f}"),
            )
        )
    return Table(
        "exponential-table-1-seeds",
        f"Table 1: published, and means over {len(runs)} seeds",
        (
            *("String", "Est. (paper)", "Est. (mean)", "Est. (sd of seeds)", "Stdev (paper)"),
            *("Stdev (mean)", "P.value (paper)", "P.value (median)", "Truth (paper)"),
            *("Truth (mean)", "Prop. (paper)", "Prop. (mean)", "SNR (paper)", "SNR (mean)"),
        ),
        tuple(rows),
        "The standard deviation of an estimate between seeds is what its standard error promises.",
    )


def by_rule(runs: Sequence[ExponentialRun]) -> Table:
    """True and false detections by rule."""
    rows = []
    for rule in RULES:
        true, false = (
            np.array(numbers) for numbers in zip(*(r.found(rule) for r in runs), strict=True)
        )
        rows.append(
            (
                *(rule, f"{true.mean():.1f}", f"{true.std(ddof=1):.1f}", f"{false.mean():.2f}"),
                f"{100 * (false / np.maximum(true + false, 1)).mean():.1f} %",
                f"{100 * (false > 0).mean():.0f} %",
            )
        )
    return Table(
        "exponential-rules",
        f"Detections by rule, over {len(runs)} seeds",
        ("Rule", "True (mean)", "True (sd)", "False (mean)", "Share false", "Seeds with any false"),
        tuple(rows),
        "The first three rules use our decoder; the others the paper's LASSO and least squares, "
        "with z-tests. Uncorrected: two-sided .05, that is one-sided .025.",
    )


def by_string(runs: Sequence[ExponentialRun]) -> Table:
    """How often each string is detected."""
    best = best_possible(ALPHA / (PRESENT + ABSENT))
    rows = tuple(
        (
            name,
            f"{share:.6f}",
            f"{chance:.3f}",
            *(f"{np.mean([run.detected[rule][at] for run in runs]):.2f}" for rule in RULES),
        )
        for at, (name, share, chance) in enumerate(zip(NAMES, SHARES, best, strict=False))
    )
    return Table(
        "exponential-strings",
        "Share of seeds in which each string is detected",
        ("String", "True share", "Best possible at .05/200", *RULES),
        rows,
        show=10,
    )
