"""Tables 1 and 2 of the paper as data, and which test explains their p-values.

All numbers are copied from the paper (§5.2, §5.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from rappor.typing import FloatArray


class TableOneRow(NamedTuple):
    """A row of Table 1 as printed."""

    string: str
    estimate: int
    stdev: int
    p_value: float
    truth: int
    proportion: float
    snr: float


class TableTwoRow(NamedTuple):
    """A row of Table 2 as printed."""

    process: str
    estimate: int
    stdev: int
    p_value: float
    proportion: float


# Table 1, §5.2: "Top-20 strings with their estimated frequencies, standard deviations, p-values,
# true counts and signal to noise ratios". Prop. is the share of the truth, not of the estimate:
# V_8 and V_13 tell the two apart.
TABLE_1 = (
    TableOneRow("V_1", 48803, 2808, 5.65e-63, 49884, 0.05, 17.38),
    TableOneRow("V_2", 47388, 2855, 5.82e-58, 47026, 0.05, 16.60),
    TableOneRow("V_5", 41490, 2801, 4.30e-47, 40077, 0.04, 14.81),
    TableOneRow("V_7", 40682, 2849, 4.58e-44, 36565, 0.04, 14.28),
    TableOneRow("V_4", 40420, 2811, 1.31e-44, 42747, 0.04, 14.38),
    TableOneRow("V_3", 39509, 2882, 7.03e-41, 44642, 0.04, 13.71),
    TableOneRow("V_8", 36861, 2842, 5.93e-37, 34895, 0.03, 12.97),
    TableOneRow("V_6", 36220, 2829, 4.44e-36, 38231, 0.04, 12.80),
    TableOneRow("V_10", 34196, 2828, 1.72e-32, 31234, 0.03, 12.09),
    TableOneRow("V_9", 32207, 2805, 1.45e-29, 33106, 0.03, 11.48),
    TableOneRow("V_12", 30688, 2822, 9.07e-27, 28295, 0.03, 10.87),
    TableOneRow("V_11", 29630, 2831, 5.62e-25, 29908, 0.03, 10.47),
    TableOneRow("V_14", 27366, 2850, 2.33e-21, 25984, 0.03, 9.60),
    TableOneRow("V_19", 23860, 2803, 3.41e-17, 20057, 0.02, 8.51),
    TableOneRow("V_13", 22327, 2826, 4.69e-15, 26913, 0.03, 7.90),
    TableOneRow("V_15", 21752, 2825, 2.15e-14, 24653, 0.02, 7.70),
    TableOneRow("V_20", 20159, 2821, 1.26e-12, 19110, 0.02, 7.15),
    TableOneRow("V_18", 19521, 2835, 7.74e-12, 20912, 0.02, 6.89),
    TableOneRow("V_17", 18387, 2811, 7.86e-11, 22141, 0.02, 6.54),
    TableOneRow("V_21", 18267, 2828, 1.33e-10, 17878, 0.02, 6.46),
)

# Table 2, §5.3: "Windows processes detected".
TABLE_2 = (
    TableTwoRow("RASERVER.EXE", 8054, 1212, 1.56e-11, 0.04),
    TableTwoRow("RUNDLL32.EXE", 7488, 1212, 3.32e-10, 0.04),
    TableTwoRow("CONHOST.EXE", 7451, 1212, 4.02e-10, 0.04),
    TableTwoRow("SPPSVC.EXE", 6363, 1212, 7.74e-08, 0.03),
    TableTwoRow("AITAGENT.EXE", 5579, 1212, 2.11e-06, 0.03),
    TableTwoRow("MSIEXEC.EXE", 5147, 1212, 1.10e-05, 0.03),
    TableTwoRow("SILVERLIGHT.EXE", 4915, 1212, 2.53e-05, 0.03),
    TableTwoRow("BADAPPLE.COM", 4860, 1212, 3.07e-05, 0.03),
    TableTwoRow("LPREMOVE.EXE", 4787, 1212, 3.95e-05, 0.03),
    TableTwoRow("DEFRAG.EXE", 4760, 1212, 4.34e-05, 0.03),
)


class Fitted(NamedTuple):
    """How well a test explains published p-values.

    `factor` is the largest factor between a published p-value and the test's, 1 for a perfect fit.
    """

    test: str
    freedom: int | None
    factor: float


def _worst(computed: FloatArray, published: FloatArray) -> float:
    return float(np.exp(np.abs(np.log(computed / published)).max()))


def explain_p_values(z: ArrayLike, p_values: ArrayLike, max_freedom: int) -> list[Fitted]:
    """How well each of four tests explains published p-values, the best first.

    Args:
        z: estimates over their standard errors, shape (n,).
        p_values: the published ones, shape (n,).
        max_freedom: rows of the regression; the t-tests take the degrees of freedom, from half of
            it on, that fit best.

    >>> rows = [(row.estimate / row.stdev, row.p_value) for row in TABLE_1]
    >>> best = explain_p_values(*zip(*rows), max_freedom=2048)[0]
    >>> best.test, best.freedom, round(best.factor, 2)
    ('two-sided t', 1935, 1.03)
    """
    score, published = np.asarray(z, np.float64), np.asarray(p_values, np.float64)
    found = []
    for sides, word in ((1, "one-sided"), (2, "two-sided")):
        found.append(
            Fitted(f"{word} z", None, _worst(sides * stats.norm.sf(score), published)),
        )
        freedom = range(max_freedom // 2, max_freedom + 1)
        worst = [_worst(sides * stats.t.sf(score, degrees), published) for degrees in freedom]
        best = int(np.argmin(worst))
        found.append(Fitted(f"{word} t", freedom[best], worst[best]))
    return sorted(found, key=lambda fitted: fitted.factor)
