"""Decoded results next to the truth of a simulation, for a person at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rappor.charts.numbers import show_finding
from rappor.decoding.exports import shows_all
from rappor.decoding.result_table import (
    MAX_ROWS,
    NOUNS,
    align,
    p_text,
    share_text,
    snr_text,
    visible,
)

if TYPE_CHECKING:
    from rappor.decoding.result import Decoded
    from rappor.simulate.judge import Judgement

_MISSED_SHOWN = 5
_HEAD = (
    *("estimate", "95 % interval", "std. error", "p-value", "truth", "share", "SNR", "verdict"),
)


def next_to_truth(
    decoded: Decoded, judged: Judgement, truth: Mapping[str, int], *, every: bool = False
) -> list[str]:
    """Detected rows with their truth, at most 50; then the largest that were missed.

    `every`, and kinds with a bit for each value, show all rows.
    """
    verdicts = {row.string: row.verdict for row in judged.rows}
    missed = [row.string for row in judged.rows if row.verdict == "missed"]
    detected = decoded.detected
    if shows_all(decoded, every):
        shown, named = list(decoded.rows), missed
    else:
        named = missed[:_MISSED_SHOWN]
        shown = [*detected[:MAX_ROWS], *map(decoded.row, named)]
    cells: list[tuple[str, ...]] = [(NOUNS[decoded.kind][0], *_HEAD)]
    for row in shown:
        value, interval = show_finding(
            row.estimate, *row.interval, row.detected, "count", decoded.reports
        )
        cells.append(
            (
                visible(row.string),
                value,
                interval,
                f"{row.std_error:,.0f}",
                p_text(row.p_value),
                f"{truth.get(row.string, 0):,}",
                share_text(row),
                snr_text(row),
                verdicts.get(row.string, "absent"),
            )
        )
    lines = align(cells) if shown else ["Nothing was detected, and nothing was missed."]
    if not shows_all(decoded, every) and len(detected) > MAX_ROWS:
        lines.append(f"… and {len(detected) - MAX_ROWS:,} more detected (--all prints every one)")
    if len(missed) > len(named):
        lines.append(f"… and {len(missed) - len(named):,} rarer ones missed")
    return lines
