"""Attacks on a tuple: what its view hides is not seen, and the rest is what a string shows."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from rappor.attack import ATTACKS, change, run
from rappor.attack.poisoning import forged_weight
from rappor.attack.seen_fields import PUBLIC, seeing_cohorts
from rappor.attack.two_values import majority
from rappor.mechanism import Field, View, Views
from rappor.mechanism.signal import signal_of
from rappor.params import Params

WINDOWS = Params.preset("windows")
VIEWS = Views((Field("page", "string"), Field("beta", "boolean")))  # 6 of 8 cohorts see both
TINY = Params(3, 1, 3, 0.5, 0.25, 0.75)
ONE_EACH = Views(
    VIEWS.fields, (View(("page", "beta"), 0.4), View(("page",), 0.3), View(("beta",), 0.3))
)


def chances(params: Params, signal: int) -> np.ndarray:
    """P(first, second report) of two reports of one B' of this filter; shape (2^k, 2^k)."""
    bits = np.array(list(product((0, 1), repeat=params.k)))[:, ::-1]  # bit 0 first
    held = signal >> np.arange(params.k) & 1
    flips = (bits != held).sum(axis=1)
    memo = (params.f / 2) ** flips * (1 - params.f / 2) ** (params.k - flips)
    one = np.where(bits == 1, params.q, params.p)  # of each memo
    seen = np.prod(np.where(bits[None] == 1, one[:, None], 1 - one[:, None]), axis=2)
    return np.einsum("m,ma,mb->ab", memo, seen, seen)


def test_a_change_of_one_field_is_seen_as_enumeration_with_real_filters_gives() -> None:
    """One cohort for each view: what happens outside of it leaves the reports as they are."""
    signals = [
        signal_of(TINY, "tuple", "rappor-v1", cohort, None, None, ONE_EACH) for cohort in range(3)
    ]
    scores = change.rule(TINY, 1)
    bits = np.array(list(product((0, 1), repeat=TINY.k)))[:, ::-1]
    total = scores[bits[:, None], bits[None]].sum(axis=2)
    said_same = np.where(total > 0, 1.0, np.where(total == 0, 0.5, 0.0))
    page = next(  # whose filter with and without beta differs
        page
        for page in map(str, range(100))
        if signals[0]({"page": page, "beta": True})[0]
        != signals[0]({"page": page, "beta": False})[0]
    )
    assert (
        signals[2]({"page": page, "beta": True})[0] != signals[2]({"page": page, "beta": False})[0]
    )
    accuracies = []
    for signal in signals:
        (before, key), (after, other) = (signal({"page": page, "beta": b}) for b in (False, True))
        same = chances(TINY, before)
        changed = same if key == other else np.outer(same.sum(axis=1), chances(TINY, after).sum(0))
        accuracies.append(((same * said_same).sum() + (changed * (1 - said_same)).sum()) / 2)
    assert accuracies[1] == pytest.approx(0.5)  # the view page alone
    found = change.attack(TINY, reports=1, trials=10, views=ONE_EACH)
    figure = next(each for each in found.figures if "only beta changes" in each.label)
    assert figure.exact == pytest.approx(np.mean(accuracies))
    assert figure.exact < found.exact


def test_simulated_changes_of_a_field_agree_with_the_figures() -> None:
    found = run("change", WINDOWS, views=VIEWS, reports=5, trials=2000)
    every, page, beta = found.figures
    assert found.sigmas < 4
    assert page.exact == every.exact
    assert beta.exact == pytest.approx(0.75 * every.exact + 0.125)


def test_a_memo_keyed_by_the_whole_value_would_be_noticed() -> None:
    """Clients that draw B' again at a change outside the view: seen as often as any change."""
    (seeing,) = [
        cohorts for name, cohorts in seeing_cohorts(VIEWS, WINDOWS).items() if name == "beta"
    ]
    figure = change.balanced_figure(WINDOWS, 5, 2000, 1, "", seeing)
    right = sum(
        change.simulate(WINDOWS, 5, changed, 1000, np.random.default_rng(changed))
        for changed in (False, True)
    )
    assert figure.std_error is not None
    assert (right / 2000 - figure.exact) / figure.std_error > 4


@pytest.mark.parametrize("name", ["single", "window", "unlimited", "averaging", "alternating"])
def test_two_values_that_differ_in_one_field_are_told_apart_where_it_is_seen(name: str) -> None:
    found = run(name, WINDOWS, views=VIEWS, trials=20)
    rows = {label: value for label, value in found.table.items() if " if only " in label}
    both, whole = (
        next(value for label, value in rows.items() if f"only {field} differs" in label)
        for field in ("beta", "page")
    )
    assert whole == pytest.approx(found.exact)
    assert both == pytest.approx(0.75 * found.exact + 0.125)


def test_each_secret_has_a_view_of_its_own() -> None:
    found = run("secrets", WINDOWS, views=VIEWS, secrets=2, trials=20)
    (row,) = [value for label, value in found.table.items() if "only beta differs" in label]
    expected = (
        0.25**2 * 0.5
        + 2 * 0.25 * 0.75 * float(majority(WINDOWS))
        + 0.75**2 * float(majority(WINDOWS, 2))
    )
    assert row == pytest.approx(expected)


def test_a_forger_who_picks_a_view_weighs_more_in_it() -> None:
    found = run("poisoning", WINDOWS, views=VIEWS, trials=10, reports=1000)
    rows = [value for label, value in found.table.items() if "of view" in label]
    assert rows == [pytest.approx(forged_weight(WINDOWS) / share) for share in (0.75, 0.25)]


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_on_a_tuple_says_that_the_view_is_public(name: str) -> None:
    settings = {"trials": 2} | ({"clients": 10} if name == "linkage" else {})
    found = run(name, WINDOWS, views=VIEWS, **settings)
    plain = run(name, WINDOWS, **settings)
    assert found.sees == f"{plain.sees}; {PUBLIC}"
    assert found.exact == plain.exact  # of values that the view tells apart: as of strings
    assert not [label for label in plain.table if " only " in label]
    assert all(math.isfinite(value) for value in found.table.values())


def test_views_are_no_setting() -> None:
    assert all("views" not in attack.settings for attack in ATTACKS.values())
