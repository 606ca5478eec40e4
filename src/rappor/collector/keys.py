"""Ingest keys, which ship in clients, and gateway keys, which never leave a server.

An ingest key is public: it is in every copy of the application. It lets an operator limit or shut
out one application, and it proves nothing about a sender. A gateway key is secret. With it an
importer or a relay sends batches of any size, without the rate limit of its address. The file has
only SHA-256 digests of the keys, which have 144 random bits, so it does not reveal them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rappor import checks
from rappor.errors import ParamsError
from rappor.files import write_text

Role = Literal["ingest", "gateway"]

# People can tell a secret key by its prefix.
PREFIXES: dict[Role, str] = {
    "ingest": "rpk_",
    "gateway": "rpg_",
}
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS = dict.fromkeys(("name", "sha256", "collections", "rate", "role"))


@dataclass(frozen=True, slots=True)
class Key:
    """One application's or gateway's key.

    Attributes:
        name: the application or gateway that has it.
        digest: SHA-256 of the key, in hexadecimal.
        collections: the collections that it may send to; empty for all.
        rate: the largest number of reports a second with this key; 0 for no limit.
        role: `ingest`, or `gateway` for batches of more than `rappor.wire.MAX_REPORTS` reports.
    """

    name: str
    digest: str
    collections: tuple[str, ...] = ()
    rate: float = 0.0
    role: Role = "ingest"

    def opens(self, collection: str) -> bool:
        """Whether it may send to a collection."""
        return not self.collections or collection in self.collections


def digest_of(key: bytes) -> str:
    """The digest of a key, as in the file."""
    return hashlib.sha256(key).hexdigest()


def read_keys(path: str | Path) -> dict[str, Key]:
    """Read the keys of a file, by digest, or ParamsError.

    The file is JSON: {"keys": [{"name": …, "sha256": …, "collections": […], "rate": …,
    "role": …}, …]}. The last three are optional.
    """
    file = Path(path).expanduser()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(f"{file}: no such file of keys (--new-key NAME makes it)") from None
    except ValueError:
        raise ParamsError(f"{file}: not a JSON document; name the file of --new-key") from None
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise ParamsError(f'{file}: must be an object with a list "keys"')
    try:
        keys = [_key(entry) for entry in document["keys"]]
    except ParamsError as error:
        raise ParamsError(f"{file}: {error}") from None
    names = [key.name for key in keys]
    if len(set(names)) < len(names):
        raise ParamsError(f"{file}: two keys have one name")
    return {key.digest: key for key in keys}


def _key(entry: Any) -> Key:
    if not isinstance(entry, Mapping) or set(entry) - _FIELDS.keys():
        raise ParamsError(f"each key is an object with {', '.join(_FIELDS)}")
    name, digest = entry.get("name"), entry.get("sha256")
    collections, rate = entry.get("collections", []), entry.get("rate", 0)
    role = entry.get("role", "ingest")
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
        raise ParamsError("sha256 of a key must be 64 hexadecimal digits")
    if not isinstance(collections, list) or not all(isinstance(name, str) for name in collections):
        raise ParamsError("collections of a key must be a list of names")
    if rate != 0:
        rate = checks.positive("rate", rate)
    if not isinstance(role, str) or role not in PREFIXES:
        raise ParamsError(f"role of a key must be one of {', '.join(PREFIXES)}")
    return Key(_name(name), digest, tuple(collections), float(rate), role)


def _name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ParamsError(
            f"the name of a key must match [a-z][a-z0-9_-]{{0,62}}, got {checks.show(name)}"
        )
    return name


def new_key(
    path: str | Path,
    name: str,
    collections: tuple[str, ...] = (),
    rate: float = 0.0,
    role: Role = "ingest",
) -> str:
    """Make a key, add its digest to the file (created with mode 0600 if missing), and return it."""
    file = Path(path).expanduser()
    _name(name)
    known = read_keys(file) if file.exists() else {}
    if any(key.name == name for key in known.values()):
        raise ParamsError(f"{file}: there is a key {name} already; take its entry out first")
    key = PREFIXES[role] + base64.urlsafe_b64encode(secrets.token_bytes(18)).decode("ascii")
    entries = [*known.values(), Key(name, digest_of(key.encode()), collections, rate, role)]
    document = {
        "keys": [
            {
                "name": entry.name,
                "sha256": entry.digest,
                "collections": list(entry.collections),
                "rate": entry.rate,
                "role": entry.role,
            }
            for entry in entries
        ]
    }
    write_text(file, json.dumps(document, indent=2) + "\n", private=True)
    return key
