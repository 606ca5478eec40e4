"""Simulated tuples: the bits that clients of every view set, and the truth."""

import json
from collections import Counter

import numpy as np
import pytest

from rappor import simulate
from rappor.errors import ParamsError
from rappor.mechanism import Encoder, Field, Ranges, View, Views
from rappor.mechanism.channel import channel
from rappor.params import Params

FIELDS = (
    Field("homepage", "string"),
    Field("channel", "category", ("stable", "beta")),
    Field("age", "ordinal", ranges=Ranges((18,))),
)
VIEWS = (View(("homepage", "channel"), 0.5), View(("age",), 0.5))
JOINT = {("a.org", "beta", 20): 3, ("a.org", "stable", 3): 2, ("b.org", "beta", 30): 1}
PARAMS = Params(k=64, h=2, m=4, f=0.5, p=0.25, q=0.75)
BARE = Params(k=64, h=2, m=4, f=1e-12, p=0.0, q=1.0)  # practically without noise


def filter_of(value: dict[str, object], cohort: int) -> int:
    """The bits of a client of a cohort, from the mechanism itself."""
    return (
        Encoder(
            BARE, secret=bytes(32), collection="c", cohort=cohort, kind="tuple",
            fields=FIELDS, views=VIEWS,
        )
        .trace(value)
        .signal
    )  # fmt: skip


def test_a_joint_table_becomes_json_objects() -> None:
    made = simulate.tuples(FIELDS, JOINT)
    assert json.loads(next(iter(made))) == {"homepage": "a.org", "channel": "beta", "age": 20}
    assert list(made.values()) == [3, 2, 1]


def test_without_noise_the_counts_are_the_bits_of_the_view_of_each_cohort() -> None:
    drawn = simulate.simulate(
        simulate.tuples(FIELDS, JOINT), BARE, 4000, seed=1, kind="tuple", fields=FIELDS,
        views=VIEWS,
    )  # fmt: skip
    expected = np.zeros((4, 64), int)
    reports = simulate.reports(
        simulate.tuples(FIELDS, JOINT), BARE, 4000, seed=1, kind="tuple", fields=FIELDS,
        views=VIEWS,
    )  # fmt: skip
    pairs = zip(reports.cohorts.tolist(), reports.values.tolist(), strict=True)
    for (cohort, value), clients in Counter(pairs).items():
        bits = filter_of(json.loads(reports.names[value]), cohort)
        for bit in range(64):
            expected[cohort, bit] += clients * (bits >> bit & 1)
    assert drawn.counts.kind == "tuple"
    assert drawn.counts.dialect == "rappor-v1"
    assert drawn.truth == reports.truth
    assert (drawn.counts.ones == expected).all()
    assert (reports.count().ones == expected).all()


def test_the_mean_of_every_bit_is_that_of_lemma_1() -> None:
    drawn = simulate.simulate(
        simulate.tuples(FIELDS, JOINT), PARAMS, 400_000, seed=2, kind="tuple", fields=FIELDS
    )
    views = Views(FIELDS)
    p_star, q_star = map(float, channel(PARAMS))
    assert views.table(4) == (0, 0, 0, 1)
    totals = np.asarray(drawn.counts.totals)[:, None]
    share = np.asarray(drawn.counts.ones) / totals
    held = (share - p_star) / (q_star - p_star)
    # h bits of each client, within five standard errors of the sum of 64 bits
    error = 5 * np.sqrt(64 / 4 / totals[:, 0]) / (q_star - p_star)
    assert (abs(held.sum(axis=1) - 2) < error).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fields": None}, "fields belong to kind tuple"),
        ({"kind": "string"}, "fields belong to kind tuple"),
        ({"values": "distinct"}, "values must be same for kind tuple"),
        ({"population": {"a.org": 1}}, "population must be JSON objects"),
        ({"population": {'{"homepage": "a.org"}': 1}}, "population must be JSON objects"),
    ],
)
def test_what_cannot_be_simulated_is_refused(change: dict[str, object], message: str) -> None:
    given = {
        "population": simulate.tuples(FIELDS, JOINT), "params": PARAMS, "reports": 10,
        "kind": "tuple", "fields": FIELDS,
    }  # fmt: skip
    with pytest.raises(ParamsError, match=message):
        simulate.counts(**given | change)


def test_a_key_has_a_value_for_each_field() -> None:
    with pytest.raises(ParamsError, match="a tuple of 3 values"):
        simulate.tuples(FIELDS, {("a.org", "beta"): 1})
