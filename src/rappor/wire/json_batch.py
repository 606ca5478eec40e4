"""A batch as JSON with base64 inside, for clients without binary tools (docs/protocol.md).

`json.loads` alone takes NaN, repeated keys, UTF-16, deep nesting and numbers without end: all are
refused here before they can mean anything.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, NoReturn

from rappor.errors import WireError
from rappor.wire.batch import MAX_BODY, MAX_INFLATED, TOKEN_BYTES, Batch
from rappor.wire.binary import fits

JSON = "application/json"
FORMAT = 1
MOST_DEPTH = 8
_KEYS = (
    "rappor",
    "token",
    "collection",
    "version",
    "period",
    "dimensions",
    "k",
    "cohorts",
    "reports",
)
_HEX = re.compile(r"[0-9a-f]*")
_MOST_COMMAS = 32  # a batch has at most 15; each costs time before anything else is known
_DIGITS = 9  # in a number: none that is allowed has more than five


def encode_batch_json(batch: Batch) -> bytes:
    """The batch as one JSON object of at most 256 KiB, or WireError."""
    if not isinstance(batch, Batch):
        raise WireError(f"batch must be a Batch, got {type(batch).__name__}")
    document = {
        "rappor": FORMAT,
        "token": batch.token.hex(),
        "collection": batch.collection,
        "version": batch.version,
        "period": batch.period,
        "dimensions": dict(batch.dimensions),
        "k": batch.k,
        "cohorts": base64.b64encode(batch.cohorts).decode("ascii"),
        "reports": base64.b64encode(batch.reports).decode("ascii"),
    }
    return fits(json.dumps(document, separators=(",", ":")).encode("ascii"), MAX_BODY)


def decode_batch_json(data: bytes) -> Batch:
    """The batch that a JSON message is, or WireError; at most 1 MiB, after decompression."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise WireError(f"a JSON batch is bytes, got {type(data).__name__}")
    found = parse_json(fits(bytes(data), MAX_INFLATED))
    if not isinstance(found, dict):
        raise WireError("a JSON batch is an object")
    missing = [key for key in _KEYS if key not in found]
    if missing or len(found) != len(_KEYS):
        raise WireError(
            f"a JSON batch has exactly the keys {', '.join(_KEYS)}"
            + (f"; missing: {', '.join(missing)}" if missing else "; it has others")
        )
    if found["rappor"] != FORMAT or isinstance(found["rappor"], bool):
        raise WireError(f"rappor must be {FORMAT}, the only format there is")
    dimensions = found["dimensions"]
    if not isinstance(dimensions, dict):
        raise WireError("dimensions must be an object of names and values")
    return Batch(
        _from_hex(found["token"]),
        found["collection"],
        found["version"],
        found["period"],
        tuple(sorted(dimensions.items())),
        found["k"],
        _from_base64("cohorts", found["cohorts"]),
        _from_base64("reports", found["reports"]),
    )


def parse_json(data: bytes) -> Any:
    """A JSON document in UTF-8 of whole numbers, few brackets, each key once, or WireError."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("a JSON message is UTF-8 text") from None
    if text.count("[") + text.count("{") > MOST_DEPTH:  # no text of a batch holds a bracket
        raise WireError(
            f"a JSON batch has at most {MOST_DEPTH} opening brackets, and so is at most as deep"
        )
    if text.count(",") > _MOST_COMMAS:  # no text of a batch holds one either
        raise WireError(f"a JSON batch has at most {_MOST_COMMAS} commas")
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_refuse_fraction,
            parse_int=_short_int,
        )
    except WireError:
        raise
    except (ValueError, RecursionError):
        raise WireError("the message is not valid JSON") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise WireError("a JSON message names each key once")
    return found


def _refuse_constant(_: str) -> NoReturn:
    raise WireError("a JSON message holds no NaN and no Infinity")


def _refuse_fraction(_: str) -> NoReturn:
    raise WireError("numbers in a JSON message are whole, written without point or exponent")


def _short_int(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise WireError(f"numbers in a JSON message have at most {_DIGITS} digits")
    return int(digits)


def _from_hex(text: Any) -> bytes:
    if not isinstance(text, str) or len(text) != 2 * TOKEN_BYTES or not _HEX.fullmatch(text):
        raise WireError(f"token must be {2 * TOKEN_BYTES} lower-case hex digits")
    return bytes.fromhex(text)


def _from_base64(name: str, text: Any) -> bytes:
    """Standard base64 with padding; the one way of writing the bytes and no other."""
    expected = f"{name} must be base64 (RFC 4648, section 4) with padding"
    if not isinstance(text, str):
        raise WireError(expected)
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise WireError(expected) from None
    if base64.b64encode(data).decode("ascii") != text:
        raise WireError(f"{expected}, without stray bits at its end")
    return data
