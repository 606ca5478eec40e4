"""A decoder of one's own: used as it is, corrected for all candidates, refused in plain English."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

import rappor
from rappor import DecodeError, Params
from rappor.decoding import DecodeTask, Estimate

PARAMS = Params(32, 2, 16, 0.25, 0.25, 0.75)
NAMES = [f"s{number}" for number in range(12)]
SHARES = {name: 0.6**rank for rank, name in enumerate(NAMES[:6])}
COUNTS = rappor.simulate.counts(SHARES, PARAMS, reports=100_000, seed=3)


class BitMeans:
    """Each candidate alone: the mean of its bits, less what strings spread evenly put there."""

    name = "bit means"

    def decode(self, task: DecodeTask) -> list[Estimate]:
        base, n = task.observed.expected, task.reports
        bits = task.matrix.sum(axis=0)
        share = (task.matrix.T @ task.shares / bits - base) / (1 - base)
        error = np.sqrt(task.matrix.T @ task.variance) / bits / (1 - base)
        return [
            Estimate(string, n * x, n * e, n * (x - 2 * e), n * (x + 2 * e), float(ndtr(-x / e)))
            for string, x, e in zip(task.candidates, share, error, strict=True)
        ]


class Says:
    """A decoder that says a given thing of every candidate, and some things of single ones."""

    name = "says"

    def __init__(self, *numbers: Any, rows: Any = None) -> None:
        self.numbers = numbers or (10.0, 5.0, 0.0, 20.0, 0.5)
        self.rows = rows

    def decode(self, task: DecodeTask) -> Any:
        usual = [Estimate(string, *self.numbers) for string in task.candidates]
        return usual if self.rows is None else self.rows(usual)


def test_its_rows_are_the_table_and_its_name_is_the_method() -> None:
    decoded = rappor.decode(COUNTS, NAMES, decoder=BitMeans())
    assert decoded.method == "bit means"
    assert sorted(row.string for row in decoded.rows) == sorted(NAMES)
    assert decoded.row("s0").proportion == pytest.approx(0.42, abs=0.05)
    assert [row.string for row in decoded.detected][:2] == ["s0", "s1"]
    assert "those of the decoder bit means" in decoded.notes[-1]
    assert "χ²/dof" in str(decoded)
    assert "robust path" not in str(decoded)
    assert rappor.diagnose(decoded).detectable[0].share < 0.1
    assert decoded.plot().spec


def test_p_values_are_corrected_over_all_candidates() -> None:
    def rows(usual: list[Estimate]) -> list[Estimate]:
        return [row._replace(p_value=p) for row, p in zip(usual, [0.004, 0.01] * 6, strict=True)]

    plain = rappor.decode(COUNTS, NAMES, decoder=Says(rows=rows), correction="none")
    strict = rappor.decode(COUNTS, NAMES, decoder=Says(rows=rows), correction="bonferroni")
    assert len(plain.detected) == 12
    assert len(strict.detected) == 6
    assert strict.detected[0].adjusted_p_value == pytest.approx(0.048)


def test_an_estimate_below_zero_is_kept_and_shown_as_a_limit() -> None:
    decoded = rappor.decode(COUNTS, NAMES, decoder=Says(-30.0, 20.0, -70.0, 10.0, 0.9))
    row = decoded.row("s0")
    assert (row.raw_estimate, row.estimate, row.interval) == (-30.0, 0.0, (0.0, 10.0))
    assert not row.detected


def test_estimates_that_add_up_to_more_than_all_reports_are_a_warning() -> None:
    decoded = rappor.decode(COUNTS, NAMES, decoder=Says(20_000.0, 10.0, 19_980.0, 20_020.0, 0.0))
    assert any("hold 240 % of the reports together" in text for text in decoded.warnings)
    assert any("The counts hold more than noise" in text for text in decoded.warnings)


def test_no_reports_give_an_empty_table_without_calling_it() -> None:
    nothing = rappor.Counts(params=PARAMS, totals=np.zeros(16), ones=np.zeros((16, 32)))
    decoded = rappor.decode(nothing, NAMES, decoder=Says("not a number"))
    assert (decoded.method, decoded.reports, decoded.detected) == ("says", 0, [])


def without(usual: list[Estimate]) -> list[Estimate]:
    return usual[:-2]


def one_more(usual: list[Estimate]) -> list[Estimate]:
    return [*usual, usual[0]._replace(string="stranger")]


def twice(usual: list[Estimate]) -> list[Estimate]:
    return [*usual, usual[0]]


@pytest.mark.parametrize(
    ("decoder", "words"),
    [
        (Says(rows=without), "returned no row for 2 candidates, such as 's8': return one Estimate"),
        (Says(rows=one_more), "a row for 'stranger', which is not among the candidates"),
        (Says(rows=twice), "returned two rows for 's0': return one Estimate for every"),
        (Says(rows=lambda usual: 7), "returned 7: return one Estimate for every candidate, in a"),
        (Says(rows=lambda usual: ["s0"]), "returned 's0', which is no Estimate: return one"),
        (Says(rows=lambda usual: usual[0].nothing), "failed with AttributeError: .*; mend it"),
        (Says(math.nan, 5.0, 0.0, 20.0, 0.5), "estimate = nan; every number must be finite"),
        (Says(10.0, 5.0, 0.0, math.inf, 0.5), "high = inf; every number must be finite"),
        (Says(10.0, None, 0.0, 20.0, 0.5), "std_error = None; every number must be finite"),
        (Says(10.0, -1.0, 0.0, 20.0, 0.5), "std_error = -1; it must be 0 or more"),
        (Says(10.0, 5.0, 0.0, 20.0, 1.5), "p_value = 1.5; it must be from 0 to 1"),
        (Says(30.0, 5.0, 0.0, 20.0, 0.5), "the estimate 30 outside its interval, 0 to 20; low"),
    ],
)
def test_wrong_results_are_refused_with_what_to_return(decoder: Says, words: str) -> None:
    with pytest.raises(DecodeError, match=f"the decoder 'says' .*{words}"):
        rappor.decode(COUNTS, NAMES, decoder=decoder)


def test_what_is_no_decoder_is_refused_with_what_one_is() -> None:
    anonymous = type("Anonymous", (), {"decode": lambda self, task: []})()
    for given, words in [
        (BitMeans, r"an object, got the class BitMeans: call it first, BitMeans\(\)"),
        (object(), r"an object with a name and a method decode\(task\)"),
        (anonymous, 'needs a name, .*: add `name = "..."` to it; got None'),
    ]:
        with pytest.raises(DecodeError, match=words):
            rappor.decode(COUNTS, NAMES, decoder=given)  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="a Decoder goes into decoder="):
        rappor.decode(COUNTS, NAMES, method=BitMeans())  # type: ignore[arg-type]
    with pytest.raises(DecodeError, match="exclude each other: leave one of them out"):
        rappor.decode(COUNTS, NAMES, method="lasso", decoder=BitMeans())


def test_it_is_for_strings_only() -> None:
    counts = rappor.simulate.counts({"a": 1, "b": 2}, Params(2, 1, 1, 0.5, 0.5, 0.75), 100, seed=1,
                                    kind="category")  # fmt: skip
    with pytest.raises(DecodeError, match="for strings; counts of kind category have a closed"):
        rappor.decode(counts, ["a", "b"], decoder=BitMeans())
