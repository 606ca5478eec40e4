"""What hides a value in addition to ε: deniability (§6) and Bloom ambiguity (§6.1).

Neither is a guarantee in the sense of differential privacy, and neither lowers ε.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import comb
from typing import NamedTuple

from rappor.checks import whole
from rappor.mechanism.bloom import bloom_positions, filter_bits
from rappor.mechanism.kinds import HASHED
from rappor.params import Params, check_params
from rappor.typing import Kind


class Deniability(NamedTuple):
    """How often the permanent response leaves nothing of a value's own bits.

    Attributes:
        all_zero: the probability (f/2)^n that every one of n signal bits of B' is 0.
        all_replaced: the probability f^n that a coin, not the value, decided every signal bit.
    """

    all_zero: Fraction
    all_replaced: Fraction


def signal_bits(params: Params, kind: Kind) -> tuple[int, int]:
    """The fewest and the most bits that a value sets.

    A string and a tuple set h. A category and a range set one, and so does true, the value of a
    boolean that sets any. Free bits set one to k, if any.

    >>> windows = Params.preset("windows")
    >>> signal_bits(windows, "string"), signal_bits(windows, "boolean")
    ((2, 2), (1, 1))
    >>> signal_bits(windows, "bits")
    (1, 128)
    """
    check_params(params)
    if kind == "bits":
        return 1, params.k
    return (params.h, params.h) if kind in HASHED else (1, 1)


def deniability(params: Params, bits: int | None = None) -> Deniability:
    """Both probabilities, exact. Such a B' still tells something: other values make it likelier.

    Args:
        params: the parameters.
        bits: n, the bits that the value sets; h if None. `signal_bits` has them for every kind.

    >>> float(deniability(Params.preset("windows")).all_replaced)
    0.25
    """
    check_params(params)
    f, n = params.exact.f, params.h if bits is None else whole("bits", bits, 1, params.k)
    return Deniability((f / 2) ** n, f**n)


def candidates_per_pattern(params: Params, candidates: int) -> Fraction:
    """Expected number of other candidates with the same bits as a given one, in one cohort.

    For h distinct bits chosen uniformly: (M - 1) / C(k, h). An average, not a guarantee.
    """
    check_params(params)
    return Fraction(whole("candidates", candidates, 1) - 1, comb(params.k, params.h))


def patterns(
    candidates: Iterable[str | bytes], cohort: int, params: Params, dialect: str = "rappor-v1"
) -> Counter[int]:
    """How many of the given candidates share each filter in one cohort; keys are filters."""
    return Counter(
        filter_bits(bloom_positions(candidate, cohort, params, dialect)) for candidate in candidates
    )
