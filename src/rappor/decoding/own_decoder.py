"""A decoder of one's own: what it is given, what it returns, and how that is checked (§4).

`rappor.decode(counts, candidates, decoder=...)` takes any object of the protocol `Decoder`, and
`rappor decode --decoder package.module:name` imports one. docs/decoder.md has an example. Pages
never run one: it is code, and what a page asks for comes over the network.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.checks import is_real, plural, show
from rappor.decoding.design import Design
from rappor.decoding.observe import Observed, observe
from rappor.errors import DecodeError
from rappor.typing import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csc_array

_EACH = "return one Estimate for every candidate"
_NUMBERS = ("estimate", "std_error", "low", "high", "p_value")


class Estimate(NamedTuple):
    """What a decoder says about one candidate; all but the p-value in reports.

    Attributes:
        string: the candidate.
        estimate: how many reports hold it. It may be below 0 or above all reports, as an unbiased
            estimate is when noise takes it there.
        std_error: its standard error, 0 or more.
        low: the lower end of its 95 % interval, at most the estimate.
        high: the upper end, at least the estimate.
        p_value: of the test that no report holds it, from 0 to 1, before any correction.
    """

    string: str
    estimate: float
    std_error: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, eq=False)
class DecodeTask:
    """What a decoder works on: shares ≈ matrix @ x, where x are the candidates' shares.

    Attributes:
        counts: one Counts, or several that differ in p and q only.
        design: the candidates and their bits; `design.params` has k, h and m.
        alpha: the error rate of the table.
    """

    counts: tuple[Counts, ...]
    design: Design
    alpha: float

    @property
    def candidates(self) -> tuple[str, ...]:
        """The M candidates, in the order of the columns of `matrix`."""
        return self.design.strings.strings

    @property
    def reports(self) -> int:
        """N."""
        return sum(part.reports for part in self.counts)

    @cached_property
    def observed(self) -> Observed:
        """The observations by cohort and bit, with their noise."""
        return observe(self.counts)

    @property
    def shares(self) -> FloatArray:
        """t_ij / N_j, the estimated share of reports that set each bit, shape (m * k,)."""
        return self.observed.shares.ravel()

    @property
    def variance(self) -> FloatArray:
        """The variance of `shares` if strings are spread evenly; ∞ in cohorts without reports."""
        seen = self.observed
        return seen.variance(np.full_like(seen.shares, seen.expected)).ravel()

    @cached_property
    def matrix(self) -> csc_array:
        """X, of shape (m * k, M); row j * k + i is bit i of cohort j."""
        return self.design.columns(range(len(self.design)))


class Decoder(Protocol):
    """A decoder of one's own.

    Attributes:
        name: what `Decoded.method` says.
    """

    @property
    def name(self) -> str:
        """What `Decoded.method` says."""

    def decode(self, task: DecodeTask) -> Iterable[Estimate]:
        """One Estimate for every candidate, in any order."""


@dataclass(frozen=True, slots=True, eq=False)
class OwnDetail:
    """What is known of the working of a decoder of one's own.

    Attributes:
        totals: reports by cohort, shape (m,).
        typical_error: the median standard error, as a share of the reports.
    """

    totals: FloatArray
    typical_error: float


def check_decoder(decoder: object) -> Decoder:
    """The decoder; DecodeError if it has no name or no method `decode`."""
    if isinstance(decoder, type):
        raise DecodeError(
            f"decoder must be an object, got the class {decoder.__name__}: call it first, "
            f"{decoder.__name__}()"
        )
    if not callable(getattr(decoder, "decode", None)):
        raise DecodeError(
            "decoder must be an object with a name and a method decode(task), as "
            f"rappor.decoding.Decoder describes; got {show(decoder)}"
        )
    name = getattr(decoder, "name", None)
    if not isinstance(name, str) or not name.strip():
        raise DecodeError(
            "a decoder needs a name, which results show as their method: add "
            f'`name = "..."` to it; got {show(name)}'
        )
    return cast(Decoder, decoder)


def run_decoder(decoder: Decoder, task: DecodeTask) -> dict[str, FloatArray]:
    """Its estimates, checked: columns of shape (M,), in the order of the candidates.

    Raises:
        DecodeError: it failed, or what it returned is not one sound Estimate for every candidate.
    """
    try:
        returned = decoder.decode(task)
        found = list(returned) if isinstance(returned, Iterable) else None
    except Exception as error:  # it is somebody's code: whatever goes wrong in it is told as that
        told = f"{type(error).__name__}: {error}".rstrip(": ")
        raise DecodeError(
            f"the decoder {show(decoder.name)} failed with {told}; mend it (with --debug, the "
            "command shows where)"
        ) from error
    if found is None:
        raise DecodeError(f"{_told(decoder)} {show(returned)}: {_EACH}, in a list")
    return _columns(decoder, found, task)


def _told(decoder: Decoder) -> str:
    return f"the decoder {show(decoder.name)} returned"


def _columns(decoder: Decoder, found: Sequence[Any], task: DecodeTask) -> dict[str, FloatArray]:
    """The estimates in the order of the candidates."""
    place = {string: number for number, string in enumerate(task.candidates)}
    table = np.full((len(_NUMBERS), len(place)), np.nan)
    seen = np.zeros(len(place), bool)
    for row in found:
        if not isinstance(row, Estimate):
            raise DecodeError(f"{_told(decoder)} {show(row)}, which is no Estimate: {_EACH}")
        number = place.get(row.string) if isinstance(row.string, str) else None
        if number is None:
            raise DecodeError(
                f"{_told(decoder)} a row for {show(row.string)}, which is not among the "
                f"candidates: {_EACH}, and for nothing else"
            )
        if seen[number]:
            raise DecodeError(f"{_told(decoder)} two rows for {show(row.string)}: {_EACH}")
        seen[number] = True
        table[:, number] = _sound(decoder, row)
    if not seen.all():
        first = task.candidates[int(np.flatnonzero(~seen)[0])]
        missing = plural(int((~seen).sum()), "candidate", "candidates")
        raise DecodeError(
            f"{_told(decoder)} no row for {missing}, such as {show(first)}: {_EACH}, with "
            "p_value 1 if it says nothing about one"
        )
    return dict(zip(_NUMBERS, table, strict=True))


def _sound(decoder: Decoder, row: Estimate) -> list[float]:
    """The numbers of a row; DecodeError if one is none, or if they contradict each other."""
    wrong = _not_finite(row) or _contradiction(row)
    if wrong:
        raise DecodeError(f"{_told(decoder)} for {show(row.string)} {wrong}")
    return [float(number) for number in row[1:]]


def _not_finite(row: Estimate) -> str:
    for name, given in zip(_NUMBERS, row[1:], strict=True):
        if not is_real(given) or not math.isfinite(given):
            return f"{name} = {show(given)}; every number must be finite"
    return ""


def _contradiction(row: Estimate) -> str:
    _, estimate, error, low, high, p_value = row
    if error < 0:
        return f"std_error = {error:g}; it must be 0 or more"
    if not 0 <= p_value <= 1:
        return f"p_value = {p_value:g}; it must be from 0 to 1"
    if not low <= estimate <= high:
        return (
            f"the estimate {estimate:g} outside its interval, {low:g} to {high:g}; low must be at "
            "most the estimate, and high at least"
        )
    return ""
