"""Are two variables associated: their joint table, with tests and honest errors.

docs/associate.md explains the method and what it assumes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtr, ndtri

from rappor.aggregate.counts import Counts
from rappor.aggregate.pair_counts import PairCounts
from rappor.checks import between_0_and_1, plural, show
from rappor.decoding.association import Association, cells_of, margins_of, unlisted
from rappor.decoding.field_design import FieldDesign, FieldValues, field_design, pair_of
from rappor.decoding.joint_fit import JointFit, ListedField
from rappor.decoding.options import Correction
from rappor.decoding.pair_fit import fit_pairs
from rappor.decoding.quality import Check, check_balance, check_ones
from rappor.decoding.significance import adjust, check_correction
from rappor.errors import DecodeError
from rappor.mechanism.kinds import check_kind
from rappor.mechanism.views import Views
from rappor.privacy import add_up, epsilon_infinity, epsilon_one
from rappor.privacy.rounding import up
from rappor.typing import BoolArray, FloatArray

NOTABLE_EXCESS = 1.5  # of the variance of residuals: a frequent value is missing from the list
_OUTSIDE_LEVEL = 1e-4  # of the test for cells below 0, all together


def associate(
    counts: PairCounts | Counts | Sequence[Counts],
    candidates: Sequence[FieldValues] | Mapping[str, FieldValues] = (None, None),
    *,
    views: Views | None = None,
    fields: Sequence[str] | None = None,
    names: tuple[str, str] | None = None,
    dialect: str | None = None,
    null_reports: bool = False,
    correction: Correction = "holm",
    alpha: float = 0.05,
) -> Association:
    """The joint table of two variables, a test of independence, and one for each cell.

    Args:
        counts: Counts of kind tuple, or several that differ in p and q only; or pair counts of two
            variables that clients reported together, each as a report of its own.
        candidates: what to look for in the first and in the second variable: strings as for
            `decode`; names for categories; `Ranges` for ordinals; None for booleans. The values of
            a tuple's categories and ordinals are known: None takes all. A mapping by the names of
            fields does as well.
        views: the fields of a tuple, and what each cohort sees of it: `Collection.tuple_views`.
        fields: which two fields of a tuple; default: the only two there are.
        names: what two separate variables are called; default: the names in the counts.
            The fields of a tuple have names.
        dialect: how clients place strings; default: the dialect of the counts.
        null_reports: whether clients without a tuple report too, with no bit set.
        correction: "fdr", "bh", "holm", "bonferroni" or "none", for the tests of single cells.
        alpha: the level of the test of independence, and the error rate of the correction.

    Returns:
        `Association`. The same input gives the same result.

    Raises:
        DecodeError: there are no reports, a variable has no list of values, or the table has more
            cells than the counts have equations.
    """
    check_correction(correction)
    between_0_and_1("alpha", alpha)
    parts = _parts(counts)
    if isinstance(counts, PairCounts):
        _refuse_given(
            "counts of a tuple", views=views, fields=fields, null_reports=null_reports or None
        )
    else:
        _refuse_given("pair counts", names=names)
    if not isinstance(counts, PairCounts):
        from rappor.decoding.tuple_association import associate_tuple

        return associate_tuple(
            parts,
            candidates,
            views=views,
            fields=fields,
            dialect=dialect,
            null_reports=null_reports,
            correction=correction,
            alpha=alpha,
        )
    pair = pair_of(candidates)
    sides = (counts.first, counts.second)
    called = _names(counts, names)
    if not counts.reports:
        raise DecodeError("there are no reports: collect some, or name another file")
    designs = (
        field_design(called[0], sides[0], pair[0], dialect),
        field_design(called[1], sides[1], pair[1], dialect),
    )
    fit = fit_pairs(counts, designs)
    costs = [[each(side.params, check_kind(side.kind)) for side in sides] for each in _EPSILONS]
    ones = [
        Check(check.code, check.ok, f"{name}: {check.text}")
        for name, side in zip(called, sides, strict=True)
        for check in [check_ones([side])]
    ]
    checks = [
        check_balance([counts.totals], counts.reports_per_client or 1),
        *ones,
        check_repeats(counts.reports_per_client),
        *check_unlisted(fit, designs),
        check_few(fit, designs),
        check_estimates(fit),
        check_separate(costs, called),
    ]
    return assembled(
        fit,
        designs,
        reports=counts.reports,
        method="separate",
        epsilons=(_sum(costs[0]), _sum(costs[1])),
        correction=correction,
        alpha=alpha,
        checks=checks,
    )


def _parts(counts: object) -> list[Counts]:
    """The counts of a tuple; none for pair counts."""
    if isinstance(counts, PairCounts):
        return []
    parts = [counts] if isinstance(counts, Counts) else counts
    if isinstance(parts, Sequence) and parts and all(isinstance(part, Counts) for part in parts):
        return list(parts)
    raise DecodeError(f"counts must be PairCounts or Counts of kind tuple, got {show(counts)}")


def _refuse_given(only_for: str, **options: object) -> None:
    """DecodeError if an option was given that these counts have no use for."""
    for name, value in options.items():
        if value is not None:
            raise DecodeError(f"{name}= is for {only_for} only: leave it out")


_EPSILONS = (epsilon_one, epsilon_infinity)


def _sum(costs: Sequence[float]) -> float:
    return add_up([(cost, 1) for cost in costs])


def _names(counts: PairCounts, names: tuple[str, str] | None) -> tuple[str, str]:
    if names is not None:
        if len(names) != 2 or names[0] == names[1]:
            raise DecodeError(f"names must be two different texts, got {show(names)}")
        return names[0], names[1]
    return counts.first.collection or "first", counts.second.collection or "second"


def assembled(
    fit: JointFit,
    fields: tuple[ListedField, ListedField],
    *,
    reports: int,
    method: str,
    epsilons: tuple[float, float],
    correction: Correction,
    alpha: float,
    checks: Sequence[Check],
    title: str = "",
) -> Association:
    """The result of a fit: cells are tested and corrected for all listed pairs."""
    labels = (fields[0].labels, fields[1].labels)
    p_value, adjusted, associated = _tested(fit, fields, correction, alpha)
    return Association(
        names=(fields[0].name, fields[1].name),
        rows=cells_of(fit, labels, p_value, adjusted, associated),
        margins=margins_of(fit, labels),
        independence=fit.independence,
        unlisted_mass=unlisted(fit, fields[0].is_open or fields[1].is_open),
        reports=reports,
        tested=int(np.isfinite(p_value).sum()),
        method=method,
        epsilon_one=epsilons[0],
        epsilon_infinity=epsilons[1],
        correction=correction,
        alpha=alpha,
        checks=tuple(sorted(checks, key=lambda check: check.ok)),
        notes=tuple(dict.fromkeys((*fields[0].notes, *fields[1].notes))),
        title=title,
    )


def _tested(
    fit: JointFit, fields: tuple[ListedField, ListedField], correction: Correction, alpha: float
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Two-sided p-values of the departures of listed pairs, corrected, and the verdicts."""
    listed = tuple(slice(each.listed) for each in fields)
    here = fit.departure[listed] / np.sqrt(fit.departure_variance[listed])
    p_value, adjusted = (np.full_like(fit.share, np.nan) for _ in range(2))
    raw = 2 * ndtr(-np.abs(here))
    p_value[listed] = raw
    known = np.isfinite(raw)
    corrected = np.full_like(raw, np.nan)
    corrected[known] = adjust(raw[known], correction)
    adjusted[listed] = corrected
    return p_value, adjusted, np.nan_to_num(adjusted, nan=1.0) <= alpha


def check_repeats(repeats: int | None) -> Check:
    """How many reports a client may have sent on one pair: a fact, never a failure."""
    if repeats is None:
        text = (
            "The counts do not say how many reports one client may have sent on one pair of "
            "values; intervals assume one. If clients reported several times, say how often "
            "(reports_per_client)."
        )
    elif repeats > 1:
        text = (
            f"One client may have sent up to {repeats} reports on one pair of values; intervals "
            "are widened for it."
        )
    else:
        text = "No client sent more than one report on one pair of values."
    return Check("repeats", True, text)


def check_unlisted(fit: JointFit, fields: tuple[FieldDesign, FieldDesign]) -> list[Check]:
    """Whether residuals show a frequent value that is missing from a list."""
    made = []
    for each, factor in zip(fields, fit.excess, strict=True):
        if not each.is_open:
            continue
        if factor > NOTABLE_EXCESS:
            text = (
                f"{each.name}: the bits hold more than noise and listed values explain (variance "
                f"× {factor:.1f}). A frequent value is probably missing from the list; intervals "
                "allow for it."
            )
            made.append(Check("missing", False, text))
        else:
            text = f"{each.name}: no sign of a frequent value that is missing from the list."
            made.append(Check("missing", True, text))
    return made


def check_few(fit: JointFit, fields: tuple[ListedField, ListedField]) -> Check:
    """Whether the reports show more than the largest cells."""
    listed = tuple(slice(each.listed) for each in fields)
    typical = float(np.nanmedian(np.sqrt(fit.variance[listed])))
    cells = fields[0].listed * fields[1].listed
    even = 1.0 / max(cells, 1)
    if typical > even:
        needed = (typical / even) ** 2
        text = (
            f"Too few reports for {plural(cells, 'cell', 'cells')}: a typical standard error is "
            f"{100 * typical:.2g} % of all reports, more than an even share of {100 * even:.2g} %. "
            f"About {needed:.1f} times as many reports are needed, or fewer values."
        )
        return Check("reports", False, text)
    text = f"A typical cell has a standard error of {100 * typical:.2g} % of all reports."
    return Check("reports", True, text)


def check_estimates(fit: JointFit) -> Check:
    """Whether cells lie further below 0 than noise takes them."""
    z = fit.share / np.sqrt(fit.variance)
    limit = float(ndtri(_OUTSIDE_LEVEL / fit.share.size))
    wrong = int((z < limit).sum())
    if not wrong:
        return Check("estimates", True, "No cell is further below 0 than noise takes it.")
    text = (
        f"{plural(wrong, 'cell is', 'cells are')} below 0 by more than noise; were the reports "
        "made with these parameters and candidates?"
    )
    return Check("estimates", False, text)


def check_separate(costs: list[list[float]], names: tuple[str, str]) -> Check:
    """That ε adds where two variables are reported separately: a fact, never a failure."""
    total, ever = map(_sum, costs)
    text = (
        f"{names[0]} and {names[1]} are reported separately, so ε adds: {up(costs[0][0])} + "
        f"{up(costs[0][1])} = {up(total)} for one report on both, at most {up(ever)} for all "
        "reports on one pair of values. One tuple of both would tell far more at the same ε."
    )
    return Check("epsilon", True, text)
