"""A batch as JSON with base64 inside, for clients without binary tools (docs/protocol.md).

`json.loads` alone accepts NaN, repeated keys, UTF-16, deep nesting and numbers of any length. All
of them are refused here.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, NoReturn

from rappor.errors import WireError
from rappor.wire.batch import Batch
from rappor.wire.binary import fits
from rappor.wire.protocol import MAX_BODY, MAX_INFLATED, TOKEN_BYTES

FORMAT = 1
_MAX_BRACKETS = 8
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
_MAX_COMMAS = 32  # a batch has at most 15, and parsing each of them takes time
_MAX_DIGITS = 9  # in a number; no valid number has more than five


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
    """The batch in a JSON message (at most 1 MiB, after decompression), or WireError."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise WireError(f"a JSON batch is bytes, got {type(data).__name__}")
    document = parse_json(fits(bytes(data), MAX_INFLATED))
    if not isinstance(document, dict):
        raise WireError("a JSON batch is an object")
    missing = [key for key in _KEYS if key not in document]
    if missing or len(document) != len(_KEYS):
        raise WireError(
            f"a JSON batch has exactly the keys {', '.join(_KEYS)}"
            + (f"; missing: {', '.join(missing)}" if missing else "; it has others")
        )
    if document["rappor"] != FORMAT or isinstance(document["rappor"], bool):
        raise WireError(f"rappor must be {FORMAT}, the only known format")
    dimensions = document["dimensions"]
    if not isinstance(dimensions, dict):
        raise WireError("dimensions must be an object of names and values")
    return Batch(
        _from_hex(document["token"]),
        document["collection"],
        document["version"],
        document["period"],
        tuple(sorted(dimensions.items())),
        document["k"],
        _from_base64("cohorts", document["cohorts"]),
        _from_base64("reports", document["reports"]),
    )


def parse_json(data: bytes) -> Any:
    """Parse a JSON document, or WireError if it is larger or freer than a batch can be."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise WireError("a JSON message is UTF-8 text") from None
    if text.count("[") + text.count("{") > _MAX_BRACKETS:  # no text in a batch has a bracket
        raise WireError(f"a JSON batch has at most {_MAX_BRACKETS} opening brackets")
    if text.count(",") > _MAX_COMMAS:  # nor a comma
        raise WireError(f"a JSON batch has at most {_MAX_COMMAS} commas")
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
    unique = dict(pairs)
    if len(unique) != len(pairs):
        raise WireError("a JSON message names each key once")
    return unique


def _refuse_constant(_: str) -> NoReturn:
    raise WireError("a JSON message holds no NaN and no Infinity")


def _refuse_fraction(_: str) -> NoReturn:
    raise WireError("numbers in a JSON message are whole, written without point or exponent")


def _short_int(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise WireError(f"numbers in a JSON message have at most {_MAX_DIGITS} digits")
    return int(digits)


def _from_hex(text: Any) -> bytes:
    if not isinstance(text, str) or len(text) != 2 * TOKEN_BYTES or not _HEX.fullmatch(text):
        raise WireError(f"token must be {2 * TOKEN_BYTES} lower-case hex digits")
    return bytes.fromhex(text)


def _from_base64(name: str, text: Any) -> bytes:
    """Decode standard base64 with padding; only the canonical text of the bytes is accepted."""
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
