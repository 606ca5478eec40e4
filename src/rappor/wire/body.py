"""The body of a request as a batch: content type, decompression, limits."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from rappor.wire.batch import Batch
from rappor.wire.binary import decode_batch
from rappor.wire.json_batch import decode_batch_json
from rappor.wire.protocol import BINARY, JSON, MAX_INFLATED, BatchRefused

_DECODERS: dict[bytes, Callable[[bytes], Batch]] = {
    BINARY.encode(): decode_batch,
    JSON.encode(): decode_batch_json,
}


def decode_body(content_type: bytes, encoding: bytes, body: bytes) -> Batch:
    """The batch in a body; BatchRefused, or WireError if its structure is wrong.

    Args:
        content_type: the header field of that name; empty if there is none.
        encoding: the header field Content-Encoding; empty if there is none.
        body: the bytes of the body.
    """
    decoder = _DECODERS.get(content_type)
    if decoder is None:  # not spelled as our client spells it
        decoder = _DECODERS.get(content_type.partition(b";")[0].strip().lower())
        if decoder is None:
            raise BatchRefused("unsupported-media-type", f"send {BINARY} or {JSON}")
    if encoding:
        body = _inflate(encoding.strip().lower(), body)
    return decoder(body)


def _inflate(encoding: bytes, body: bytes) -> bytes:
    if encoding in (b"identity", b""):
        return body
    if encoding not in (b"gzip", b"x-gzip"):
        raise BatchRefused("unsupported-encoding", "send gzip, or no content encoding")
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(body, MAX_INFLATED + 1)
    except zlib.error:
        raise BatchRefused("bad-encoding", "the body is not gzip") from None
    if len(data) > MAX_INFLATED:
        raise BatchRefused("body-too-large", f"at most {MAX_INFLATED} bytes after decompression")
    if not inflater.eof or inflater.unused_data:
        raise BatchRefused("bad-encoding", "the body must be one whole gzip member")
    return data
