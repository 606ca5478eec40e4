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
import os
import re
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

from rappor import checks
from rappor.errors import ParamsError
from rappor.files import replacing

Role = Literal["ingest", "gateway"]

# People can tell a secret key by its prefix.
PREFIXES: dict[Role, str] = {
    "ingest": "rpk_",
    "gateway": "rpg_",
}
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_FIELDS = dict.fromkeys(("name", "sha256", "collections", "rate", "role", "created", "revoked"))


@dataclass(frozen=True, slots=True)
class Key:
    """One application's or gateway's key.

    Attributes:
        name: the application or gateway that has it.
        digest: SHA-256 of the key, in hexadecimal.
        collections: the collections that it may send to; empty for all.
        rate: the largest number of reports a second with this key; 0 for no limit.
        role: `ingest`, or `gateway` for batches of more than `rappor.wire.MAX_REPORTS` reports.
        created: the day on which it was made, in UTC; empty if the file does not say.
        revoked: the day on which it was revoked; empty while it is valid.
    """

    name: str
    digest: str
    collections: tuple[str, ...] = ()
    rate: float = 0.0
    role: Role = "ingest"
    created: str = ""
    revoked: str = ""

    def opens(self, collection: str) -> bool:
        """Whether it may send to a collection."""
        return not self.collections or collection in self.collections


def digest_of(key: bytes) -> str:
    """The digest of a key, as in the file."""
    return hashlib.sha256(key).hexdigest()


def read_keys(path: str | Path) -> dict[str, Key]:
    """The valid keys of a file, by digest, or ParamsError."""
    return {key.digest: key for key in list_keys(path) if not key.revoked}


def list_keys(path: str | Path) -> list[Key]:
    """All keys of a file, also revoked ones, or ParamsError.

    The file is JSON: {"keys": [{"name": …, "sha256": …, "collections": […], "rate": …,
    "role": …, "created": …, "revoked": …}, …]}. Only the first two are required.
    """
    file = Path(path).expanduser()
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(
            f"{file}: no such file of keys; check the path (rappor keys new NAME makes it)"
        ) from None
    except ValueError:
        raise ParamsError(
            f"{file}: not a JSON document; name a file that `rappor keys new` wrote"
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("keys"), list):
        raise ParamsError(f'{file}: must be an object with a list "keys"')
    try:
        keys = [_key(entry) for entry in document["keys"]]
    except ParamsError as error:
        raise ParamsError(f"{file}: {error}") from None
    names = [key.name for key in keys]
    if len(set(names)) < len(names):
        raise ParamsError(f"{file}: two keys have one name")
    return keys


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
    created, revoked = (_day(field, entry.get(field, "")) for field in ("created", "revoked"))
    return Key(_name(name), digest, tuple(collections), float(rate), role, created, revoked)


def _day(field: str, text: Any) -> str:
    """A day as text; empty if there is none."""
    try:
        return text if text == "" else date.fromisoformat(text).isoformat()
    except (TypeError, ValueError):
        raise ParamsError(f"{field} of a key must be a day such as 2026-11-16") from None


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
    save: Callable[[str], None] | None = None,
) -> str:
    """Make a key, add its digest to the file (created with mode 0600 if missing), and return it.

    Args:
        path: the file.
        name: of the application or gateway.
        collections: the collections that it may send to; empty for all.
        rate: the largest number of reports a second with this key; 0 for no limit.
        role: `ingest` or `gateway`.
        save: stores the key. It is called before the digest is written, so that the file has no
            digest of a key that was lost because it could not be stored.

    Raises:
        ParamsError: the file is damaged, or has a key of this name.
    """
    file = Path(path).expanduser()
    _name(name)
    known = list_keys(file) if file.exists() else []
    for key in known:
        if key.name == name:
            was = (
                f"was a key {name}, revoked on {key.revoked}" if key.revoked else f"is a key {name}"
            )
            raise ParamsError(f"{file}: there {was}; choose another name, such as {name}-2")
    secret = PREFIXES[role] + base64.urlsafe_b64encode(secrets.token_bytes(18)).decode("ascii")
    made = Key(name, digest_of(secret.encode()), collections, rate, role, _today())
    if save is not None:
        save(secret)
    _write(file, [*known, made])
    return secret


def revoke_key(path: str | Path, name: str) -> Key:
    """Mark a key as revoked, so that no collector accepts it after its next reload.

    The entry stays: its name is not used again, and the day of the revocation can be read.

    Raises:
        ParamsError: there is no such key, or it is revoked already.
    """
    file = Path(path).expanduser()
    known = list_keys(file)
    found = [key for key in known if key.name == name]
    if not found:
        listed = ", ".join(key.name for key in known) or "none"
        raise ParamsError(f"{file}: there is no key {checks.show(name)}; it has: {listed}")
    if found[0].revoked:
        raise ParamsError(f"{file}: {name} was revoked on {found[0].revoked}")
    revoked = replace(found[0], revoked=_today())
    _write(file, [revoked if key.name == name else key for key in known])
    return revoked


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


def _write(file: Path, keys: list[Key]) -> None:
    """Replace the file. Its owner stays, so that root can edit the file of a service."""
    owner = file.stat() if file.exists() else None
    entries = []
    for key in keys:
        entry: dict[str, Any] = {
            "name": key.name,
            "sha256": key.digest,
            "collections": list(key.collections),
            "rate": key.rate,
            "role": key.role,
        }
        days = {"created": key.created, "revoked": key.revoked}
        entries.append(entry | {field: day for field, day in days.items() if day})
    with replacing(file, private=True) as draft:
        draft.write_text(json.dumps({"keys": entries}, indent=2) + "\n", encoding="utf-8")
        if owner is not None:
            with suppress(OSError):
                os.chown(draft, owner.st_uid, owner.st_gid)
