"""A request's header fields and its body, with limits on size before and after decompression."""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from rappor.collector.refusal import Refusal
from rappor.collector.settings import MIB
from rappor.wire import BINARY, JSON, MAX_BODY, MAX_INFLATED, Batch, decode_batch, decode_batch_json

Receive = Callable[[], Awaitable[Any]]

_BINARY, _JSON = BINARY.encode(), JSON.encode()
_DECODERS: dict[bytes, Callable[[bytes], Batch]] = {_BINARY: decode_batch, _JSON: decode_batch_json}
_DRAINED = 2 * MIB  # a larger body is not read to its end, and its sender may miss the answer


class Disconnected(Exception):
    """The client went away before its request was complete."""


class Fields(NamedTuple):
    """The header fields that are used; all others are ignored."""

    content_type: bytes
    encoding: bytes
    length: int
    authorization: bytes
    forwarded: bytes


def fields_of(headers: list[tuple[bytes, bytes]]) -> Fields:
    """Find the fields; `length` is -1 if the request does not say."""
    content_type = encoding = authorization = forwarded = b""
    length = -1
    for name, value in headers:
        if name == b"content-type":
            content_type = value
        elif name == b"content-length":
            # llhttp has refused what is not a number; a very long number is too large anyway
            length = int(value) if len(value) < 19 else MAX_BODY + 1
        elif name == b"content-encoding":
            encoding = value
        elif name == b"authorization":
            authorization = value
        elif name == b"x-forwarded-for":
            forwarded = value
    return Fields(content_type, encoding, length, authorization, forwarded)


async def read_body(fields: Fields, receive: Receive) -> bytes:
    """The body, or Refusal as soon as it is too large."""
    if fields.length > MAX_BODY:
        await _drain(fields.length, receive)
        raise Refusal("body-too-large", _LIMIT, close=True)
    message = await receive()
    if message["type"] != "http.request":
        raise Disconnected
    body: bytes = message["body"]
    if not message["more_body"]:
        if len(body) > MAX_BODY:
            raise Refusal("body-too-large", _LIMIT)
        return body
    parts, size = [body], len(body)
    while message["more_body"]:
        message = await receive()
        if message["type"] != "http.request":
            raise Disconnected
        size += len(message["body"])
        if size > MAX_BODY:
            raise Refusal("body-too-large", _LIMIT, close=True)
        parts.append(message["body"])
    return b"".join(parts)


async def _drain(length: int, receive: Receive) -> None:
    """Read a body that is a little too large: closing with unread bytes resets the connection."""
    left = length if length <= _DRAINED else 0
    while left > 0:
        message = await receive()
        if message["type"] != "http.request":
            raise Disconnected
        left = left - len(message["body"]) if message["more_body"] else 0


def parse(fields: Fields, body: bytes) -> Batch:
    """The batch in a body; Refusal, or WireError if its structure is wrong."""
    decoder = _DECODERS.get(fields.content_type)
    if decoder is None:  # not spelled as our client spells it
        decoder = _DECODERS.get(fields.content_type.partition(b";")[0].strip().lower())
        if decoder is None:
            raise Refusal("unsupported-media-type", f"send {BINARY} or {JSON}")
    if fields.encoding:
        body = _inflate(fields.encoding.strip().lower(), body)
    return decoder(body)


def _inflate(encoding: bytes, body: bytes) -> bytes:
    if encoding in (b"identity", b""):
        return body
    if encoding not in (b"gzip", b"x-gzip"):
        raise Refusal("unsupported-encoding", "send gzip, or no content encoding")
    inflater = zlib.decompressobj(wbits=31)
    try:
        data = inflater.decompress(body, MAX_INFLATED + 1)
    except zlib.error:
        raise Refusal("bad-encoding", "the body is not gzip") from None
    if len(data) > MAX_INFLATED:
        raise Refusal("body-too-large", f"at most {MAX_INFLATED} bytes after decompression")
    if not inflater.eof or inflater.unused_data:
        raise Refusal("bad-encoding", "the body must be one whole gzip member")
    return data


_LIMIT = f"at most {MAX_BODY} bytes"
