"""Linking two windows of reports that come from the same client, by B' (§6.1).

N clients hold the same known value, so that only the permanent noise in B' tells them apart: it
works as a name tag. Each client sends n reports in each of two windows. A bit with c ones in the
first window and c' in the second gives the evidence w(c, c') of `rappor.attack.change` for one
client, with π = f/2 for a bit that the value does not set and 1 - f/2 for one that it sets. A first
window is linked to the second window with the largest sum.

Given a first window, the sums of strangers are independent and alike, and the sum of the same
client is independent of them; both laws are convolutions. The mean over first windows has too many
dimensions to enumerate: it is taken over windows drawn at random, with the information in each as
a control variate, and its standard error is stated. Against a single stranger, everything is a
convolution.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from rappor.attack.change import pair_laws, same_scores
from rappor.attack.evidence import ScorePart, sum_law, whole_scores
from rappor.attack.result import AttackFigure, AttackResult, Bound, percent
from rappor.attack.settings import check_trials, generator
from rappor.attack.simulated_bits import ones, ones_of_memo, permanent
from rappor.checks import whole
from rappor.mechanism.prr import flip_probability
from rappor.params import Params, check_params
from rappor.privacy.loss import epsilon_n
from rappor.typing import BoolArray, FloatArray, IntArray

MAX_CLIENTS = 10_000
MAX_REPORTS = 100
SHOWN = (7, 14)
_STEPS = 64  # whole numbers up to the largest score of one bit
_WINDOWS = 128  # first windows over which the exact figure is averaged ...
_NUMBERS = 2**24  # ... or fewer, if their laws would take too many numbers
_PAIRS = 4_000_000  # pairs of windows compared in one simulated world


def rule(params: Params, reports: int) -> IntArray:
    """Whole-number scores, shape (2, n+1, n+1): of bits the value does not set, and sets."""
    flip = float(flip_probability(params))
    both = np.stack([same_scores(params, reports, share) for share in (flip, 1 - flip)])
    return whole_scores(both, params.k, 2 * _STEPS * params.k + 2)[0]


def pairwise(params: Params, reports: int) -> float:
    """P(a window is preferred to that of one given stranger); exact by convolution.

    >>> round(pairwise(Params.preset("windows"), 7), 3)
    0.992
    """
    check_params(params)
    scores = rule(params, reports)
    parts = []
    for table, laws, bits in zip(
        scores, _laws(params, reports), (params.k - params.h, params.h), strict=True
    ):
        own, stranger = laws
        gap = table[:, :, None] - table[:, None, :]
        parts.append(ScorePart(gap, own[:, :, None] * stranger[None, None, :], bits))
    return sum_law(parts).above()


def _laws(params: Params, reports: int) -> list[tuple[FloatArray, FloatArray]]:
    """For bits the value does not set, and sets: P(c, c') of one client, P(c') of a stranger."""
    flip = float(flip_probability(params))
    return [pair_laws(params, reports, share) for share in (flip, 1 - flip)]


def linked_share(params: Params, reports: int, clients: int) -> tuple[float, float]:
    """Share of N clients whose two windows are linked, and its standard error.

    >>> share, error = linked_share(Params.preset("windows"), 7, 400)
    >>> abs(share - 0.641) < 4 * error < 0.008
    True
    """
    check_params(params)
    scores = rule(params, reports)
    size = _size(params, scores, _laws(params, reports))
    windows = max(2, min(_WINDOWS, _NUMBERS // size))
    first = ones(_signal(params, windows), params, reports, generator(0, 2014))
    used = [  # bits with each count, for the bits of either kind: shape (windows, n+1)
        np.stack([(part == count).sum(axis=1) for count in range(reports + 1)], axis=1)
        for part in (first[:, params.h :], first[:, : params.h])
    ]
    own, stranger = _transforms(scores, _laws(params, reports), size)
    found = np.empty(windows)
    for start in range(0, windows, 32):
        rows = slice(start, start + 32)
        chosen = np.concatenate([used[0][rows], used[1][rows]], axis=1)
        found[rows] = _won(_law(chosen, own, size), _law(chosen, stranger, size), clients)
    return _controlled(found, used, scores, _laws(params, reports))


def _size(params: Params, scores: IntArray, laws: list[tuple[FloatArray, FloatArray]]) -> int:
    """Points of the law of a sum: all of them, or 15 standard deviations about its mean.

    A sum farther out would be counted at the wrong place; none occurs.
    """
    reach = 0.0
    bits = (params.k - params.h, params.h)
    for own in (True, False):
        mean = variance = 0.0
        for table, (pair, alone), number in zip(scores, laws, bits, strict=True):
            chances = pair if own else np.outer(alone, alone)
            middle = float((chances * table).sum())
            mean += number * middle
            variance += number * float((chances * (table - middle) ** 2).sum())
        reach = max(reach, abs(mean) + 15 * math.sqrt(variance) + 20 * _STEPS)
    return fft.next_fast_len(2 * min(math.ceil(reach), _STEPS * params.k + 1), real=True)


def _controlled(
    found: FloatArray,
    used: list[IntArray],
    scores: IntArray,
    laws: list[tuple[FloatArray, FloatArray]],
) -> tuple[float, float]:
    """The mean over first windows and its standard error, by regression on the information.

    The own sum's mean and the strangers' variance, given a first window, explain nearly all of
    the differences between windows, and their means over windows are known.
    """
    controls = []
    for power, of_own in ((1, True), (2, False)):
        column = np.zeros(len(found))
        for table, (pair, alone), counts in zip(scores, laws, used, strict=True):
            rows = pair.sum(axis=1, keepdims=True)
            chances = pair / np.where(rows, rows, 1.0) if of_own else alone[None, :]
            worth = (table.astype(np.float64) ** power * chances).sum(axis=1)
            column += counts @ worth - counts.sum(axis=1) * float(alone @ worth)
        controls.append(column / max(float(np.abs(column).max()), 1.0))
    design = np.stack([np.ones(len(found)), *controls], axis=1)
    fitted, *_ = np.linalg.lstsq(design, found, rcond=None)
    left = found - design @ fitted
    error = math.sqrt(float(left @ left) / max(1, len(found) - 3) / len(found))
    return min(max(float(fitted[0]), 0.0), 1.0), error


def _signal(params: Params, clients: int) -> BoolArray:
    """The true bits, alike for all: the first h are set; shape (clients, k)."""
    return np.broadcast_to(np.arange(params.k) < params.h, (clients, params.k))


def _transforms(
    scores: IntArray, laws: list[tuple[FloatArray, FloatArray]], size: int
) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
    """Logarithms of the transforms of a bit's score given its first count: own, and a stranger's.

    Shape (2 (n+1), size//2 + 1) each: first the bits that the value does not set.
    """
    own, stranger = [], []
    for table, (pair, alone) in zip(scores, laws, strict=True):
        for places, chances in zip(table % size, pair, strict=True):
            total = chances.sum()
            known = chances / total if total else alone  # an impossible count is never used
            own.append(fft.rfft(np.bincount(places, known, minlength=size)))
            stranger.append(fft.rfft(np.bincount(places, alone, minlength=size)))
    return _log(np.array(own)), _log(np.array(stranger))


def _log(transform: NDArray[np.complex128]) -> NDArray[np.complex128]:
    return np.log(np.where(np.abs(transform) < 1e-300, 1e-300, transform))


def _law(used: IntArray, logs: NDArray[np.complex128], size: int) -> FloatArray:
    """The law of the sum for each window, shape (windows, size); the middle is a sum of 0."""
    law = fft.irfft(np.exp(used @ logs), size, axis=1)
    return np.maximum(fft.fftshift(law, axes=1), 0.0)


def _won(own: FloatArray, stranger: FloatArray, clients: int) -> FloatArray:
    """P(own sum beats those of N-1 strangers), ties by lot, for each window.

    With F = P(stranger's sum <= own) and F' = P(stranger's sum < own): the mean of F^(N-1-j) F'^j
    over j, which is (F^N - F'^N) / (N (F - F')). If F - F' is tiny, their mean stands for both.
    """
    needed = np.flatnonzero(own.max(axis=0) > 1e-15)
    places = slice(needed[0], needed[-1] + 1)
    upto = np.clip(np.cumsum(stranger, axis=1)[:, places], 0.0, 1.0)
    below = np.clip(upto - stranger[:, places], 0.0, 1.0)
    own = own[:, places]
    middle = ((upto + below) / 2) ** (clients - 1)
    gap = upto - below
    wide = clients * gap > 1e-4 * upto
    top, rest = upto[wide], below[wide]
    middle[wide] = (top**clients - rest**clients) / (clients * gap[wide])
    return np.asarray((own * middle).sum(axis=1), np.float64)


def simulate(
    params: Params, reports: int, clients: int, worlds: int, random: np.random.Generator
) -> tuple[FloatArray, FloatArray, int]:
    """Simulate worlds of N clients.

    Returns:
        For each world the share of clients linked, and the share of pairs in which a client's
        own window is preferred to a stranger's; and how many clients are looked for in a world.
    """
    scores = rule(params, reports)
    looked = max(1, min(clients, _PAIRS // (clients + 1)))
    linked, preferred = np.empty(worlds), np.empty(worlds)
    for world in range(worlds):
        memo = permanent(_signal(params, clients), params, random)
        first = ones_of_memo(memo[:looked], params, reports, random)
        second = ones_of_memo(memo, params, reports, random)
        sums = _sums(scores, first, second, params.h)
        own = sums[np.arange(looked), np.arange(looked)][:, None]
        linked[world] = (
            (sums + random.random(sums.shape) / 2).argmax(axis=1) == np.arange(looked)
        ).mean()
        wins = (sums < own).sum() + ((sums == own).sum() - looked) / 2
        preferred[world] = wins / (looked * (clients - 1))
    return linked, preferred, looked


def _sums(scores: IntArray, first: IntArray, second: IntArray, h: int) -> FloatArray:
    """The sum of scores of every first window with every second one; whole numbers, as floats."""
    total = np.zeros((len(first), len(second)))
    for table, bits in zip(scores, (slice(h, None), slice(0, h)), strict=True):
        for count in np.unique(first[:, bits]):
            total += (first[:, bits] == count).astype(np.float64) @ table[count][second[:, bits]].T
    return total


def _world_figure(
    label: str, exact: float, shares: FloatArray, smallest: float, exact_error: float = 0.0
) -> AttackFigure:
    """Worlds are the unit: clients of one world share their strangers."""
    spread = float(shares.std(ddof=1)) / math.sqrt(len(shares))
    return AttackFigure(label, exact, float(shares.mean()), max(spread, smallest), exact_error)


def attack(
    params: Params,
    *,
    clients: int = 400,
    reports: int = 7,
    trials: int = 20,
    seed: int = 0,
) -> AttackResult:
    """Link the two windows of every client; a trial is a world of N clients."""
    check_params(params)
    many = whole("clients", clients, 2, MAX_CLIENTS)
    n = whole("reports", reports, 1, MAX_REPORTS)
    worlds = check_trials(trials)
    share, error = linked_share(params, n, many)
    alone = pairwise(params, n)
    linked, preferred, looked = simulate(params, n, many, worlds, generator(seed, 1))
    lottery = math.sqrt(max(share * (1 - share), 0.0) / (looked * worlds))
    table = {
        "share linked by pure luck": 1 / many,
        "share linked, at least (union bound)": max(1 / many, 1 - (many - 1) * (1 - alone)),
    }
    for shown in SHOWN:
        other = share if shown == n else linked_share(params, shown, many)[0]
        table[f"share linked, n = {shown}"] = other
    return AttackResult(
        name="linkage",
        title="linking two windows of the same client",
        sees=f"two windows with {n} reports of each of {many} clients, grouped but without names",
        does="links each first window to the second window most likely made from the same B'",
        params=params,
        settings={"clients": many, "reports": n, "trials": worlds, "seed": seed},
        figures=(
            _world_figure("share of clients linked", share, linked, lottery, error),
            _world_figure(
                "own window preferred to a given stranger's",
                alone,
                preferred,
                math.sqrt(max(alone * (1 - alone), 0.0) / (looked * (many - 1) * worlds)),
            ),
        ),
        bound=Bound(f"ε_{2 * n}", epsilon_n(params, 2 * n)),
        meaning=(
            f"If reports can be grouped by client, {percent(share)} of {many} clients are "
            "recognised "
            f"again by {n} reports: store nothing that groups reports by client."
        ),
        table=table,
    )
