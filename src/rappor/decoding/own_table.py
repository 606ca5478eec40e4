"""The table of a decoder of one's own: its rows corrected for all candidates, and checked (§4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from rappor.aggregate.counts import Counts
from rappor.decoding.design import Design
from rappor.decoding.forgery import forgery_of
from rappor.decoding.observe import Observed
from rappor.decoding.options import Correction
from rappor.decoding.own_decoder import Decoder, DecodeTask, OwnDetail, run_decoder
from rappor.decoding.quality import Check, check_result, overdispersed
from rappor.decoding.repeats import total_repeats
from rappor.decoding.result import Decoded, Mass, Picked, Rows, mass
from rappor.decoding.significance import adjust, cut_off
from rappor.decoding.strings import bound_on_repeats, empty_table
from rappor.typing import FloatArray

_BEYOND = 3.0  # standard errors by which a sum may exceed all reports


def decode_with(
    decoder: Decoder,
    parts: Sequence[Counts],
    design: Design,
    *,
    correction: Correction,
    alpha: float,
    notes: Sequence[str] = (),
    null_reports: bool = False,
) -> Decoded:
    """The table of all candidates; see `rappor.decode`.

    The p-values are corrected over all M candidates. Estimates and intervals are the decoder's,
    moved into 0 to N; `raw_estimate` keeps them as they were. A row that is not detected has an
    upper limit only.
    """
    task = DecodeTask(tuple(parts), design, alpha)
    reports = task.reports
    if not reports:
        return empty_table(parts, design, correction, alpha, decoder.name, notes)
    found = run_decoder(decoder, task)
    raw, error, p_value = found["estimate"], found["std_error"], found["p_value"]
    adjusted = adjust(p_value, correction)
    detected = (adjusted <= alpha) & (raw > 0)
    order = np.lexsort((np.arange(len(design)), -raw))
    rows = Rows(
        reports=reports,
        strings=Picked(design.strings.strings, order),
        estimate=np.clip(raw, 0.0, reports)[order],
        raw_estimate=raw[order],
        std_error=error[order],
        low=np.where(detected, np.clip(found["low"], 0.0, reports), 0.0)[order],
        high=np.clip(found["high"], 0.0, reports)[order],
        p_value=p_value[order],
        adjusted_p_value=adjusted[order],
        detected=detected[order],
    )
    cut = cut_off(p_value, int(detected.sum()), correction, alpha)
    typical = float(np.median(error))
    effect = bound_on_repeats(parts)
    chi2_dof = _chi2_dof(task.observed, design, np.where(detected, raw, 0.0) / reports)
    decoded = Decoded(
        rows=rows,
        reports=reports,
        candidates=len(design),
        cohorts=design.params.m,
        undetected_mass=_rest(raw, error, detected, reports),
        chi2_dof=chi2_dof,
        scale=1.0,
        design_effect=effect,
        robust=False,
        groups=tuple(
            tuple(design.strings.strings[column] for column in group) for group in design.groups()
        ),
        untestable=(),
        reports_per_client=total_repeats(parts),
        params_digest=parts[0].params.digest,
        kind="string",
        dialect=design.dialect,
        correction=correction,
        alpha=alpha,
        method=decoder.name,
        threshold=float(-ndtri(min(cut, 0.5))) * typical,
        forgery=forgery_of(parts),
        notes=(
            *notes,
            f"Estimates, intervals and p-values are those of the decoder {decoder.name}; rappor "
            "corrected the p-values for all candidates, and checked nothing else but their form.",
        ),
        detail=OwnDetail(task.observed.totals, typical / reports),
    )
    more = [_check_fit(chi2_dof, effect, task.observed), _check_sum(raw, error, detected, reports)]
    checks = check_result(decoded, parts, null_reports=null_reports, more=more)
    return replace(decoded, checks=checks)


def _rest(raw: FloatArray, error: FloatArray, detected: NDArray[np.bool_], reports: int) -> Mass:
    """Reports that no detected string explains; errors are taken to be independent."""
    return mass(
        reports - float(raw[detected].sum()),
        float(np.sqrt((error[detected] ** 2).sum())),
        reports,
    )


def _check_sum(
    raw: FloatArray, error: FloatArray, detected: NDArray[np.bool_], reports: int
) -> Check:
    """Whether the detected strings hold more than all reports, by more than 3 standard errors."""
    total, noise = float(raw[detected].sum()), float(np.sqrt((error[detected] ** 2).sum()))
    if total <= reports + _BEYOND * noise:
        return Check("sum", True, "The detected strings hold no more than all reports.")
    text = (
        f"The detected strings hold {100 * total / reports:.3g} % of the reports together, more "
        "than there are: the estimates are too large."
    )
    return Check("sum", False, text)


def _chi2_dof(seen: Observed, design: Design, share: FloatArray) -> float:
    """χ² per degree of freedom of what the detected strings, and others spread evenly, leave."""
    fitted = design.scatter(share) + (1.0 - float(share.sum())) * seen.expected
    table = fitted.reshape(seen.shares.shape)
    left = ((seen.shares - table) ** 2 / seen.variance(table))[seen.live]
    return float(left.sum()) / max(seen.rows - int((share != 0).sum()) - 1, 1)


def _check_fit(chi2_dof: float, effect: float, seen: Observed) -> Check:
    figure = f"χ² per degree of freedom {chi2_dof:.2f}"
    if not overdispersed(chi2_dof, effect, seen.rows):
        return Check("fit", True, f"Noise explains what the detected strings leave ({figure}).")
    text = (
        f"The counts hold more than noise and the detected strings explain ({figure}): the "
        "estimates are off, or strings are missing from the candidates."
    )
    return Check("fit", False, text)
