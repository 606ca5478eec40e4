"""A batch as bytes: the format `RPR1`, application/vnd.rappor.batch (docs/protocol.md).

Fixed head, three short texts, then all cohorts and all reports. One batch has one encoding: what
is read and written again is the same bytes.
"""

from __future__ import annotations

import struct

from rappor.errors import WireError
from rappor.wire.batch import MAX_BODY, MAX_INFLATED, TOKEN_BYTES, Batch

MAGIC = b"RPR1"
BINARY = "application/vnd.rappor.batch"
_HEAD = struct.Struct(f"<4s{TOKEN_BYTES}sHHI")  # magic, token, version, k, number of reports


def encode_batch(batch: Batch) -> bytes:
    """The batch in at most 256 KiB, or WireError."""
    if not isinstance(batch, Batch):
        raise WireError(f"batch must be a Batch, got {type(batch).__name__}")
    made = b"".join(
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
    return fits(made, MAX_BODY)


def decode_batch(data: bytes) -> Batch:
    """The batch that bytes are, or WireError; at most 1 MiB, after decompression."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise WireError(f"a batch is bytes, got {type(data).__name__}")
    data = fits(bytes(data), MAX_INFLATED)
    if len(data) < _HEAD.size:
        raise WireError("the batch ends within its head")
    magic, token, version, k, count = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise WireError("the batch does not start with RPR1, the only format there is")
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


def fits(data: bytes, most: int) -> bytes:
    """The message, or WireError if it is too long."""
    if len(data) > most:
        raise WireError(f"a message has at most {most} bytes, got {len(data)}")
    return data


def _short(text: str) -> bytes:
    """A text of at most 255 bytes behind its length."""
    data = text.encode("ascii")
    return bytes([len(data)]) + data


def _read_short(data: bytes, at: int) -> tuple[str, int]:
    """A short text and where it ends."""
    if at >= len(data):
        raise WireError("the batch ends within its names")
    end = at + 1 + data[at]
    if end > len(data):
        raise WireError("the batch ends within its names")
    try:
        return data[at + 1 : end].decode("ascii"), end
    except UnicodeDecodeError:
        raise WireError("names in a batch are ASCII text") from None
