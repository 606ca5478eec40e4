"""A decoded table compared with the truth: what was found, missed and falsely detected (§5)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

from rappor.checks import is_whole, show
from rappor.csv_cells import original
from rappor.errors import ParamsError
from rappor.formats import read_text

Found = Mapping[str, tuple[float, float, float]]  # string -> share, and its 95 % interval


class TruthRow(NamedTuple):
    """One detected or missed string and its true count; all numbers are counts of reports."""

    string: str
    estimate: float
    low_95: float
    high_95: float
    truth: int
    verdict: str  # "found", "false" or "missed"


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a decoding compares with the truth. Shares are of all reports.

    Attributes:
        present: strings that at least one report holds.
        listed: candidates.
        present_listed: candidates that at least one report holds.
        detected: strings detected.
        true_positives: detected and present.
        false_positives: detected though nobody holds them.
        missed: present candidates that were not detected.
        fdr: false positives among those detected.
        l1: Σ abs(estimated - true share) over all strings; the estimate is 0 if not detected.
        mass_found: the true share of all strings that were rightly detected.
        mass_estimated: the estimated share of all detected strings.
        covered: detected strings whose 95 % interval contains the truth.
        rows: detected strings, then missed ones, largest first.
    """

    present: int
    listed: int
    present_listed: int
    detected: int
    true_positives: int
    false_positives: int
    missed: int
    fdr: float
    l1: float
    mass_found: float
    mass_estimated: float
    covered: int
    rows: tuple[TruthRow, ...] = field(default=(), repr=False)

    @property
    def total_variation(self) -> float:
        """Half of `l1`."""
        return self.l1 / 2

    def __str__(self) -> str:
        """One sentence."""
        false = "none" if not self.false_positives else f"{self.false_positives:,}"
        return (
            f"{self.true_positives:,} of {self.present_listed:,} listed strings found, "
            f"{false} false, {self.missed:,} missed; {self.covered:,} of {self.detected:,} "
            f"intervals hold the truth; {100 * self.mass_found:.3g} % of all reports explained"
        )


def judge(decoded: Any, truth: Mapping[str, int]) -> Judgement:
    """Compare a `Decoded` with how many reports really hold each string.

    >>> from rappor import Params, decode, simulate
    >>> drawn = simulate.simulate({"a": 3, "b": 1}, Params.preset("exponential"), 10**6, seed=1)
    >>> print(judge(decode(drawn.counts, ["a", "b", "c"]), drawn.truth))
    2 of 2 listed strings found, none false, 0 missed; 2 of 2 intervals hold the truth; 100 % of \
all reports explained
    """
    found = {
        row.string: (row.proportion, row.prop_low_95, row.prop_high_95) for row in decoded.detected
    }
    return judge_shares(found, decoded.rows.strings, truth)


def judge_shares(found: Found, listed: Iterable[str], truth: Mapping[str, int]) -> Judgement:
    """Compare the detected shares of any decoder with the truth."""
    if not truth or not all(is_whole(held) and held >= 0 for held in truth.values()):
        raise ParamsError(f"truth must map strings to whole numbers of reports, got {show(truth)}")
    reports = max(sum(truth.values()), 1)
    present = {name: held / reports for name, held in truth.items() if held}
    known = set(listed)
    right = [name for name in found if name in present]
    missed = [name for name in present if name in known and name not in found]
    l1 = sum(abs(found.get(name, (0.0,))[0] - share) for name, share in present.items())
    l1 += sum(abs(share) for name, (share, _, _) in found.items() if name not in present)
    rows = [
        TruthRow(
            string=name,
            estimate=reports * share,
            low_95=reports * low,
            high_95=reports * high,
            truth=truth.get(name, 0),
            verdict="found" if name in present else "false",
        )
        for name, (share, low, high) in sorted(
            found.items(), key=lambda item: (-item[1][0], item[0])
        )
    ]
    rows += [
        TruthRow(name, 0.0, 0.0, 0.0, truth[name], "missed")
        for name in sorted(missed, key=lambda name: (-truth[name], name))
    ]
    return Judgement(
        present=len(present),
        listed=len(known),
        present_listed=sum(name in known for name in present),
        detected=len(found),
        true_positives=len(right),
        false_positives=len(found) - len(right),
        missed=len(missed),
        fdr=(len(found) - len(right)) / max(1, len(found)),
        l1=l1,
        mass_found=sum(present[name] for name in right),
        mass_estimated=sum(share for share, _, _ in found.values()),
        covered=sum(
            low <= present.get(name, 0.0) <= high for name, (_, low, high) in found.items()
        ),
        rows=tuple(rows),
    )


def read_truth(path: str | PathLike[str]) -> dict[str, int]:
    """The truth.csv that `rappor simulate` writes: `string,count`; other columns are ignored."""
    reader = csv.reader(io.StringIO(read_text(path, newline=""), newline=""))
    head = next(reader, [])
    if head[:2] != ["string", "count"]:
        raise ParamsError(
            f"{path}: the first line must be string,count, as `rappor simulate` writes it; "
            f"got {show(','.join(head))}"
        )
    truth: dict[str, int] = {}
    for row in reader:
        if len(row) < 2 or not (row[1].isascii() and row[1].isdigit()):
            raise ParamsError(
                f"{path}: line {reader.line_num} must be a string and a whole number, got "
                f"{show(','.join(row))}"
            )
        truth[original(row[0])] = int(row[1])
    return truth
