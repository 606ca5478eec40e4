"""The JavaScript client makes the bytes that docs/protocol.md freezes, as Python does."""

from __future__ import annotations

import hashlib
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor import Encoder, Params
from rappor.wire import pack
from support.javascript import PACKAGE, Node, running
from support.javascript_cases import (
    REFUSED,
    TUPLE_COHORTS,
    VECTORS,
    agrees,
    random_case,
    vector_cases,
    vectors,
)
from support.javascript_host import planted


@pytest.fixture(scope="module")
def javascript() -> Iterator[Node]:
    with running() as process:
        yield process


def test_every_vector(javascript: Node) -> None:
    cases = vector_cases()
    answers = javascript.run([request for request, _ in cases])
    for (request, expected), answer in zip(cases, answers, strict=True):
        assert agrees(answer, expected), (request, expected, answer)


def test_every_file_of_vectors_is_used_or_of_no_concern_to_a_client() -> None:
    """Of rappor-v1.json and the others each list is in vector_cases()."""
    lists = {
        (path.stem, name): len(found)
        for path in VECTORS.glob("*.json")
        for name, found in vectors(path.stem).items()
        if isinstance(found, list)
    }
    del lists["batches", "bad_json"]  # a client sends binary batches
    del lists["tuples", "allotments"]  # the memos of tuples show them: each is one of a cohort
    lists["tuples", "refused"] *= TUPLE_COHORTS
    twice = lists["client-definitions", "other_dialects"]  # with and without the dialects
    dialects = vectors("dialects")["vectors"]
    both = sum("google-java" in each and "chromium" in each for each in dialects)
    assert len(vector_cases()) == sum(lists.values()) + twice + both


def test_the_comparison_with_vectors_notices_a_difference() -> None:
    for _, expected in vector_cases():
        wrong = {"refused": "no such thing"}
        answers = [None, [], "elsewhere", {}]
        assert not any(agrees(answer, expected) for answer in answers)
        assert expected == REFUSED or not agrees(wrong, expected)


# RFC 7693, appendices A and B.
RFC_7693 = [
    (True, "616263", "", "ba80a53f981c4d0d6a2797b69f12f6e94c212f14685ac4b74b12bb6fdbffa2d1"
     "7d87c5392aab792dc252d5de4533cc9518d38aa8dbf1925ab92386edd4009923"),
    (False, "616263", "", "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982"),
]  # fmt: skip


@pytest.mark.parametrize(("wide", "message", "key", "digest"), RFC_7693)
def test_blake2_of_the_rfc(
    javascript: Node, wide: bool, message: str, key: str, digest: str
) -> None:
    request = {"command": "blake2", "wide": wide, "message": message, "key": key}
    assert javascript.run([request | {"length": len(digest) // 2}]) == [digest]


def test_blake2_passes_the_self_test_of_the_rfc(javascript: Node) -> None:
    """Appendix E: a hash over digests of many lengths of input, output and key."""

    def sequence(length: int, seed: int) -> str:
        a, b, made = 0xDEAD4BAD * seed & 0xFFFFFFFF, 1, bytearray()
        for _ in range(length):
            a, b = b, a + b & 0xFFFFFFFF
            made.append(b >> 24)
        return made.hex()

    for wide, lengths, inputs, expected in (
        (True, (20, 32, 48, 64), (0, 3, 128, 129, 255, 1024),
         "c23a7800d98123bd10f506c61e29da5603d763b8bbad2e737f5e765a7bccd475"),
        (False, (16, 20, 28, 32), (0, 3, 64, 65, 255, 1024),
         "6a411f08ce25adcdfb02aba641451cec53c598b24f4fc787fbdc88797f4c1dfe"),
    ):  # fmt: skip
        requests = [
            {"command": "blake2", "wide": wide, "message": sequence(size, size), "length": length}
            | {"key": key}
            for length in lengths
            for size in inputs
            for key in ("", sequence(length, length))
        ]
        digests = "".join(javascript.run(requests))
        whole = {"command": "blake2", "wide": wide, "message": digests, "length": 32}
        assert javascript.run([whole]) == [expected]


SIZES = [
    10_000,
    pytest.param(100_000, marks=pytest.mark.soak),
]


@pytest.mark.parametrize("count", [2000, pytest.param(100_000, marks=pytest.mark.long)])
def test_blake2_of_random_messages(javascript: Node, count: int) -> None:
    choose = random.Random(f"BLAKE2 {count}")
    requests, expected = [], []
    for number in range(count):
        wide = number % 2 == 0
        message, most = choose.randbytes(choose.randrange(400)), 64 if wide else 32
        key, length = choose.randbytes(choose.randrange(most + 1)), choose.randint(1, most)
        make = hashlib.blake2b if wide else hashlib.blake2s
        expected.append(make(message, key=key, digest_size=length).hexdigest())
        requests.append(
            {"command": "blake2", "wide": wide, "message": message.hex(), "length": length}
            | {"key": key.hex()}
        )
    assert javascript.run(requests) == expected


@pytest.mark.slow
@pytest.mark.parametrize("count", SIZES)
def test_random_cases_give_the_bytes_of_python(javascript: Node, count: int) -> None:
    """Kinds, widths, f, p, q, Unicode, bytes, budget mode: memo digest, cohort, B', batch."""
    choose = random.Random(f"JavaScript {count}")
    for start in range(0, count, 2000):
        cases = [random_case(choose) for _ in range(min(2000, count - start))]
        answers = javascript.run([request for request, _ in cases])
        for (request, expected), answer in zip(cases, answers, strict=True):
            assert answer == expected, request


BOTH = [{"name": "a", "kind": "boolean"}, {"name": "b", "kind": "string"}]
WHOLE = [{"fields": ["a", "b"], "cohorts": 4}]
TUPLES = [
    {},
    {"fields": BOTH},
    {"views": WHOLE},
    {"fields": BOTH[:1], "views": [{"fields": ["a"], "cohorts": 4}]},
    {"fields": [BOTH[0], BOTH[0]], "views": WHOLE},
    {"fields": [BOTH[0], {"name": "b", "kind": "bits"}], "views": WHOLE},
    {"fields": [BOTH[0], {"name": "B", "kind": "string"}], "views": WHOLE},
    {"fields": BOTH, "views": [{"fields": ["a", "b"], "cohorts": 3}]},
    {"fields": BOTH, "views": [{"fields": ["a", "b", "a"], "cohorts": 4}]},
    {"fields": BOTH, "views": [{"fields": ["a"], "cohorts": 4}]},
    {"fields": BOTH, "views": [{"fields": ["a", "c"], "cohorts": 4}]},
    {"fields": BOTH, "views": [{"fields": ["a", "b"], "cohorts": 2.5},
                               {"fields": ["a"], "cohorts": 1.5}]},
    {"fields": BOTH, "views": [{"fields": ["a", "b"], "cohorts": 2},
                               {"fields": ["b", "a"], "cohorts": 2}]},
    {"fields": BOTH, "views": WHOLE, "kind": "string", "value": "x"},
    {"fields": BOTH, "views": WHOLE, "value": {"tuple": {"a": True}}},
    {"fields": BOTH, "views": WHOLE, "value": {"tuple": {"a": True, "b": "x", "c": 1}}},
    {"fields": BOTH, "views": WHOLE, "value": {"tuple": {"a": 1, "b": "x"}}},
    {"fields": BOTH, "views": WHOLE, "value": "x"},
    {"fields": BOTH, "views": WHOLE, "value": None},
]  # fmt: skip


def test_what_python_refuses_is_refused(javascript: Node) -> None:
    params = {"k": 8, "h": 1, "m": 4, "f": 0.5, "p": 0.25, "q": 0.75}
    shape = {"command": "trace", "params": params, "secret": "00" * 32, "collection": "c"}
    shape |= {"value": "a"}
    edges = {"kind": "ordinal", "edges": [1, 2]}
    wrong = [
        *({"params": params | {name: bad}} for name in "khm" for bad in (0, 5000, 1.5, "1", True)),
        *({"params": params | {name: bad}} for name in "fpq" for bad in (-0.1, 1.1, "0.5", None)),
        {"params": params | {"f": 1}},
        {"params": params | {"p": 0.75}},
        {"params": params | {"f": 0, "p": 0}},
        {"params": params | {"f": 0, "q": 1}},
        {"params": params | {"h": 8}},
        {"kind": "other"},
        {"dialect": "other"},
        {"dialect": "toString"},
        {"secret": ""},
        {"collection": ""},
        {"kind": "category"},
        {"kind": "category", "categories": ["a", "a"]},
        {"kind": "category", "categories": ["b"]},
        {"kind": "category", "categories": list("abcdefghi")},
        {"categories": ["a"]},
        {"kind": "boolean", "value": True},
        {"kind": "boolean", "params": params | {"k": 1}, "value": 1},
        {"kind": "ordinal", "value": 1},
        edges | {"edges": [2, 1], "value": 1},
        edges | {"edges": [], "value": 1},
        edges | {"value": "1"},
        edges | {"value": "Infinity"},
        edges | {"value": [1]},
        edges | {"value": {"number": "nan"}},
        edges | {"value": True},
        {"kind": "bits", "value": 256},
        {"kind": "bits", "value": -1},
        {"kind": "bits", "value": [True] * 7},
        {"kind": "bits", "value": [2] * 8},
        *({"kind": "tuple", "value": {"tuple": {"a": True, "b": "x"}}} | each for each in TUPLES),
        {"value": 7},
        {"value": None},
        {"value": "\ud800"},
    ]
    for change, answer in zip(wrong, javascript.run([shape | each for each in wrong]), strict=True):
        assert "refused" in answer, change
        assert answer["code"] in ("params", "value"), change


def test_a_whole_number_of_any_length_has_a_range(javascript: Node) -> None:
    shape = {"command": "trace", "secret": "00" * 32, "collection": "c", "kind": "ordinal"}
    shape |= {"params": {"k": 3, "h": 1, "m": 4, "f": 0.5, "p": 0.25, "q": 0.75}, "edges": [1, 2]}
    values = [{"bigint": str(10**500)}, {"number": "inf"}, {"bigint": str(-(10**500))}, 0]
    above, endless, below, zero = javascript.run([shape | {"value": value} for value in values])
    assert above == endless
    assert below == zero != above


def reference_draw(params: Params, permanent: int, random_words: bytes) -> int:
    """S from given words, by the definition: S_i = [U_i < q] where B'_i = 1, else [U_i < p]."""
    size, bits = (params.k + 7) // 8, 0
    words = [
        int.from_bytes(random_words[at : at + size], "little")
        for at in range(0, len(random_words), size)
    ]
    for bit in range(params.k):
        threshold = params.exact.q if permanent >> bit & 1 else params.exact.p
        digits = sum(
            (1 - (word >> bit & 1)) << len(words) - 1 - at for at, word in enumerate(words)
        )
        bits |= (digits < threshold * 2 ** len(words)) << bit
    return bits


def coins_are_exact(javascript: Node, p: float, q: float) -> bool:
    """Whether reports are right if U is p, or p minus its last digit: only exact coins are."""
    params = Params(k=9, h=1, m=1, f=0.5, p=p, q=q)
    secret, length = bytes(32), max(params.exact.p.denominator, params.exact.q.denominator)
    places, choose = length.bit_length() - 1, random.Random(f"coins {p} {q}")
    numbers = [params.exact.p * length, params.exact.q * length]
    uniform = [
        min(max(int(number) + shift, 0), length - 1) for number in numbers for shift in (-1, 0, 1)
    ] + [choose.randrange(length) for _ in range(3)]
    words = [
        sum((1 - (number >> places - 1 - place & 1)) << bit for bit, number in enumerate(uniform))
        for place in range(places)
    ]
    drawn = b"".join(word.to_bytes(2, "little") for word in words)
    shape = {"params": params.to_dict(), "secret": secret.hex(), "collection": "c"}
    for value in range(20):
        request = {"command": "draw", "value": f"v{value}", "random": drawn.hex()} | shape
        (answer,) = javascript.run([request])
        encoder = Encoder(params, secret=secret, collection="c")
        permanent = encoder.trace(f"v{value}").permanent
        expected = pack(reference_draw(params, permanent, drawn), 9).hex()
        # The edge is only known at the last digit, so all of them are read.
        if answer != {"bits": expected, "read": len(drawn)}:
            return False
    return True


@pytest.mark.parametrize(("p", "q"), [(0.5, 0.75), (0.1, 0.9), (0.123, 1.0), (1e-20, 0.3)])
def test_coins_are_exact_at_the_very_edge(javascript: Node, p: float, q: float) -> None:
    assert coins_are_exact(javascript, p, q)


def test_coins_that_compare_with_a_rounded_probability_are_caught(tmp_path: Path) -> None:
    """`random() < p` with 32 random digits: no rate that can be measured tells."""
    planted(
        tmp_path,
        "coins.js",
        "const all = Math.max(...thresholds.map((digits) => digits.length));",
        "const all = Math.min(32, ...thresholds.map((digits) => digits.length));",
    )
    shutil.copytree(PACKAGE / "tests", tmp_path / "tests")
    with running(tmp_path / "tests" / "serve.js") as rounded:
        assert not coins_are_exact(rounded, 0.1, 0.9)


def test_an_empty_source_of_randomness_makes_no_report(javascript: Node) -> None:
    request = {
        "command": "draw", "value": "v", "random": "00", "collection": "c", "secret": "00" * 32,
        "params": Params.preset("windows").to_dict(),
    }  # fmt: skip
    (answer,) = javascript.run([request])
    assert answer["code"] == "entropy"


def test_the_comparison_notices_another_memo(javascript: Node) -> None:
    request, expected = random_case(random.Random("noticed"))
    (answer,) = javascript.run([request | {"secret": "00" * 32}])
    assert answer["batch"] != expected["batch"]
