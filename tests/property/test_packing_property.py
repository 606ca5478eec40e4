"""Packing and text are inverses of one another, and refuse everything else with WireError."""

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from rappor.errors import WireError
from rappor.wire import from_text, pack, to_text, unpack

SIZES = st.integers(1, 4096)


@st.composite
def reports(draw: st.DrawFn) -> tuple[int, int]:
    k = draw(SIZES)
    return draw(st.integers(0, (1 << k) - 1)), k


@given(reports())
def test_what_is_written_is_read_back(report: tuple[int, int]) -> None:
    bits, k = report
    assert len(pack(bits, k)) == -(-k // 8)
    assert len(to_text(bits, k)) == k
    assert unpack(pack(bits, k), k) == bits
    assert from_text(to_text(bits, k), k) == bits


@given(reports())
def test_packed_bytes_and_text_say_the_same_bit_by_bit(report: tuple[int, int]) -> None:
    bits, k = report
    packed, text = pack(bits, k), to_text(bits, k)
    read = [packed[i // 8] >> i % 8 & 1 for i in range(k)]
    assert read == [int(character) for character in reversed(text)]


@given(st.binary(max_size=20), st.integers(1, 160))
def test_bytes_are_either_one_report_or_refused(data: bytes, k: int) -> None:
    with contextlib.suppress(WireError):
        assert pack(unpack(data, k), k) == data


@given(st.text(alphabet="01b_+- ٠", max_size=20) | st.text(max_size=20), st.integers(1, 20))
def test_text_is_either_one_report_or_refused(text: str, k: int) -> None:
    with contextlib.suppress(WireError):
        assert to_text(from_text(text, k), k) == text
