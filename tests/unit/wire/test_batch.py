"""Batches: the golden vectors byte for byte, and everything bad refused with its reason."""

import base64
import json
import struct
from pathlib import Path
from typing import Any

import pytest

from rappor import Report
from rappor.errors import WireError
from rappor.wire import (
    MAX_BODY,
    MAX_INFLATED,
    Batch,
    decode_batch,
    decode_batch_json,
    encode_batch,
    encode_batch_json,
    reports_that_fit,
)
from rappor.wire.binary import split_batch

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "batches.json").read_text())
TOKEN = bytes(range(16))


def named(cases: list[dict[str, Any]]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=[case["about"] for case in cases])


def batch_of(case: dict[str, Any]) -> Batch:
    fields = case["batch"]
    return Batch(
        token=bytes.fromhex(fields["token"]),
        collection=fields["collection"],
        version=fields["version"],
        period=fields["period"],
        dimensions=tuple((name, value) for name, value in fields["dimensions"]),
        k=fields["k"],
        cohorts=b"".join(struct.pack("<H", cohort) for cohort in fields["cohorts"]),
        reports=bytes.fromhex(fields["reports"]),
    )


def made(**given: Any) -> Batch:
    fields: dict[str, Any] = {
        "token": TOKEN, "collection": "homepage", "version": 1, "period": "2026-11-16",
        "dimensions": (), "k": 8, "cohorts": b"\0\0", "reports": b"\5",
    }  # fmt: skip
    return Batch(**(fields | given))


@named(VECTORS["good"])
def test_a_golden_batch_is_written_and_read_to_the_byte(case: dict[str, Any]) -> None:
    batch = batch_of(case)
    assert encode_batch(batch).hex() == case["binary"]
    assert decode_batch(bytes.fromhex(case["binary"])) == batch
    assert encode_batch_json(batch).decode() == case["json"]
    assert decode_batch_json(case["json"].encode()) == batch


@named(VECTORS["bad_binary"])
def test_bad_bytes_are_refused_with_their_reason(case: dict[str, Any]) -> None:
    with pytest.raises(WireError) as caught:
        decode_batch(bytes.fromhex(case["binary"]))
    assert case["error"] in str(caught.value)


@named(VECTORS["bad_json"])
def test_bad_json_is_refused_with_its_reason(case: dict[str, Any]) -> None:
    with pytest.raises(WireError) as caught:
        decode_batch_json(case["json"].encode("utf-8", "surrogatepass"))
    assert case["error"] in str(caught.value)


def test_json_in_another_encoding_is_refused() -> None:
    text = encode_batch_json(made()).decode()
    for encoding in ("utf-16", "utf-32", "utf-16-le"):
        with pytest.raises(WireError):
            decode_batch_json(text.encode(encoding))
    with pytest.raises(WireError, match="UTF-8"):
        decode_batch_json(b"\xff\xfe")


def test_a_hostile_document_costs_little_before_it_is_refused() -> None:
    """A mebibyte of brackets is never walked through: a batch has two."""
    size = MAX_INFLATED - 2
    for hostile in (b"[" * size, b"[" + b"[]," * (size // 3), b'{"a":' * (size // 5)):
        with pytest.raises(WireError, match="at most 8 opening brackets"):
            decode_batch_json(hostile)
    eight = b"[" * 8 + b"]" * 8
    with pytest.raises(WireError, match="a JSON batch is an object"):
        decode_batch_json(eight)


def test_keys_may_come_in_any_order_and_with_space() -> None:
    document = json.loads(encode_batch_json(made(dimensions=(("a", "1"), ("b", "2")))))
    backwards = dict(reversed(document.items()))
    backwards["dimensions"] = dict(reversed(document["dimensions"].items()))
    text = json.dumps(backwards, indent=2)
    assert decode_batch_json(text.encode()) == decode_batch_json(json.dumps(document).encode())


def test_reports_of_an_encoder_are_packed_in_order() -> None:
    batch = Batch.of(
        [Report(3, 5), Report(258, 0x1FF)], token=TOKEN, collection="c", version=2,
        period="2026-W47", dimensions=[("os", "mac")], k=9,
    )  # fmt: skip
    assert (batch.count, batch.cohorts.hex(), batch.reports.hex()) == (2, "03000201", "0500ff01")
    for report in (Report(-1, 0), Report(1024, 0), Report(0, 512), Report(True, 0)):
        with pytest.raises(WireError):
            Batch.of([report], token=TOKEN, collection="c", version=1, period="2026-W47", k=9)


@pytest.mark.parametrize("k", [1, 8, 9, 128, 4096])
def test_as_many_reports_fit_as_are_said_to(k: int) -> None:
    count = reports_that_fit(k)
    dimensions = tuple((f"{letter}" * 32, "v" * 64) for letter in "abcdefgh")
    size = (k + 7) // 8
    full = made(
        collection="c" * 63, dimensions=dimensions, k=k, version=65535,
        cohorts=bytes(2 * count), reports=bytes(size * count),
    )  # fmt: skip
    assert len(encode_batch(full)) <= MAX_BODY
    assert MAX_BODY - 4 * (size + 2) < len(encode_batch_json(full)) + 2048 <= MAX_BODY + 2048
    too_many = made(k=k, cohorts=bytes(2 * 2 * count), reports=bytes(2 * size * count))
    for encode in (encode_batch, encode_batch_json):
        with pytest.raises(WireError, match="a message has at most 262144 bytes"):
            encode(too_many)


def test_a_message_may_be_a_mebibyte_after_decompression_and_no_more() -> None:
    at_most = encode_batch(made())[:-3]  # without the one cohort and report
    count = (MAX_INFLATED - len(at_most)) // 3
    head = at_most[:24] + struct.pack("<I", count) + at_most[28:]
    large = head + bytes(3 * count)
    assert decode_batch(large).count == count
    for decode in (decode_batch, decode_batch_json):
        with pytest.raises(WireError, match="at most 1048576 bytes"):
            decode(bytes(MAX_INFLATED + 1))


@pytest.mark.parametrize("wrong", [None, "RPR1", 7, ["a"]])
def test_what_is_not_bytes_or_a_batch_is_refused(wrong: Any) -> None:
    for function in (decode_batch, decode_batch_json, encode_batch, encode_batch_json):
        with pytest.raises(WireError):
            function(wrong)


@pytest.mark.parametrize(
    "given",
    [
        {"token": "0" * 16}, {"token": bytes(15)}, {"cohorts": "00"}, {"reports": bytearray(1)},
        {"dimensions": 3}, {"dimensions": ("os",)}, {"dimensions": (("os", None),)},
        {"k": 8.0}, {"period": 20261116}, {"collection": None},
    ],
)  # fmt: skip
def test_a_batch_of_wrong_types_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        made(**given)


def test_a_message_never_repeats_what_was_sent() -> None:
    marker = "x9marker9x"
    document = json.loads(encode_batch_json(made()))
    for key in set(document) - {"collection"}:  # where the marker is a good name
        for value in (marker, [marker], {marker: marker + ";"}):
            with pytest.raises(WireError) as caught:
                decode_batch_json(json.dumps(document | {key: value}).encode())
            assert marker not in str(caught.value)
            assert caught.value.__suppress_context__ or caught.value.__context__ is None
    with pytest.raises(WireError) as caught:
        decode_batch(b"RPR1" + TOKEN + struct.pack("<HHI", 1, 8, 1) + b"\x0a" + marker.encode())
    assert marker not in str(caught.value)
    assert TOKEN.hex() not in repr(made())


def test_the_vectors_hold_what_base64_and_struct_make_of_them() -> None:
    """The vectors are not what the code under test wrote: they agree with plain Python."""
    for case in VECTORS["good"]:
        document, fields = json.loads(case["json"]), case["batch"]
        assert base64.b64decode(document["reports"]).hex() == fields["reports"]
        count = len(fields["cohorts"])
        packed = struct.pack("<4s16sHHI", b"RPR1", bytes.fromhex(fields["token"]),
                             fields["version"], fields["k"], count)  # fmt: skip
        assert case["binary"].startswith(packed.hex())
        assert case["binary"].endswith(fields["reports"])


@named(VECTORS["good"])
def test_a_batch_is_cut_apart_as_it_is_decoded(case: dict[str, Any]) -> None:
    batch = batch_of(case)
    parts = split_batch(bytes.fromhex(case["binary"]))
    assert parts is not None
    assert parts[1:] == (batch.token, batch.cohorts, batch.reports)


def test_a_header_is_that_of_every_batch_of_its_cell_and_of_no_other() -> None:
    def header(**given: Any) -> bytes:
        parts = split_batch(encode_batch(made(**given)))
        assert parts is not None
        return parts.header

    assert header() == header(token=bytes(16), cohorts=b"\1\0\2\0", reports=b"\6\7")
    others = [
        {"collection": "homepagf"},
        {"version": 2},
        {"period": "2026-11-17"},
        {"dimensions": (("os", "mac"),)},
        {"k": 7},
        {"k": 9, "reports": b"\5\0"},
    ]
    assert len({header(), *(header(**other) for other in others)}) == 1 + len(others)


@pytest.mark.parametrize("size", range(29))
def test_bytes_that_end_within_the_head_cannot_be_cut(size: int) -> None:
    assert split_batch(encode_batch(made())[:size]) is None
