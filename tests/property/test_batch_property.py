"""Laws of batches: any bytes are a batch or a WireError; what is written is read back."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rappor import Report
from rappor.errors import WireError
from rappor.wire import (
    Batch,
    decode_batch,
    decode_batch_json,
    encode_batch,
    encode_batch_json,
    unpack,
)

VALUES = st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9 ._+/:()-]{0,62}[A-Za-z0-9])?", fullmatch=True)


@st.composite
def batches(draw: st.DrawFn) -> tuple[Batch, list[Report]]:
    k = draw(st.integers(1, 200))
    report = st.builds(Report, st.integers(0, 1023), st.integers(0, (1 << k) - 1))
    reports = draw(st.lists(report, min_size=1, max_size=20))
    names = st.from_regex(r"[a-z][a-z0-9_]{0,31}", fullmatch=True)
    day = st.dates().map(str) | st.just("2026-W47")
    batch = Batch.of(
        reports,
        token=draw(st.binary(min_size=16, max_size=16)),
        collection=draw(st.from_regex(r"[a-z][a-z0-9_-]{0,62}", fullmatch=True)),
        version=draw(st.integers(1, 65535)),
        period=draw(day),
        dimensions=sorted(draw(st.dictionaries(names, VALUES, max_size=8)).items()),
        k=k,
    )
    return batch, reports


@pytest.mark.slow
@given(batches())
def test_a_batch_is_read_back_from_either_format(made: tuple[Batch, list[Report]]) -> None:
    batch, reports = made
    data = encode_batch(batch)
    assert decode_batch(data) == batch
    assert encode_batch(decode_batch(data)) == data
    assert decode_batch_json(encode_batch_json(batch)) == batch
    size = (batch.k + 7) // 8
    for number, (cohort, bits) in enumerate(reports):
        assert int.from_bytes(batch.cohorts[2 * number : 2 * number + 2], "little") == cohort
        assert unpack(batch.reports[size * number : size * (number + 1)], batch.k) == bits


@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda data: b"RPR1" + data))
@example(b"")
def test_any_bytes_are_a_batch_or_refused(data: bytes) -> None:
    for decode in (decode_batch, decode_batch_json):
        try:
            batch = decode(data)
        except WireError:
            continue
        assert decode_batch(encode_batch(batch)) == batch


@pytest.mark.slow
@given(batches(), st.data())
def test_a_damaged_batch_is_another_batch_or_refused(
    made: tuple[Batch, list[Report]], data: st.DataObject
) -> None:
    batch, _ = made
    whole = encode_batch(batch)
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = bytearray(whole)
    changed[at] ^= data.draw(st.integers(1, 255))
    try:
        found = decode_batch(bytes(changed))
    except WireError:
        return
    assert found != batch
    assert encode_batch(found) == bytes(changed)  # one form only: nothing is read as something else


@pytest.mark.slow
@given(batches(), st.data())
def test_a_batch_cut_short_or_with_more_behind_is_refused(
    made: tuple[Batch, list[Report]], data: st.DataObject
) -> None:
    whole = encode_batch(made[0])
    cut = data.draw(st.integers(0, len(whole) - 1))
    for wrong in (whole[:cut], whole + data.draw(st.binary(min_size=1, max_size=9))):
        with pytest.raises(WireError):
            decode_batch(wrong)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)
FIELDS = ("rappor", "token", "collection", "version", "period", "dimensions", "k", "cohorts",
          "reports")  # fmt: skip


@pytest.mark.slow
@given(batches(), st.sampled_from(FIELDS), JSON)
def test_any_value_in_a_json_batch_is_fine_or_refused(
    made: tuple[Batch, list[Report]], field: str, value: object
) -> None:
    document = json.loads(encode_batch_json(made[0]))
    document[field] = value
    try:
        found = decode_batch_json(json.dumps(document).encode())
    except WireError:
        return
    assert decode_batch(encode_batch(found)) == found


@given(st.text(max_size=200))
def test_any_text_is_refused_as_json(text: str) -> None:
    with pytest.raises(WireError):
        decode_batch_json(text.encode("utf-8", "surrogatepass"))
