"""The closed form for many bits and several groups of reports: T, its variance, its weights.

docs/theory/basic.md derives each line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc

from rappor.aggregate.counts import Counts
from rappor.checks import show
from rappor.decoding.bit_law import BitLaw
from rappor.decoding.observe import pooled_shares
from rappor.decoding.repeats import shared_noise
from rappor.errors import DecodeError
from rappor.mechanism.channel import channel
from rappor.typing import FloatArray, IntArray

Overlap = ArrayLike | Literal["bound"] | None


@dataclass(frozen=True, slots=True, eq=False)
class Bits:
    """What the counts say about each bit, in reports out of N.

    Attributes:
        reports: N over all groups.
        count: estimated true ones of each bit; may be negative or above N.
        variance: of `count`, about the realised number of true ones.
        if_none: the variance if no report had the bit.
        if_all: the variance if every report had it.
        weights: what each group counts, shape (bits, groups); rows sum to 1.
        design_effect: the largest factor by which repeated reports widened a variance.
        chi2_dof: disagreement between groups per degree of freedom; nan for one group, which
            leaves none.
        agreement: the p-value of that disagreement; 1 for one group.
        totals: reports by cohort over all groups, shape (m,); None if their numbers of cohorts
            differ.
        may_overlap: whether `variance` allows for clients that reported in two groups.
        law: how the estimated shares vary.
    """

    reports: int
    count: FloatArray
    variance: FloatArray
    if_none: FloatArray
    if_all: FloatArray
    weights: FloatArray
    design_effect: float
    chi2_dof: float
    agreement: float
    totals: IntArray | None
    may_overlap: bool
    law: BitLaw = field(repr=False)

    @property
    def share(self) -> FloatArray:
        """`count` as shares of N."""
        found: FloatArray = self.count / max(self.reports, 1)
        return found


def as_groups(counts: Counts | Sequence[Counts], kinds: Sequence[str]) -> list[Counts]:
    """One or several Counts as a list with one kind and one k, or DecodeError."""
    groups = [counts] if isinstance(counts, Counts) else list(counts)
    if not groups or not all(isinstance(group, Counts) for group in groups):
        raise DecodeError("counts must be rappor.Counts, or a list of them with at least one")
    first = groups[0]
    if first.kind not in kinds:
        raise DecodeError(f"the kind must be {' or '.join(kinds)}, got kind {first.kind!r}")
    for group in groups[1:]:
        if (group.kind, group.params.k) != (first.kind, first.params.k):
            raise DecodeError(
                f"counts to combine must have one kind and one k: {first.kind!r} with k = "
                f"{first.params.k}, and {group.kind!r} with k = {group.params.k}"
            )
    return groups


def estimate_bits(
    groups: Sequence[Counts],
    bits: int,
    *,
    overlap: Overlap = None,
    weights: Literal["best", "reports"] = "best",
) -> Bits:
    """T_i = N Σ_g w_g T_ig/N_g for the first `bits` bits.

    T_ig is the closed form of group g. With one group T_i = T_i1 and nothing is assumed. With
    several, `weights="best"` assumes that a bit has the same share in each group and weights by
    least variance; `weights="reports"` (w_g = N_g/N) adds the groups' counts and assumes nothing,
    but is as noisy as its noisiest group.

    Args:
        groups: one or more Counts with one k.
        bits: how many bits to estimate.
        overlap: pairs of reports in groups g and g' by one client on one value, shape (G, G), its
            diagonal ignored; "bound" for the most there can be; None for none.
        weights: how groups are weighted.
    """
    if weights not in ("best", "reports"):
        raise DecodeError(f"weights must be 'best' or 'reports', got {show(weights)}")
    pairs = _pairs(groups, overlap)
    full = [index for index, group in enumerate(groups) if group.reports]
    totals = None
    if len({group.params.m for group in groups}) == 1:
        totals = np.sum([group.totals for group in groups], axis=0)
    may_overlap = bool(pairs.any())
    if not full:
        zeros = np.zeros(bits)
        none = np.zeros((bits, len(groups)))
        nan, law = float("nan"), _law(groups, none, np.ones(len(groups)), zeros, zeros)
        return Bits(0, zeros, zeros, zeros, zeros, none, 1.0, nan, 1.0, totals, may_overlap, law)
    used = [groups[index] for index in full]
    pairs = pairs[np.ix_(full, full)]
    sizes = np.array([group.reports for group in used], dtype=np.float64)
    total = sum(group.reports for group in used)
    share = np.array([pooled_shares(group, bits) for group in used]).T
    single = _Noise(used, sizes, np.zeros_like(pairs))
    noise = _Noise(used, sizes, pairs)

    # Weights come from one share for all groups, not from each group's own noisy estimate, which
    # would favour groups that happen to have come out low.
    of = single if isinstance(overlap, str) else noise
    if weights == "reports":
        w = np.broadcast_to(sizes / total, share.shape)
    else:
        pooled = (best_weights(of.at(np.zeros(bits))) * share).sum(axis=1)
        w = best_weights(of.at(np.clip(pooled, 0, 1)))
    held = np.clip((w * share).sum(axis=1), 0, 1)
    combined = combine(share, noise.at(held), w)
    alone = combine(share, _Noise(used, sizes, None).at(held), w).variance
    # The weighted share is not quite the share of all reports: groups are samples too.
    uneven = ((w - sizes / total) ** 2 / sizes).sum(axis=1)
    sampling = held * (1 - held) * uneven
    apart = single.at(held) + np.eye(len(used)) * np.outer(held * (1 - held), 1 / sizes)[:, None, :]
    chi2_dof, agreement = _disagreement(combine(share, apart).chi2, len(used))
    return Bits(
        reports=total,
        count=combined.value * total,
        variance=(combined.variance + sampling) * total**2,
        if_none=_quadratic(w, noise.at(np.zeros(bits))) * total**2,
        if_all=_quadratic(w, noise.at(np.ones(bits))) * total**2,
        weights=_spread_out(w, full, len(groups)),
        design_effect=float(np.max(combined.variance / alone, initial=1.0)),
        chi2_dof=chi2_dof,
        agreement=agreement,
        totals=totals,
        may_overlap=may_overlap,
        law=_law(used, w, sizes, _quadratic(w, noise.shared), uneven),
    )


def _law(
    groups: Sequence[Counts],
    weights: FloatArray,
    sizes: FloatArray,
    shared: FloatArray,
    sampling: FloatArray,
) -> BitLaw:
    stars = np.array([channel(group.params) for group in groups], dtype=np.float64)
    p_star, q_star = (np.broadcast_to(column, weights.shape) for column in stars.T)
    alone = np.full(len(weights), np.inf)
    return BitLaw(weights, sizes, p_star, q_star, shared, sampling, alone)


class _Noise:
    """Covariance of the groups' shares: own noise on the diagonal, shared B' everywhere.

    `pairs` counts report pairs that share B' across groups; None leaves repetition out altogether.
    """

    def __init__(
        self, groups: Sequence[Counts], sizes: FloatArray, pairs: FloatArray | None
    ) -> None:
        of_bits = np.array([channel(group.params).noise for group in groups])
        self.if_zero, self.if_one = of_bits[:, 0] / sizes, of_bits[:, 1] / sizes
        self.shared = np.zeros((len(groups), len(groups)))
        if pairs is not None:
            kappa = np.array([shared_noise(group.params) for group in groups])
            self.shared = np.sqrt(np.outer(kappa, kappa)) * pairs / np.outer(sizes, sizes)
            repeated = [(group.reports_per_client or 1) - 1 for group in groups]
            np.fill_diagonal(self.shared, kappa * repeated / sizes)

    def at(self, share: FloatArray) -> FloatArray:
        """Shape (bits, G, G), where a bit has this share of true ones."""
        own = np.outer(share, self.if_one) + np.outer(1 - share, self.if_zero)
        return np.eye(len(self.if_one)) * own[:, None, :] + self.shared


def _quadratic(w: FloatArray, covariance: FloatArray) -> FloatArray:
    table = np.broadcast_to(covariance, (len(w), *covariance.shape[-2:]))
    found: FloatArray = np.einsum("ng,ngh,nh->n", w, table, w)
    return found


def _spread_out(w: FloatArray, full: list[int], groups: int) -> FloatArray:
    weights = np.zeros((len(w), groups))
    weights[:, full] = w
    return weights


def _same_memo(one: Counts, other: Counts) -> bool:
    """Whether reports of one client in both share B': p and q are all that may differ."""
    mine, theirs = one.params, other.params
    return (mine.k, mine.h, mine.m, mine.f) == (theirs.k, theirs.h, theirs.m, theirs.f) and (
        one.collection == other.collection and one.dialect == other.dialect
    )


def _max_pairs(one: Counts, other: Counts) -> float:
    """Σ_j min(N_gj R_g', N_g'j R_g), or 0 where the groups do not share B'."""
    if not _same_memo(one, other) or one.params.f == 0:
        return 0.0
    mine = one.totals * float(other.reports_per_client or 1)
    theirs = other.totals * float(one.reports_per_client or 1)
    return float(np.minimum(mine, theirs).sum())


def _pairs(groups: Sequence[Counts], overlap: Overlap) -> FloatArray:
    number = len(groups)
    most = np.zeros((number, number))
    for g, other in combinations(range(number), 2):
        most[g, other] = most[other, g] = _max_pairs(groups[g], groups[other])
    if overlap is None:
        return np.zeros_like(most)
    if isinstance(overlap, str):
        if overlap != "bound":
            raise DecodeError(f"overlap must be 'bound', a table or None, got {show(overlap)}")
        return most
    given = np.array(overlap, dtype=np.float64)
    if given.shape != most.shape or not np.array_equal(given, given.T):
        raise DecodeError(f"overlap must be a symmetric table of shape {most.shape}")
    np.fill_diagonal(given, 0.0)
    if not (given >= 0).all() or not (given <= most).all():
        raise DecodeError(
            "overlap must be from 0 to the pairs that two groups can share; groups that differ in "
            "more than p and q, or with f = 0, share none"
        )
    return given


def _disagreement(chi2: FloatArray, groups: int) -> tuple[float, float]:
    """χ² per degree of freedom between groups, and its p-value."""
    if groups == 1:
        return float("nan"), 1.0
    freedom = (groups - 1) * len(chi2)
    total = float(chi2.sum())
    return total / freedom, float(chdtrc(freedom, total))


class Combined(NamedTuple):
    """One estimate from several, for each of n things.

    `chi2` is Σ over groups of squared disagreement in units of noise: about G - 1 where all groups
    estimate the same thing.
    """

    value: FloatArray
    variance: FloatArray
    weights: FloatArray
    chi2: FloatArray


def combine(shares: ArrayLike, covariance: ArrayLike, weights: ArrayLike | None = None) -> Combined:
    """Σ w_g x_g with Σ w_g = 1 and the smallest variance w'Cw, where w = C⁻¹1 / (1'C⁻¹1).

    Without covariances this is inverse-variance weighting. A singular C (groups whose noise is the
    same noise) gives the best weights of least length. With given `weights`, those are used and
    the variance is theirs: with weights from 0 on and covariances that are upper bounds, it is an
    upper bound.

    Args:
        shares: x_g, shape (..., G).
        covariance: C, shape (..., G, G) or (G, G).
        weights: shape (..., G) or (G,), or None for the best.

    >>> found = combine([0.2, 0.4], [[1.0, 0.0], [0.0, 3.0]])
    >>> round(float(found.value), 6), round(float(found.variance), 6)
    (0.25, 0.75)
    """
    x = np.asarray(shares, dtype=np.float64)
    c = np.asarray(covariance, dtype=np.float64)
    groups = x.shape[-1] if x.ndim else 0
    if not groups or c.shape[-2:] != (groups, groups):
        raise DecodeError(f"shares {x.shape} and covariance {c.shape} must fit each other")
    c = np.broadcast_to(c, (*x.shape[:-1], groups, groups))
    w = best_weights(c) if weights is None else np.asarray(weights, dtype=np.float64)
    w = np.broadcast_to(w, x.shape)
    value = (w * x).sum(axis=-1)
    variance = np.einsum("...g,...gh,...h->...", w, c, w)
    apart = x - (best_weights(c) * x).sum(axis=-1)[..., None]
    if groups == 1:
        chi2 = np.zeros_like(value)
    else:
        inverse = np.linalg.pinv(c, rcond=1e-12, hermitian=True)
        chi2 = np.einsum("...g,...gh,...h->...", apart, inverse, apart)
    return Combined(value, np.maximum(variance, 0.0), w, chi2)


def best_weights(covariance: FloatArray) -> FloatArray:
    """The weights of least variance that sum to 1, shape (..., G), for C of shape (..., G, G).

    Solves [[C, 1], [1', 0]] (w, μ) = (0, 1), which also has a solution where C is singular.
    """
    groups = covariance.shape[-1]
    if groups == 1:
        return np.ones(covariance.shape[:-1])
    size = np.einsum("...gg->...", covariance) / groups
    scaled = covariance / np.where(size > 0, size, 1.0)[..., None, None]
    system = np.ones((*covariance.shape[:-2], groups + 1, groups + 1))
    system[..., :groups, :groups] = scaled
    system[..., groups, groups] = 0.0
    solved: FloatArray = np.linalg.pinv(system, rcond=1e-12, hermitian=True)[..., :groups, groups]
    return solved
