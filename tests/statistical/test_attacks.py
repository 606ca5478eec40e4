"""Every attack's simulation agrees with its exact figure, and the real client with both.

20 parameter sets are drawn at random (4 in `make test`); on each, every figure of every attack must
lie within 4 standard errors (two-sided α = 6e-5 a figure; some 570 figures). The same check must
reject a mechanism whose f is .4 where .5 is stated, and formulas with another p*, q* or flip
probability: at these numbers of trials each of them is 5 standard errors off or more.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from rappor import Encoder, Params, bloom_positions
from rappor.attack import ATTACKS, change, run, simulated_bits
from rappor.attack.evidence import count_laws, evidence, whole_scores
from rappor.attack.two_values import accuracy, decide, guesses
from rappor.mechanism.channel import Channel, channel
from rappor.simulate import drawn_counts as by_counts
from rappor.testing import SeededEntropy
from support.audit import bits_of

SIGMAS = 4.0
WINDOWS = Params.preset("windows")
SMALL: dict[str, dict[str, Any]] = {  # settings that keep 20 sets within a minute or two
    "linkage": {"clients": 40, "trials": 20},
    "change": {"trials": 3000},
    "alternating": {"reports": 20, "trials": 10_000},
    "averaging": {"trials": 20_000},
    "poisoning": {"reports": 20_000, "trials": 1000},
}

POWERFUL: dict[str, dict[str, Any]] = {  # settings at which a planted bug shows
    "linkage": {"trials": 10},
    "posterior": {"trials": 400_000},
    "targeting": {"clients": 1000, "trials": 1000},  # 10 clients tell little, as the attack says
}


def random_params(number: int) -> Params:
    """A parameter set anywhere in the range, but for corners that leave next to no signal."""
    random = np.random.default_rng([2014, number])
    h = int(random.integers(1, 5))
    p = float(random.choice([0.0, *random.uniform(0.01, 0.7, 4)]))
    q = float(random.choice([1.0, *random.uniform(p + 0.1, 0.99, 4)]))
    f = float(random.uniform(0.05, 0.9)) if number % 5 or p == 0 or q == 1 else 0.0
    return Params(int(random.integers(h + 1, 97)), h, 1, f, p, q)


def random_settings(name: str, number: int) -> dict[str, Any]:
    """The attack's own numbers, drawn at random too."""
    random = np.random.default_rng([2015, number])
    drawn = {
        "reports": int(random.integers(1, 15)),
        "clients": int(random.integers(2, 60)),
        "secrets": int(random.integers(1, 6)),
        "frequency": float(random.uniform(0.02, 0.6)),
        "forged": float(random.uniform(0.0, 0.05)),
    }
    taken = {key: value for key, value in drawn.items() if key in ATTACKS[name].settings}
    return taken | SMALL.get(name, {})


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("sets", [4, pytest.param(20, marks=pytest.mark.long)])
def test_simulations_agree_with_exact_figures_on_random_parameters(name: str, sets: int) -> None:
    far = {}
    for number in range(sets):
        params = random_params(number)
        found = run(name, params, seed=number, **random_settings(name, number))
        assert found.simulated is not None
        assert found.bound is None or found.bound.holds(found.exact)
        if found.sigmas > SIGMAS:
            far[params] = found.figures
    assert not far


def weaker_flip(params: Params) -> Fraction:
    """f/2 as a client would have it that was built with four fifths of f."""
    return params.exact.f / 2 * Fraction(4, 5)


@pytest.mark.parametrize("name", ATTACKS)
def test_a_client_with_less_permanent_noise_than_stated_is_noticed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = POWERFUL.get(name, {})
    assert run(name, WINDOWS, seed=1, **settings).sigmas < SIGMAS
    monkeypatch.setattr(simulated_bits, "flip_probability", weaker_flip)
    monkeypatch.setattr(by_counts, "flip_probability", weaker_flip)  # what poisoning draws with
    assert run(name, WINDOWS, seed=1, **settings).sigmas > SIGMAS


def wrong_channel(params: Params) -> Channel:
    """Lemma 1 without the permanent step: p and q for p* and q*."""
    return Channel(params.exact.p, params.exact.q)


def wrong_flip(params: Params) -> Fraction:
    """F where f/2 belongs, the slip that is easiest to make."""
    return params.exact.f


def wrong_laws(params: Params, reports: int) -> Any:
    """The law of a bit's count for another f, in the formula only."""
    return count_laws(replace(params, f=0.4), reports)


@pytest.mark.parametrize(
    ("name", "module", "attribute", "wrong"),
    [
        ("fdr", "posterior", "channel", wrong_channel),
        ("posterior", "posterior", "channel", wrong_channel),
        ("targeting", "targeting", "channel", wrong_channel),
        ("poisoning", "poisoning", "channel", wrong_channel),
        ("averaging", "observers", "channel", wrong_channel),
        ("single", "two_values", "count_laws", wrong_laws),
        ("window", "two_values", "count_laws", wrong_laws),
        ("alternating", "two_values", "count_laws", wrong_laws),
        ("unlimited", "two_values", "flip_probability", wrong_flip),
        ("secrets", "two_values", "flip_probability", wrong_flip),
        ("change", "change", "flip_probability", wrong_flip),
        ("linkage", "linkage", "flip_probability", wrong_flip),
    ],
)
def test_a_wrong_formula_is_noticed(
    name: str,
    module: str,
    attribute: str,
    wrong: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"rappor.attack.{module}.{attribute}", wrong)
    assert run(name, WINDOWS, seed=1, **POWERFUL.get(name, {})).sigmas > SIGMAS


def test_a_client_that_forgets_its_memo_is_noticed() -> None:
    trials, reports = 20_000, 7
    expected = accuracy(WINDOWS, reports)
    spread = (expected * (1 - expected) / trials) ** 0.5
    kept = guesses(WINDOWS, reports, 1, trials, np.random.default_rng(5)).mean()
    lost = guesses(
        WINDOWS, reports, 1, trials, np.random.default_rng(5), simulated_bits.ones_without_memo
    ).mean()
    assert abs(kept - expected) < SIGMAS * spread
    assert lost > expected + SIGMAS * spread


# The client itself, not the vectorised mechanism.

VALUES = ("alpha", "beta")


def counted(secret: bytes, value: str, reports: int, entropy: SeededEntropy) -> np.ndarray:
    """How often each bit was 1 in so many reports of the real client, in its cohort 0."""
    encoder = Encoder(WINDOWS, secret=secret, collection="a", cohort=0, entropy=entropy)
    bits = bits_of([encoder.encode(value).bits for _ in range(reports)], WINDOWS.k)
    return np.asarray(bits.sum(axis=0), np.int64)


@pytest.mark.parametrize("clients", [2000, pytest.param(4000, marks=pytest.mark.long)])
def test_the_window_attack_on_the_real_client_does_as_computed(clients: int) -> None:
    """4,000 clients: a memo lost (accuracy .79 instead of .73) would be 8 standard errors off.

    2,000: 6, of which more than 4 are left with probability .98.
    """
    reports = 7
    entropy = SeededEntropy("attack window")
    places = [np.array(bloom_positions(value, 0, WINDOWS)) for value in VALUES]
    assert not set(places[0]) & set(places[1])
    scores, _ = whole_scores(evidence(WINDOWS, reports), 4)
    seen = np.stack(
        [counted(entropy(32), VALUES[client % 2], reports, entropy) for client in range(clients)]
    )
    sums = scores[seen[:, places[0]]].sum(axis=1) - scores[seen[:, places[1]]].sum(axis=1)
    right = decide(sums, np.random.default_rng(1)) == (np.arange(clients) % 2 == 0)
    expected = accuracy(WINDOWS, reports)
    spread = (expected * (1 - expected) / clients) ** 0.5
    assert abs(right.mean() - expected) < SIGMAS * spread


@pytest.mark.parametrize("clients", [500, pytest.param(1000, marks=pytest.mark.long)])
def test_a_change_of_the_real_clients_value_is_seen_as_computed(clients: int) -> None:
    """1,000 clients each way; the rates are .96, so 4 standard errors are .025 (500: .035)."""
    reports = 7
    entropy = SeededEntropy("attack change")
    scores = change.rule(WINDOWS, reports)
    for changed, expected in zip((False, True), change.rates(WINDOWS, reports), strict=True):
        right = 0
        for _ in range(clients):
            secret = entropy(32)
            first = counted(secret, VALUES[0], reports, entropy)
            second = counted(secret, VALUES[int(changed)], reports, entropy)
            right += (int(scores[first, second].sum()) > 0) != changed
        spread = (expected * (1 - expected) / clients) ** 0.5
        assert abs(right / clients - expected) < SIGMAS * spread


def test_the_planted_channel_is_not_the_true_one() -> None:
    assert wrong_channel(WINDOWS) != channel(WINDOWS)
    assert weaker_flip(WINDOWS) != wrong_flip(WINDOWS) != WINDOWS.exact.f / 2
