"""How many forged reports would have made a string up, or would hide it (docs/threat-model.md).

A forged report whose bits of the string are all set counts for (1-p*)/(q*-p*) honest ones, one
whose bits are all clear takes p*/(q*-p*) off. Its other bits are such that its number of ones is
that of an honest report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rappor.aggregate.counts import Counts
from rappor.mechanism.channel import channel
from rappor.typing import FloatArray


class Forgery(NamedTuple):
    """What one forged report does to the estimated count of the string it aims at.

    Attributes:
        adds: if all bits of the string are set.
        takes: if none is.
        mirrored: the value that a clear bit stands for, a boolean's "false"; "" for other kinds.
    """

    adds: float
    takes: float
    mirrored: str = ""

    def on_mirrored(self) -> Forgery:
        """What it does to N minus the count of a bit, where it is one of the N itself.

        >>> Forgery(3.5, 4.5, "false").on_mirrored()
        Forgery(adds=5.5, takes=2.5, mirrored='')
        """
        return Forgery(self.takes + 1.0, self.adds - 1.0)

    def to_make_up(self, count: FloatArray) -> FloatArray:
        """Forged reports that show this count of a string that nobody holds.

        >>> Forgery(4.0, 3.0).to_make_up(np.array([1000.0])).tolist()
        [250.0]
        """
        found: FloatArray = np.maximum(count, 0.0) / self.adds
        return found

    def to_hide(self, count: FloatArray, threshold: float) -> FloatArray:
        """Forged reports that press a count below the detection threshold; ∞ if none can.

        >>> Forgery(4.0, 3.0).to_hide(np.array([1000.0]), 400.0).tolist()
        [200.0]
        """
        above = np.maximum(count - threshold, 0.0)
        found: FloatArray = np.divide(
            above, self.takes, out=np.full_like(above, np.inf), where=self.takes > 0
        )
        return found


def forgery_of(parts: Sequence[Counts], mirrored: str = "") -> Forgery:
    """The effect of a forged report; over counts of several p and q, sent in proportion to them."""
    stars = np.array([channel(part.params) for part in parts], dtype=np.float64)
    p_star, gain = stars[:, 0], stars[:, 1] - stars[:, 0]
    sent = np.array([max(part.reports, 1) for part in parts], dtype=np.float64)
    precision = sent * gain**2 / np.maximum(p_star * (1 - p_star), 1e-12)
    weight = precision / precision.sum()
    adds, takes = float(weight @ ((1 - p_star) / gain)), float(weight @ (p_star / gain))
    return Forgery(adds, takes, mirrored)
