"""Bits as bytes and as text: DESIGN's Formats, byte for byte."""

from collections.abc import Callable

import pytest

from rappor.errors import WireError
from rappor.wire import from_text, pack, to_text, unpack


@pytest.mark.parametrize(
    ("bits", "k", "packed", "text"),
    [
        (0, 1, "00", "0"),
        (1, 1, "01", "1"),
        (0b101, 3, "05", "101"),
        (2, 8, "02", "00000010"),
        (0xFF, 8, "ff", "11111111"),
        (0b1_0000_0010, 9, "0201", "100000010"),
        (0x1FF, 9, "ff01", "111111111"),
        (1 << 15, 16, "0080", "1" + "0" * 15),
        (0xA8, 16, "a800", "0000000010101000"),
        (1 << 16, 17, "000001", "1" + "0" * 16),
        (0x0123456789ABCDEF, 64, "efcdab8967452301", f"{0x0123456789ABCDEF:064b}"),
        (1 << 127, 128, "00" * 15 + "80", "1" + "0" * 127),
        ((1 << 4096) - 1, 4096, "ff" * 512, "1" * 4096),
    ],
)
def test_golden_bytes_and_text(bits: int, k: int, packed: str, text: str) -> None:
    assert pack(bits, k).hex() == packed
    assert unpack(bytes.fromhex(packed), k) == bits
    assert to_text(bits, k) == text
    assert from_text(text, k) == bits


@pytest.mark.parametrize("k", [1, 7, 8, 9, 20, 128])
def test_bit_i_is_bit_i_mod_8_of_byte_i_div_8(k: int) -> None:
    for i in range(k):
        data = pack(1 << i, k)
        assert [place for place, byte in enumerate(data) if byte] == [i // 8]
        assert data[i // 8] == 1 << i % 8


@pytest.mark.parametrize("k", [1, 8, 20])
def test_bit_k_minus_1_comes_first_in_text(k: int) -> None:
    for i in range(k):
        assert to_text(1 << i, k).index("1") == k - 1 - i


@pytest.mark.parametrize("k", [1, 3, 7, 9, 15, 4095])
def test_every_padding_bit_must_be_0(k: int) -> None:
    size = (k + 7) // 8
    for padding in range(k, 8 * size):
        with pytest.raises(WireError, match=f"a report of {k} bits must leave its last {-k % 8}"):
            unpack((1 << padding).to_bytes(size, "little"), k)


@pytest.mark.parametrize("k", [1, 8, 9, 128])
def test_other_lengths_are_refused(k: int) -> None:
    size = (k + 7) // 8
    for other in {0, size - 1, size + 1, 2 * size}:
        with pytest.raises(WireError, match=f"{k} bits takes {size} bytes, got {other}$"):
            unpack(bytes(other), k)


@pytest.mark.parametrize("write", [pack, to_text])
@pytest.mark.parametrize(
    ("bits", "k"), [(2, 1), (1 << 8, 8), (1 << 4096, 4096), (-1, 8), (-256, 8)]
)
def test_bits_that_do_not_fit_are_refused(
    write: Callable[[int, int], object], bits: int, k: int
) -> None:
    with pytest.raises(WireError, match=f"do not fit a report of {k} bits"):
        write(bits, k)


@pytest.mark.parametrize(
    "text",
    ["", "0101", "010101", "0b101", "+0101", "-0101", "0_101", " 0101", "0101\n", "01012", "٠١٠١٠"],
    ids=repr,
)
def test_text_that_is_not_k_zeros_and_ones_is_refused(text: str) -> None:
    with pytest.raises(WireError, match="a report of 5 bits is 5 characters 0 or 1"):
        from_text(text, 5)


def test_messages_do_not_repeat_a_report() -> None:
    report = "1011001110001111" * 4
    with pytest.raises(WireError) as caught:
        from_text(report, 63)
    assert report[:16] not in str(caught.value)
