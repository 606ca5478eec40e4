"""The version of the decoder: raised whenever its numbers change."""

import pytest

from rappor.decoding.options import DECODER_VERSION
from support import decoder_numbers

WRITE = "python tests/support/decoder_numbers.py"
WRITTEN = decoder_numbers.read()


def test_the_numbers_were_written_with_this_version_of_the_decoder():
    assert WRITTEN["version"] == DECODER_VERSION, f"run {WRITE}"
    assert set(WRITTEN["numbers"]) == set(decoder_numbers.DECODES), f"run {WRITE}"


@pytest.mark.parametrize("name", decoder_numbers.DECODES)
def test_the_decoder_makes_the_numbers_of_its_version(name):
    """Saved pages, trends and runs have the version in their key."""
    other = decoder_numbers.changed(WRITTEN["numbers"][name], decoder_numbers.numbers(name))
    assert other == [], f"numbers changed: raise DECODER_VERSION, then run {WRITE}"


def test_a_number_that_moved_in_its_fifth_digit_is_seen():
    then = {"p_value": [1.0, 2.5e-40, None], "string": ["a", "b", "c"]}
    assert decoder_numbers.changed(then, then) == []
    assert decoder_numbers.changed(then, {**then, "p_value": [1.0 + 1e-8, 2.5e-40, None]}) == []
    for moved in ([1.00001, 2.5e-40, None], [1.0, 2.50003e-40, None], [1.0, 2.5e-40, 0.0], [1.0]):
        assert decoder_numbers.changed(then, {**then, "p_value": moved}) == ["p_value"]
    noise = {"difference": [0.5, 1e-17]}  # an exact 0 on one platform, but not on every one
    assert decoder_numbers.changed(noise, {"difference": [0.5, 0.0]}) == []
    assert decoder_numbers.changed(then, {"string": ["a", "b", "c"]}) == ["p_value"]


def test_the_robust_path_is_among_the_numbers():
    robust = {name: each["robust"] for name, each in WRITTEN["numbers"].items() if "robust" in each}
    assert robust["string, robust"] == [True]
    assert robust["string, fdr"] == [False]
