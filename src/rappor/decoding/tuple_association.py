"""Associate two fields of one tuple: design, fit, and the checks of the result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.checks import plural
from rappor.decoding.associate import (
    NOTABLE_EXCESS,
    assembled,
    check_estimates,
    check_few,
    check_repeats,
)
from rappor.decoding.association import Association
from rappor.decoding.field_design import FieldValues
from rappor.decoding.options import Correction
from rappor.decoding.quality import Check, check_balance, check_ones
from rappor.decoding.repeats import total_repeats
from rappor.decoding.tuple_design import TupleDesign, fields_of, tuple_design
from rappor.decoding.tuple_fit import TupleFit, fit_tuples
from rappor.errors import DecodeError
from rappor.mechanism.views import Views
from rappor.privacy import epsilon_infinity, epsilon_one
from rappor.privacy.rounding import up


def associate_tuple(
    parts: Sequence[Counts],
    candidates: Sequence[FieldValues] | Mapping[str, Any],
    *,
    views: Views | None,
    fields: Sequence[str] | None,
    dialect: str | None,
    null_reports: bool,
    correction: Correction,
    alpha: float,
) -> Association:
    """The joint table of two fields of a tuple; see `rappor.associate`."""
    counts = parts[0]
    if counts.kind != "tuple":
        raise DecodeError(
            f"counts must be PairCounts, or Counts of kind tuple; these are of kind {counts.kind}, "
            "which holds one variable"
        )
    if not isinstance(views, Views):
        raise DecodeError(
            "counts of a tuple do not say what each cohort sees: give the collection's fields and "
            "views (views=collection.tuple_views)"
        )
    totals = np.sum([part.totals for part in parts], axis=0)
    if not totals.sum():
        raise DecodeError("there are no reports: collect some, or choose another period")
    chosen = fields_of(views, fields, candidates)
    design = tuple_design(counts.params, totals, views, chosen, dialect or counts.dialect)
    fit = fit_tuples(parts, design, null_reports=null_reports)
    # Where p and q changed, a report costs at most what the dearest of them does.
    cost = (
        max(epsilon_one(part.params, "tuple") for part in parts),
        max(epsilon_infinity(part.params, "tuple") for part in parts),
    )
    known = all(part.reports_per_client is not None for part in parts)
    repeats = total_repeats(parts)
    checks = [
        check_balance([totals], repeats),
        check_ones(parts, null_reports=null_reports),
        check_repeats(repeats if known else None),
        *_check_missing(fit, design),
        _check_cohorts(fit, design),
        check_few(fit, chosen),
        check_estimates(fit),
        *_check_views(design),
        _check_tested(fit),
        _check_epsilon(cost),
    ]
    title = counts.collection or ""
    return assembled(
        fit,
        chosen,
        reports=int(totals.sum()),
        method="tuple",
        epsilons=cost,
        correction=correction,
        alpha=alpha,
        checks=checks,
        title=f"{title} v{counts.version}" if title and counts.version else title,
    )


def _check_missing(fit: TupleFit, design: TupleDesign) -> list[Check]:
    """Whether bits show a frequent value that is missing from a list."""
    if not any(each.is_open for each in design.fields):
        return []
    factor = max(fit.excess)
    if fit.lifted > design.matrix.shape[0] // 1_000 + 2:
        bits = plural(fit.lifted, "bit is", "bits are")
        text = (
            f"{bits} far above what listed values explain, and hardly count. A frequent value is "
            "probably missing from a list."
        )
        return [Check("missing", False, text)]
    if factor > NOTABLE_EXCESS:
        text = (
            f"The bits hold more than noise and listed values explain (variance × {factor:.1f}). A "
            "frequent value is probably missing from a list; intervals allow for it."
        )
        return [Check("missing", False, text)]
    text = "No sign of a frequent value that is missing from a list."
    return [Check("missing", True, text)]


def _check_cohorts(fit: TupleFit, design: TupleDesign) -> Check:
    """Whether some cohorts do not fit while the others do."""
    if not fit.odd_cohorts:
        return Check("cohorts", True, "Every cohort fits as well as the others.")
    listed = ", ".join(map(str, fit.odd_cohorts[:10]))
    text = (
        f"{len(fit.odd_cohorts)} of {len(design.cohorts)} cohorts do not fit while the others do: "
        f"{listed}. Their reports may be forged, damaged or made by other clients."
    )
    return Check("cohorts", False, text)


def _check_views(design: TupleDesign) -> list[Check]:
    """Which shares no cohort tells, and which view would: a fact, never a failure."""
    made = []
    for place, is_known in enumerate((design.first_alone, design.second_alone)):
        if is_known:
            continue
        here, there = design.fields[place].name, design.fields[1 - place].name
        text = (
            f"No cohort sees {here} alone, and {there} has values that are not listed: the share "
            f"of a value of {here} by itself is not known, nor how those values of {there} divide. "
            f"A view of {here} would tell."
        )
        made.append(Check("views", True, text))
    return made


def _check_tested(fit: TupleFit) -> Check:
    """Whether the listed pairs hold enough to ask whether the fields are independent."""
    if fit.testable:
        return Check("tested", True, "The listed pairs are frequent enough to be tested.")
    text = (
        "The listed pairs together are hardly more than noise: independence was not tested. Are "
        "these the values that clients hold, and the dialect that they use?"
    )
    return Check("tested", False, text)


def _check_epsilon(cost: tuple[float, float]) -> Check:
    """That ε is that of one report, whatever the cohort sees: a fact, never a failure."""
    ever = (
        "; a second report would cost it again"
        if math.isinf(cost[1])
        else f" and at most {up(cost[1])} for all reports on one tuple of values"
    )
    text = (
        f"One report tells both fields: ε is {up(cost[0])} for one report{ever}, whatever the "
        "client's cohort sees."
    )
    return Check("epsilon", True, text)
