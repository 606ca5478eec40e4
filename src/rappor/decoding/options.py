"""The choices that decoding offers, each with its texts; standard library only.

Corrections keep an error rate over all M candidates (§4): see `significance`.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from rappor.errors import DecodeError

# Raised when the decoder's numbers change: results that were saved with another are made again.
DECODER_VERSION = 5

USEFUL = 0.05  # reports that cannot show strings of this share are too few

Correction: TypeAlias = Literal["fdr", "bh", "holm", "bonferroni", "none"]
Method: TypeAlias = Literal["auto", "lasso"]


# λ of smoothing: bumps narrower than about 2π λ^(1/4) ranges (6, 20, 63) are flattened.
STRENGTHS = {"light": 1.0, "medium": 1e2, "strong": 1e4}


class CorrectionText(NamedTuple):
    """A correction in words.

    Attributes:
        title: its name.
        promise: what it keeps, for help texts.
        rate: the error rate with its level, to format with `alpha`.
    """

    title: str
    promise: str
    rate: str


CORRECTIONS: dict[Correction, CorrectionText] = {
    "fdr": CorrectionText(
        "Adaptive FDR",
        "of what is detected, at most alpha is false on average (adaptive: Benjamini-Hochberg with "
        "Storey's estimate of how many candidates are absent)",
        "FDR {alpha}, adaptive",
    ),
    "bh": CorrectionText(
        "Benjamini-Hochberg",
        "the same as the paper has it, without that estimate; finds a little less",
        "FDR {alpha}, Benjamini-Hochberg",
    ),
    "holm": CorrectionText(
        "Holm",
        "the chance of any false find is at most alpha (step-down, never weaker than bonferroni)",
        "family-wise error {alpha}, Holm",
    ),
    "bonferroni": CorrectionText(
        "Bonferroni",
        "the same as holm, simpler and a little stricter (p times M)",
        "family-wise error {alpha}, Bonferroni",
    ),
    "none": CorrectionText("None", "each candidate by itself", "p < {alpha}, not corrected"),
}

METHODS: dict[Method, str] = {
    "auto": "stepwise search, with tests that stay right if strings are missing from the list",
    "lasso": "the paper's procedure: non-negative LASSO, then least squares, with correct tests",
}


def check_decoded(kind: str, name: str = "") -> None:
    """DecodeError if the counts of this kind are not decoded but associated.

    Args:
        kind: the kind of the counts.
        name: their collection; "" if it is not known.

    >>> check_decoded("string", "homepage")
    """
    if kind == "tuple":
        what = f"{name} is" if name else "these counts are"
        raise DecodeError(
            f"{what} of kind tuple, which is not decoded: use `rappor associate` (in Python "
            "rappor.associate) for a table of two fields"
        )
