"""Values and arguments that must not break a promise: each did once."""

import enum
import traceback
from fractions import Fraction

import numpy as np
import pytest

from rappor import (
    EncodeError,
    Encoder,
    OneTime,
    Params,
    ParamsError,
    Ranges,
    RapporError,
    bloom_positions,
)
from rappor.mechanism.coin import first_words
from rappor.testing import SeededEntropy

BITS = Params(8, 1, 1, 0.5, 0.25, 0.5)
SECRET = bytes(range(32))


def flags(boundary):
    return enum.IntFlag("Access", {"READ": 1, "WRITE": 4}, boundary=boundary)


@pytest.mark.parametrize("boundary", list(enum.FlagBoundary))
def test_flags_are_reported_as_the_plain_integers_they_are(boundary):
    value = flags(boundary).READ

    def reports(given):
        encoder = Encoder(
            BITS, secret=SECRET, collection="c", kind="bits", entropy=SeededEntropy(1)
        )
        return [encoder.encode(given) for _ in range(200)]

    assert reports(value) == reports(1)
    assert {type(report.bits) for report in reports(value)} == {int}


@pytest.mark.parametrize("f", [0.1, 0.2001, 1e-9])
@pytest.mark.parametrize(("p", "q"), [(0.1, 0.6), (0.1234567, 0.8734234)])
def test_all_clients_and_values_read_the_same_number_of_words(f, p, q):
    params = Params(16, 2, 1, f, p, q)
    asked = []
    source = SeededEntropy(f"{f} {p}")

    def counting(count: int) -> bytes:
        asked.append(count)
        return source(count)

    for number in range(300):
        secret = number.to_bytes(16, "big")
        Encoder(params, secret=secret, collection="c", entropy=counting).encode(f"v{number}")
    usual = first_words((False,) * 99, 16) * 2
    assert asked.count(usual) >= 298  # a draw needs more less than 1 time in 1,024
    assert max(asked) == usual


GARBAGE = [
    None, True, 1, 1.5, -1, 10**400, float("nan"), float("inf"), "text", "", "\ud800", b"bytes",
    bytearray(b"x"), memoryview(b"x"), [], [1], (), {}, set(), object(), Ellipsis, Fraction(1, 3),
    np.int64(3), np.float32(0.5), np.array([1, 2]), np.array(5), np.timedelta64(3), np.bool_(True),
    np.longdouble(1) / 3, lambda: None, int, enum.IntEnum("E", {"A": 1}).A,
]  # fmt: skip


def accepts_or_refuses(call) -> None:
    try:
        call()
    except RapporError:
        return


@pytest.mark.parametrize("junk", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_used_or_refused_and_nothing_else(junk):
    good = {"secret": SECRET, "collection": "c"}
    for name in ("secret", "collection", "cohort", "kind", "dialect", "categories", "ranges",
                 "period", "entropy"):  # fmt: skip
        if name == "entropy" and callable(junk):
            continue  # anything that can be called is a source until it is asked
        accepts_or_refuses(lambda name=name: Encoder(BITS, **{**good, name: junk}))
    for name in "khmfpq":
        shape = {**BITS.to_dict(), name: junk}
        accepts_or_refuses(lambda shape=shape: Params(**shape))
    accepts_or_refuses(lambda: Encoder(junk, **good))
    accepts_or_refuses(lambda: Ranges(junk))
    accepts_or_refuses(lambda: Ranges((junk,)))
    accepts_or_refuses(lambda: Ranges((1, 2)).range_of(junk))
    accepts_or_refuses(lambda: bloom_positions(junk, 0, BITS))
    accepts_or_refuses(lambda: bloom_positions("a", junk, BITS))
    accepts_or_refuses(lambda: bloom_positions("a", 0, junk))
    accepts_or_refuses(lambda: bloom_positions("a", 0, BITS, junk))
    accepts_or_refuses(lambda: OneTime(junk, None))
    for read in (Params.from_json, Params.from_toml, Params.preset, Params.from_dict):
        accepts_or_refuses(lambda read=read: read(junk))
    for kind, params, extra in (
        ("string", Params(8, 2, 1, 0.5, 0.25, 0.5), {}),
        ("category", Params(2, 1, 1, 0.5, 0.25, 0.5), {"categories": ["a", "b"]}),
        ("boolean", Params(1, 1, 1, 0.5, 0.25, 0.5), {}),
        ("ordinal", Params(3, 1, 1, 0.5, 0.25, 0.5), {"ranges": Ranges((1, 2))}),
        ("bits", BITS, {}),
    ):
        encoder = Encoder(params, **good, kind=kind, **extra)
        accepts_or_refuses(lambda encoder=encoder: encoder.encode(junk))
        accepts_or_refuses(lambda encoder=encoder: encoder.trace(junk))


def test_a_refused_value_is_nowhere_in_the_error():
    mark = "".join(["mar", "ker"])  # not in this file as such, which tracebacks quote
    encoder = Encoder(Params(8, 2, 1, 0.5, 0.25, 0.5), secret=SECRET, collection="c")
    with pytest.raises(EncodeError) as caught:
        encoder.encode(mark + "\ud800")
    assert mark not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None
    with pytest.raises(ParamsError) as misplaced:
        bloom_positions("a", mark, BITS)
    assert mark not in str(misplaced.value)
    with pytest.raises(ParamsError) as misplaced:
        Encoder(BITS, secret=b"x", collection=mark.encode())
    assert mark not in str(misplaced.value)


def test_a_number_just_below_an_edge_is_below_it():
    edge = np.longdouble(1)
    assert Ranges((1,)).range_of(edge - edge / 2**60) == 0
    assert Ranges((1,)).range_of(np.uint64(2**64 - 1)) == 1


def test_a_short_source_of_randomness_is_refused():
    for p in (0.25, 0.1):
        params = Params(8, 2, 1, 0.5, p, 0.5)
        with pytest.raises(RapporError):
            Encoder(params, secret=SECRET, collection="c", entropy=lambda _: b"").encode("a")
