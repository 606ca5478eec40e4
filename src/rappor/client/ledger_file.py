"""The ledger on disk: one sealed JSON document, always replaced as a whole and read strictly.

For each value it holds a 128-bit keyed fingerprint and the terms that the value was charged for.
It holds nothing else about values, and not the order in which they were reported.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from rappor import formats
from rappor.client.accounts import NULL, ChargeAccount, Ledger, Term
from rappor.client.folder import Disk, seal, unseal
from rappor.client.identity import LEDGER, check_of, was_used
from rappor.client.outbox import newest
from rappor.client.problems import Stopped
from rappor.errors import RapporError
from rappor.mechanism.entropy import derive_key
from rappor.mechanism.kinds import check_kind
from rappor.params import Params

FORGOTTEN = "forgotten"
_FINGERPRINT = 16  # bytes


def load_ledger(disk: Disk, secret: bytes) -> Ledger:
    """The ledger of this secret; a new one on first use. Call it while holding the lock.

    Raises:
        Stopped: it is missing after first use, damaged, too old, or belongs to another secret.
    """
    ledger = find_ledger(disk)
    if ledger is None:
        return replace(load_forgotten(disk), secret=check_of(secret))
    if ledger.secret != check_of(secret):
        raise Stopped("secret-changed")
    return ledger


def find_ledger(disk: Disk) -> Ledger | None:
    """The ledger of this directory, or None if there was never one.

    Raises:
        Stopped: it is missing after first use, damaged, or older than the newest report.
    """
    data = disk.read(LEDGER)
    if data is None:
        if was_used(disk):
            raise Stopped("ledger-missing")
        return None
    ledger = parse_ledger(data)
    if ledger.batches < newest(disk):  # restored from a backup: later charges are not in it
        raise Stopped("ledger-outdated")
    return ledger


def save_ledger(disk: Disk, ledger: Ledger) -> None:
    """Store the ledger, durably."""
    disk.replace(LEDGER, seal("ledger", _to_json(ledger)))


def parse_ledger(data: bytes) -> Ledger:
    """The ledger in a file's bytes, or Stopped."""
    body = unseal("ledger", data)
    if body is None:
        raise Stopped("ledger-damaged")
    try:
        return _from_json(formats.parse_json(body.decode("utf-8")))
    except (RapporError, KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise Stopped("ledger-damaged") from None


def fingerprints(secret: bytes, collection: str, memo: str) -> Callable[[bytes], str]:
    """A function from a value's memo bytes to its 128-bit fingerprint under this secret."""
    key = derive_key(secret, b"client fingerprint", collection.encode(), bytes.fromhex(memo))

    def fingerprint(data: bytes) -> str:
        return hashlib.blake2b(data, key=key, digest_size=_FINGERPRINT).hexdigest()

    return fingerprint


def save_forgotten(
    disk: Disk, carried: Mapping[str, float], groups: Mapping[str, str], floors: Mapping[str, str]
) -> None:
    """Keep what forgotten secrets have cost: the ε of the next one adds to it.

    Also keep the last reported period of each collection: no period gets a second report.
    """
    kept = {
        "carried": {name: _number(epsilon) for name, epsilon in sorted(carried.items())},
        "groups": dict(sorted(groups.items())),
        "floors": dict(sorted(floors.items())),
    }
    disk.replace(FORGOTTEN, seal(FORGOTTEN, json.dumps(kept).encode("ascii")))


def load_forgotten(disk: Disk) -> Ledger:
    """A ledger with only what forgotten secrets have cost."""
    data = disk.read(FORGOTTEN)
    if data is None:
        return Ledger("")
    body = unseal(FORGOTTEN, data)
    try:
        found = formats.parse_json((body or b"").decode("ascii"))
        carried = {_text(name): _epsilon(value) for name, value in found["carried"].items()}
        groups, floors = _texts(found["groups"]), _texts(found.get("floors", {}))
        return Ledger("", carried=carried, groups=groups, floors=floors)
    except (RapporError, KeyError, ValueError, AttributeError, TypeError):
        raise Stopped("ledger-damaged") from None


def _to_json(ledger: Ledger) -> bytes:
    document = asdict(ledger)
    document["carried"] = {name: _number(value) for name, value in ledger.carried.items()}
    return json.dumps(document, allow_nan=False, separators=(",", ":")).encode("ascii")


def _from_json(found: Any) -> Ledger:
    return Ledger(
        secret=_text(found["secret"]),
        since=None if found["since"] is None else _text(found["since"]),
        batches=_whole(found["batches"]),
        carried={_text(name): _epsilon(value) for name, value in found["carried"].items()},
        accounts=tuple(_account(account) for account in found["accounts"]),
        used={
            _text(name): {_text(period): _whole(made) for period, made in periods.items()}
            for name, periods in found["used"].items()
        },
        groups=_texts(found["groups"]),
        floors=_texts(found["floors"]),
    )


def _account(found: Any) -> ChargeAccount:
    terms = tuple(
        Term(
            float(term["p"]),
            float(term["q"]),
            None if term["period"] is None else _text(term["period"]),
            _whole(term["limit"]),
            _whole(term["charged"]),
            _whole(term["made"]),
        )
        for term in found["terms"]
    )
    values = {
        _fingerprint(value): tuple(_whole(number, len(terms) - 1) for number in numbers)
        for value, numbers in found["values"].items()
    }
    return ChargeAccount(
        _text(found["collection"]),
        _text(found["memo"]),
        check_kind(_text(found["kind"])),
        Params.from_dict(found["params"]),
        terms,
        values,
    )


def _fingerprint(value: str) -> str:
    if value != NULL and len(bytes.fromhex(value)) != _FINGERPRINT:
        raise ValueError("not a fingerprint")
    return value


def _texts(found: Any) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in found.items()}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _whole(value: Any, most: int = 10**18) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise ValueError("not a whole number")
    return value


def _number(epsilon: float) -> float | str:
    return "inf" if epsilon == math.inf else epsilon


def _epsilon(value: Any) -> float:
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
        raise ValueError("not an ε")
    return float(value)
