"""A batch as bytes: the format `RPR1`, application/vnd.rappor.batch (docs/protocol.md).

A fixed head, a few short texts, all cohorts, then all reports. A batch has exactly one encoding, so
reading and writing it gives the same bytes.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from rappor.errors import WireError
from rappor.wire.batch import Batch
from rappor.wire.protocol import MAX_BODY, MAX_INFLATED, TOKEN_BYTES

MAGIC = b"RPR1"
_HEAD = struct.Struct(f"<4s{TOKEN_BYTES}sHHI")  # magic, token, version, k, number of reports
_MAGIC_END = len(MAGIC)
_TOKEN_END = _MAGIC_END + TOKEN_BYTES
_COUNT_AT = _HEAD.size - 4


class BatchParts(NamedTuple):
    """A batch in the binary format, cut into its parts and not checked.

    Attributes:
        header: everything that batches of one cell share: magic, version, k and the names. If it
            equals the header of a batch that `decode_batch` accepts, only the cohorts and the
            padding bits are left to check.
        token: as in `Batch`.
        cohorts: as in `Batch`.
        reports: as in `Batch`.
    """

    header: bytes
    token: bytes
    cohorts: bytes
    reports: bytes


def encode_batch(batch: Batch) -> bytes:
    """Encode a batch; WireError if it is longer than 256 KiB."""
    if not isinstance(batch, Batch):
        raise WireError(f"batch must be a Batch, got {type(batch).__name__}")
    message = b"".join(
        (
            _HEAD.pack(MAGIC, batch.token, batch.version, batch.k, batch.count),
            _short(batch.collection),
            _short(batch.period),
            bytes([len(batch.dimensions)]),
            *(_short(text) for pair in batch.dimensions for text in pair),
            batch.cohorts,
            batch.reports,
        )
    )
    return fits(message, MAX_BODY)


def decode_batch(data: bytes) -> Batch:
    """The batch in some bytes (at most 1 MiB, after decompression), or WireError."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise WireError(f"a batch is bytes, got {type(data).__name__}")
    data = fits(bytes(data), MAX_INFLATED)
    if len(data) < _HEAD.size:
        raise WireError("the batch ends within its head")
    magic, token, version, k, count = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise WireError("the batch does not start with RPR1, the only known format")
    collection, at = _read_short(data, _HEAD.size)
    period, at = _read_short(data, at)
    if at >= len(data):
        raise WireError("the batch ends before its dimensions")
    pairs, at = data[at], at + 1
    dimensions = []
    for _ in range(pairs):
        name, at = _read_short(data, at)
        value, at = _read_short(data, at)
        dimensions.append((name, value))
    end = at + 2 * count
    cohorts, reports = data[at:end], data[end:]
    if len(cohorts) != 2 * count:
        raise WireError("the batch ends within its cohorts")
    return Batch(token, collection, version, period, tuple(dimensions), k, cohorts, reports)


def split_batch(data: bytes) -> BatchParts | None:
    """Cut a batch into its parts without checking it, ten times as fast as `decode_batch`.

    None if the bytes cannot be a batch.
    """
    if len(data) < _HEAD.size:
        return None
    _, token, _, k, count = _HEAD.unpack_from(data)
    cohorts_at = len(data) - count * (2 + (k + 7) // 8)
    if not count or cohorts_at <= _HEAD.size:
        return None
    reports_at = cohorts_at + 2 * count
    header = data[:_MAGIC_END] + data[_TOKEN_END:_COUNT_AT] + data[_HEAD.size : cohorts_at]
    return BatchParts(header, token, data[cohorts_at:reports_at], data[reports_at:])


def fits(data: bytes, limit: int) -> bytes:
    """The message, or WireError if it is too long."""
    if len(data) > limit:
        raise WireError(f"a message has at most {limit} bytes, got {len(data)}")
    return data


def _short(text: str) -> bytes:
    """A text of at most 255 bytes, preceded by its length."""
    data = text.encode("ascii")
    return bytes([len(data)]) + data


def _read_short(data: bytes, at: int) -> tuple[str, int]:
    """A short text and the offset of its end."""
    if at >= len(data):
        raise WireError("the batch ends within its names")
    end = at + 1 + data[at]
    if end > len(data):
        raise WireError("the batch ends within its names")
    try:
        return data[at + 1 : end].decode("ascii"), end
    except UnicodeDecodeError:
        raise WireError("names in a batch are ASCII text") from None
