"""Keys of cells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappor.errors import StoreError
from rappor.store import CellKey, dimensions_pairs, dimensions_text
from rappor.store.cell_key import cell_id, key_bytes

TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=10)


@pytest.mark.slow
@given(st.dictionaries(TEXT, st.text(st.characters(codec="utf-8"), max_size=10), max_size=4))
def test_dimensions_survive_their_text(pairs: dict[str, str]) -> None:
    text = dimensions_text(pairs.items())
    assert dimensions_pairs(text) == tuple(sorted(pairs.items()))


@pytest.mark.parametrize("wrong", ["os=mac;country=NZ", "a", "=b", "a=1;a=2", "a=%zz", "a=b;", ";"])
def test_what_is_not_canonical_is_refused(wrong: str) -> None:
    with pytest.raises(StoreError, match="canonical"):
        dimensions_pairs(wrong)


def test_keys_that_differ_have_bytes_and_numbers_that_differ() -> None:
    keys = [
        CellKey("ab", 1, "2026-11-16"),
        CellKey("a", 1, "2026-11-16"),
        CellKey("ab", 11, "2026-11-16"),
        CellKey("ab", 1, "2026-W47"),
        CellKey("ab", 1, "2026-11-16", "a=b"),
        CellKey("ab", 1, "2026-11-1", "6a=b"),
    ]
    assert len({key_bytes(key) for key in keys}) == len(keys)
    numbers = {cell_id(key) for key in keys}
    assert len(numbers) == len(keys)
    assert all(0 <= number < 2**53 for number in numbers)


def test_a_cell_is_named_in_words() -> None:
    assert (
        str(CellKey("homepage", 2, "2026-W47", "country=NZ")) == "homepage v2 2026-W47 [country=NZ]"
    )
