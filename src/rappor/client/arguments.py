"""The arguments of `Client.open`, checked: `open` raises no other errors."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from rappor.checks import is_real, show
from rappor.client.identity import MIN_SECRET_BYTES
from rappor.collection import Collection, Registry
from rappor.errors import ParamsError
from rappor.host import LOOPBACK_HOSTS
from rappor.wire import REPORTS_PATH


def gather(collections: Iterable[Collection | str | os.PathLike[str]]) -> dict[str, Collection]:
    """Collections by name, from definitions, files and folders; the newest version of each."""
    if isinstance(collections, (str, bytes, os.PathLike, Collection)):
        raise ParamsError(
            "collections must be a list of Collections, files or folders, got "
            f"a {type(collections).__name__}"
        )
    if not isinstance(collections, Iterable):
        raise ParamsError(f"collections must be a list, got a {type(collections).__name__}")
    try:
        given = list(collections)
    except Exception as error:
        raise ParamsError(f"collections must be a list: {type(error).__name__}") from None
    found: dict[str, Collection] = {}
    for item in given:
        for collection in _definitions(item):
            if collection.name in found:
                raise ParamsError(f"collections must have distinct names: {collection.name} twice")
            found[collection.name] = collection
    if not found:
        raise ParamsError("collections must hold at least one collection")
    return found


def _definitions(item: Any) -> Iterable[Collection]:
    if isinstance(item, Collection):
        return (item,)
    if not isinstance(item, (str, os.PathLike)):
        raise ParamsError(
            f"collections must hold Collections, files or folders, got a {type(item).__name__}"
        )
    path = check_path("collections", item)
    try:
        folder = path.is_dir()
    except OSError as error:
        raise ParamsError(f"collections must be files that can be read: {error}") from None
    if folder:
        return Registry.open(path).newest()
    if path.suffix.lower() == ".json":
        return (Collection.read_client_json(path),)
    return (Collection.read(path),)


def check_directory(directory: str | os.PathLike[str]) -> Path:
    """An absolute path, with ~ expanded."""
    try:
        return check_path(
            "directory", directory
        ).absolute()  # the application may change its working directory
    except OSError as error:
        raise ParamsError(f"directory must be a path: {error}") from None


def check_path(name: str, value: Any) -> Path:
    """A path that is valid for an operating system, with ~ expanded."""
    try:
        text = os.fspath(value)
        if not isinstance(text, str):
            raise ParamsError(f"{name} must be a path as text, got {type(text).__name__}")
        if not text:
            raise ParamsError(f"{name} must be a path, got an empty one")
        if "\0" in text:
            raise ParamsError(f"{name} must be a path without a zero character")
        path = Path(text).expanduser()
        os.fsencode(path)
        return path
    except ParamsError:
        raise
    except UnicodeError:
        raise ParamsError(f"{name} must be a path that can be encoded") from None
    except Exception as error:  # a path type of the application may raise anything
        raise ParamsError(f"{name} must be a path: {error}") from None


def check_file(name: str, value: Any) -> str | None:
    """The path of an existing file, or None."""
    if value is None:
        return None
    path = check_path(name, value)
    try:
        regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise ParamsError(f"{name} must be a file that can be read: {error}") from None
    if not regular:
        raise ParamsError(f"{name} must be a file, got {show(str(path))}")
    return str(path)


def check_dimensions(
    dimensions: Mapping[str, str] | None, collections: Mapping[str, Collection]
) -> dict[str, str]:
    """Dimensions that some collection declares, with texts as values."""
    given = {} if dimensions is None else dimensions
    if not isinstance(given, Mapping):
        raise ParamsError(
            'dimensions must be a mapping such as {"country": "NZ"}, '
            f"got a {type(dimensions).__name__}"
        )
    try:
        given = dict(given)
    except Exception as error:
        raise ParamsError(f"dimensions must be a mapping: {type(error).__name__}") from None
    declared = sorted(
        {name for collection in collections.values() for name in collection.dimensions}
    )
    for name, value in given.items():
        if name not in declared:
            raise ParamsError(
                f"dimensions must be declared by a collection ({', '.join(declared) or 'none is'})"
                f", got {show(name)}"
            )
        if not isinstance(value, str):
            raise ParamsError(f"dimensions must be texts, got a {type(value).__name__} for {name}")
    return given


def check_secret(secret: bytes | None) -> bytes | None:
    """A secret of enough bytes, or None; the error message never shows it."""
    if secret is None:
        return None
    if not isinstance(secret, bytes) or len(secret) < MIN_SECRET_BYTES:
        raise ParamsError(
            f"account_secret must be at least {MIN_SECRET_BYTES} random bytes; "
            "rappor.new_secret() makes 32. A password is not random"
        )
    return secret


def truth(name: str, value: Any) -> bool:
    """True or False; nothing else, not even 1 or 0."""
    if not isinstance(value, bool):
        raise ParamsError(f"{name} must be True or False, got {show(value)}")
    return value


def number(name: str, value: Any, low: float = 0.0, high: float = float("inf")) -> float:
    """A number from low to high."""
    try:
        given = float(value) if is_real(value) else None
    except (TypeError, ValueError, OverflowError):
        given = None
    if given is None or not low <= given <= high:
        raise ParamsError(f"{name} must be a number from {low:g} to {high:g}, got {show(value)}")
    return given


def check_methods(name: str, value: Any, *methods: str) -> None:
    """Refuse an object without these methods."""
    missing = [method for method in methods if not callable(getattr(value, method, None))]
    if missing:
        raise ParamsError(
            f"{name} must have the methods {', '.join(missing)}; a {type(value).__name__} has not"
        )


def check_address(url: object) -> tuple[bool, str, int | None, str]:
    """An upload address as (is it https, host, port, path), or ParamsError."""
    wanted = "upload_to must be an address such as https://reports.example.org"
    if not isinstance(url, str):
        raise ParamsError(f"{wanted}, got a {type(url).__name__}")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ParamsError(f"{wanted}, got {show(url)}") from None
    host = parts.hostname
    plain = all(33 <= ord(sign) < 127 for sign in url)
    if not plain or not host or parts.scheme not in ("http", "https"):
        raise ParamsError(f"{wanted}, got {show(url)}")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ParamsError("upload_to must hold no user, password, query or fragment")
    if parts.scheme == "http" and host not in LOOPBACK_HOSTS:
        raise ParamsError(
            "upload_to must be https, so that reports are encrypted in transit; "
            f"plain http is for {', '.join(LOOPBACK_HOSTS)} only, got host {show(host)}"
        )
    return (
        parts.scheme == "https",
        host,
        port,
        parts.path if parts.path.strip("/") else REPORTS_PATH,
    )


def check_key(key: object) -> str:
    """A key that fits into a header, or ParamsError."""
    if not isinstance(key, str) or not key or not all(33 <= ord(sign) < 127 for sign in key):
        raise ParamsError("ingest_key must be a text of visible ASCII characters")
    return key
