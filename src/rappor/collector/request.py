"""A request's header fields and its body, with a limit on its size (`wire.body` decodes it)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from rappor.collector.refusal import Refusal
from rappor.collector.settings import MIB
from rappor.wire import MAX_BODY, Batch
from rappor.wire.body import decode_body
from rappor.wire.protocol import BatchRefused

Receive = Callable[[], Awaitable[Any]]

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
        return sized(body)
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


def sized(body: bytes) -> bytes:
    """A body that has arrived whole, or Refusal if it is too large."""
    if len(body) > MAX_BODY:
        raise Refusal("body-too-large", _LIMIT)
    return body


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
    try:
        return decode_body(fields.content_type, fields.encoding, body)
    except BatchRefused as refused:
        raise Refusal(refused.code, refused.detail) from None


_LIMIT = f"at most {MAX_BODY} bytes"
