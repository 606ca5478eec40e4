"""ε of a client with views, by counting all outcomes: docs/theory/views.md, and planted bugs."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations, product

import pytest

from rappor.mechanism import Field, View, Views, bloom_positions, filter_bits
from rappor.mechanism.prr import flip_probability
from rappor.mechanism.signal import signal_of
from rappor.params import Params
from rappor.privacy import Step, epsilon_infinity, epsilon_n, epsilon_one
from rappor.privacy.enumeration import bit_chance

PARAMS = Params(k=4, h=1, m=3, f=0.5, p=0.5, q=0.75)
VIEWS = Views(
    (Field("page", "string"), Field("beta", "boolean")),
    (View(("page", "beta"), 0.4), View(("page",), 0.3), View(("beta",), 0.3)),
)
VALUES = [{"page": page, "beta": beta} for page in "abc" for beta in (False, True)]
WHOLE, PAGE, BETA = range(3)  # the views, which are the cohorts too

Value = dict[str, object]
Made = tuple[int, bytes]  # the filter of a report, and the key of its memo
Client = Callable[[Sequence[Value]], list[Made]]  # from the values over time to the reports


def client(cohort: int, params: Params = PARAMS) -> Client:
    """The real client of a cohort."""
    signal = signal_of(params, "tuple", "rappor-v1", cohort, None, None, VIEWS)
    return lambda values: [signal(value) for value in values]


def chance(params: Params, made: Sequence[Made], outputs: Sequence[int]) -> Fraction:
    """P(these reports | filters and memo keys): reports of one memo key share B'."""
    step = Step(params.p, params.q)
    total = Fraction(1)
    for memo in {key for _, key in made}:
        numbers = [number for number, (_, key) in enumerate(made) if key == memo]
        signal = made[numbers[0]][0]
        for bit in range(params.k):
            history = tuple(bool(outputs[number] >> bit & 1) for number in numbers)
            total *= bit_chance(
                flip_probability(params), bool(signal >> bit & 1), history, (step,) * len(numbers)
            )
    return total


def worst_loss(
    reporting: Client, histories: Sequence[Sequence[Value]], params: Params = PARAMS
) -> float:
    """The largest ln ratio of any outcome between any two histories, as an exact count."""
    made = [reporting(history) for history in histories]
    worst = Fraction(1)
    for outputs in product(range(1 << params.k), repeat=len(histories[0])):
        chances = [chance(params, reports, outputs) for reports in made]
        worst = max(worst, max(chances) / min(chances))
    return math.log(worst)


def staying(reports: int) -> list[list[Value]]:
    """Clients that keep their value."""
    return [[value] * reports for value in VALUES]


@pytest.mark.parametrize("cohort", [WHOLE, PAGE, BETA])
@pytest.mark.parametrize("reports", [1, 2])
def test_epsilon_is_that_of_one_string_in_every_view(cohort: int, reports: int) -> None:
    """Over all pairs of values: equal where two values have different bits, never above."""
    stated = epsilon_n(PARAMS, reports, "tuple")
    assert worst_loss(client(cohort), staying(reports)) == pytest.approx(stated, abs=1e-12)


@pytest.mark.parametrize("h", [1, 2, 3])
def test_epsilon_of_several_hashes_is_never_exceeded(h: int) -> None:
    params = Params(k=5, h=h, m=3, f=0.25, p=0.25, q=0.5)
    found = [worst_loss(client(cohort, params), staying(1), params) for cohort in range(3)]
    assert max(found) <= epsilon_one(params, "tuple") + 1e-12
    assert max(found) > epsilon_one(params, "tuple") / 3


@pytest.mark.parametrize("cohort", [WHOLE, PAGE, BETA])
def test_stated_epsilon_of_two_hashes_is_reached_by_disjoint_filters(cohort: int) -> None:
    """Over all pairs of eight values, some with no bit in common: equal, and so never above."""
    params = Params(k=6, h=2, m=3, f=0.25, p=0.25, q=0.5)
    names = tuple("stuvwxyz")
    views = Views(
        (Field("page", "string"), Field("beta", "category", categories=names)), VIEWS.views
    )
    signal = signal_of(params, "tuple", "rappor-v1", cohort, None, None, views)
    values = [{"page": name, "beta": name} for name in names]
    filters = [signal(value)[0] for value in values]
    assert all(bits.bit_count() == 2 for bits in filters)
    assert any(not one & other for one, other in combinations(filters, 2))
    found = worst_loss(
        lambda history: [signal(value) for value in history], [[v] for v in values], params
    )
    assert found == pytest.approx(epsilon_one(params, "tuple"), abs=1e-12)


def test_stated_epsilon_is_that_of_a_string() -> None:
    for params in (PARAMS, Params.preset("windows"), Params.preset("chrome")):
        assert epsilon_one(params, "tuple") == epsilon_one(params, "string")
        assert epsilon_infinity(params, "tuple") == epsilon_infinity(params, "string")


@pytest.mark.parametrize("cohort", [PAGE, BETA])
def test_a_change_outside_the_view_cannot_be_seen(cohort: int) -> None:
    """A client that changes outside its view has exactly the reports of one that does not."""
    (name,) = VIEWS.views[cohort].fields
    for one, other in combinations(VALUES[:4], 2):
        if one[name] == other[name]:
            assert worst_loss(client(cohort), [[one, one], [one, other]]) == 0


@pytest.mark.parametrize("cohort", [WHOLE, PAGE, BETA])
def test_the_cohort_says_nothing_about_the_value(cohort: int) -> None:
    """What all outcomes of a cohort add up to is the same for every value."""
    for value in VALUES:
        made = client(cohort)([value])
        assert sum(chance(PARAMS, made, [output]) for output in range(1 << PARAMS.k)) == 1


# Planted bugs: each would break the guarantee, and each is seen by the count above.


@pytest.mark.slow
def test_a_view_that_is_drawn_again_for_each_report_is_noticed() -> None:
    def redrawn(values: Sequence[Value]) -> list[Made]:
        return [client((WHOLE, PAGE)[number])([value])[0] for number, value in enumerate(values)]

    assert worst_loss(redrawn, staying(2)) > epsilon_n(PARAMS, 2, "tuple") + 0.01


@pytest.mark.parametrize("cohort", [PAGE, BETA])
def test_a_memo_keyed_by_the_whole_value_is_noticed(cohort: int) -> None:
    def keyed(values: Sequence[Value]) -> list[Made]:
        bits = [signal for signal, _ in client(cohort)(values)]
        return [
            (signal, VIEWS.encode(WHOLE, value)) for signal, value in zip(bits, values, strict=True)
        ]

    name = VIEWS.views[cohort].fields[0]
    one, other = next(pair for pair in combinations(VALUES, 2) if pair[0][name] == pair[1][name])
    assert worst_loss(keyed, [[one, one], [one, other]]) > 0.01


def test_a_filter_with_bits_for_each_symbol_is_noticed() -> None:
    """The number of symbols hashed would tell the length, and each of them would cost ε."""
    params = Params(k=5, h=1, m=3, f=0.5, p=0.5, q=0.75)

    def by_symbol(values: Sequence[Value]) -> list[Made]:
        made = []
        for value in values:
            positions = [bloom_positions(symbol, PAGE, params) for symbol in str(value["page"])]
            made.append((filter_bits(sum(positions, ())), VIEWS.encode(PAGE, value)))
        return made

    pages = ["a", "b", *map("".join, combinations("abcde", 2))]
    histories = [[{"page": page, "beta": True}] for page in pages]
    stated = epsilon_one(params, "tuple")
    assert worst_loss(by_symbol, histories, params) > stated + 0.01
    assert worst_loss(client(PAGE, params), histories, params) == pytest.approx(stated, abs=1e-12)


def test_every_value_has_h_bits_whatever_its_length() -> None:
    params = Params(k=64, h=3, m=3, f=0.5, p=0.5, q=0.75)
    for cohort in range(3):
        for length in (0, 1, 50, 1000):
            ((bits, _),) = client(cohort, params)([{"page": "x" * length, "beta": True}])
            assert bits.bit_count() == 3
