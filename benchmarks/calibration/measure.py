"""The figures of one seed: decode, and compare with the truth."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibration.draw import Case, draw
from calibration.oracle import oracle_p_values
from rappor.decoding.decode import decode
from rappor.decoding.design import build_design
from rappor.decoding.frames import columns
from rappor.decoding.intervals import Z_95
from rappor.decoding.result import Decoded
from rappor.decoding.significance import adjust

NULL_LEVELS = (1e-2, 1e-3)
CORRECTIONS = {"family": "holm", "fdr": "fdr"}
ALPHA = 0.05
REPEATED = 3  # the first seeds, which are decoded again to see whether the result repeats

Record = dict[str, Any]


def measure(name: str, seed: int, method: str = "auto", same_names: bool = False) -> Record:
    """The figures of one seed, ready for JSON; the method may also be "oracle"."""
    case = draw(name, seed, same_names)
    about: Record = {"scenario": name, "seed": seed, "method": method}
    if method == "oracle":
        return about | compare_oracle(case, same_names)
    results, seconds = {}, {}
    for label, correction in CORRECTIONS.items():
        started = time.process_time()
        results[label] = decode(
            case.counts, case.design, correction=correction, alpha=ALPHA, method=method
        )
        seconds[f"{label}_seconds"] = time.process_time() - started
    found = about | compare(case, results) | seconds
    if seed <= REPEATED and method == "auto":
        found["same_again"] = is_same_again(case, results["fdr"])
    return found


def compare(case: Case, results: Mapping[str, Decoded]) -> Record:
    """What was detected and how well it is covered, for each correction; and null p-values."""
    listed = case.design.strings.strings
    place = {string: number for number, string in enumerate(listed)}
    found: Record = {}
    for label, decoded in results.items():
        rows = decoded.rows
        order = np.array([place[string] for string in rows.strings])
        true, chosen = case.truth[order], rows.detected
        covered = (rows.low <= true) & (true <= rows.high)
        naive = np.abs(rows.raw_estimate - true) <= Z_95 * rows.std_error
        width = (rows.high - rows.low)[chosen] / (2 * Z_95 * rows.std_error[chosen])
        found |= _counted(label, chosen, case.is_null[order], case.is_negligible[order])
        found |= {
            f"{label}_covered": int((covered & chosen).sum()),
            f"{label}_naive": int((naive & chosen).sum()),
            f"{label}_widths": width.round(3).tolist(),
            f"{label}_square": float(((rows.estimate - true)[chosen] ** 2).sum()),
            f"{label}_contradictions": contradictions(decoded),
            f"{label}_mass_covered": mass_is_covered(decoded, float(true[chosen].sum())),
        }
    absent = case.shares[order] == 0
    for level in NULL_LEVELS:
        found[f"null_{level:g}"] = int((rows.p_value[absent] <= level).sum())
    return found | {
        "alarms": [check.code for check in decoded.checks if not check.ok],
        "absent": int(absent.sum()),
        "robust": decoded.robust,
        "chi2_dof": decoded.chi2_dof,
        "scale": decoded.scale,
        "undetected_mass_covered": found["fdr_mass_covered"],
        "standard_error": case.error,
    }


def contradictions(decoded: Decoded) -> int:
    """Rows whose verdict, estimate and interval do not tell one story, in a file as in a table.

    A detected row has a lower end above 0, or none; one that was not detected has the lower end 0;
    an estimate lies within its interval.
    """
    rows, table = decoded.rows, columns(decoded.rows)
    shown, low, high = table["detected"], table["prop_low_95"], table["prop_high_95"]
    outside = (table["proportion"] < np.nan_to_num(low)) | (table["proportion"] > high)
    wrong = np.where(shown, low <= 0, low != 0) | outside | (rows.low > rows.high)
    return int(wrong.sum())


def mass_is_covered(decoded: Decoded, held: float) -> bool:
    """Whether the interval of undetected mass holds what the detected strings do not hold."""
    mass = decoded.undetected_mass
    return bool(mass.low_95 <= decoded.reports - held <= mass.high_95)


def compare_oracle(case: Case, same_names: bool) -> Record:
    """What the oracle detects."""
    p_values = oracle_p_values(case, same_names)
    found: Record = {}
    for label, correction in CORRECTIONS.items():
        chosen = adjust(p_values, correction) <= ALPHA
        found |= _counted(label, chosen, case.is_null, case.is_negligible)
    return found


def is_same_again(case: Case, first: Decoded) -> bool:
    """Whether the same input, its candidates in another order, gives the same bytes."""
    strings = list(case.design.strings.strings)[::-1]
    design = build_design(strings, case.scenario.params, case.scenario.dialect)
    again = decode(
        case.counts, design, correction=first.correction, alpha=first.alpha, method=first.method
    )
    names = ("estimate", "std_error", "low", "high", "p_value", "adjusted_p_value", "detected")
    same = all(
        getattr(first.rows, name).tobytes() == getattr(again.rows, name).tobytes() for name in names
    )
    return bool(
        same
        and list(first.rows.strings) == list(again.rows.strings)
        and first.undetected_mass == again.undetected_mass
        and first.warnings == again.warnings
    )


def _counted(
    label: str, chosen: np.ndarray, is_null: np.ndarray, is_negligible: np.ndarray
) -> Record:
    return {
        f"{label}_true": int((chosen & ~is_null).sum()),
        f"{label}_false": int((chosen & is_null).sum()),
        f"{label}_nearly": int((chosen & is_negligible).sum()),
    }
