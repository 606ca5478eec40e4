"""The arguments of `Client.open`, checked: these are the only errors that a client raises."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rappor.checks import is_real, show
from rappor.client.identity import LEAST_BYTES
from rappor.collection import Collection, Registry
from rappor.errors import ParamsError


def gather(collections: Iterable[Collection | str | os.PathLike[str]]) -> dict[str, Collection]:
    """Collections by name, from definitions, files and folders; the newest version of each."""
    if isinstance(collections, (str, bytes, os.PathLike, Collection)):
        raise ParamsError(
            "collections must be a list of Collections, files or folders, got "
            f"a {type(collections).__name__}"
        )
    if not isinstance(collections, Iterable):
        raise ParamsError(f"collections must be a list, got a {type(collections).__name__}")
    found: dict[str, Collection] = {}
    for each in collections:
        for collection in _definitions(each):
            if collection.name in found:
                raise ParamsError(f"collections must have distinct names: {collection.name} twice")
            found[collection.name] = collection
    if not found:
        raise ParamsError("collections must hold at least one collection")
    return found


def _definitions(each: Any) -> Iterable[Collection]:
    if isinstance(each, Collection):
        return (each,)
    if not isinstance(each, (str, os.PathLike)):
        raise ParamsError(
            f"collections must hold Collections, files or folders, got a {type(each).__name__}"
        )
    try:
        path = Path(each).expanduser()
        folder = path.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise ParamsError(f"collections must be files that can be read: {error}") from None
    return Registry.open(path).newest() if folder else (Collection.read(path),)


def check_directory(directory: str | os.PathLike[str]) -> Path:
    """A path that could be one, with ~ expanded."""
    try:
        path = Path(directory).expanduser().absolute()  # a host may change its own directory
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        raise ParamsError(f"directory must be a path: {error}") from None
    if "\0" in str(path):
        raise ParamsError("directory must be a path without a zero character")
    return path


def check_dimensions(
    dimensions: Mapping[str, str] | None, collections: Mapping[str, Collection]
) -> dict[str, str]:
    """Names that some collection declares, with texts; values that are not declared are "other"."""
    given = {} if dimensions is None else dimensions
    if not isinstance(given, Mapping):
        raise ParamsError(
            'dimensions must be a mapping such as {"country": "NZ"}, '
            f"got a {type(dimensions).__name__}"
        )
    declared = sorted({name for each in collections.values() for name in each.dimensions})
    for name, value in given.items():
        if name not in declared:
            raise ParamsError(
                f"dimensions must be declared by a collection ({', '.join(declared) or 'none is'})"
                f", got {show(name)}"
            )
        if not isinstance(value, str):
            raise ParamsError(f"dimensions must be texts, got a {type(value).__name__} for {name}")
    return dict(given)


def check_secret(secret: bytes | None) -> bytes | None:
    """A secret of enough bytes, or None; the message never shows it."""
    if secret is None:
        return None
    if not isinstance(secret, bytes) or len(secret) < LEAST_BYTES:
        raise ParamsError(
            f"account_secret must be at least {LEAST_BYTES} random bytes; "
            "rappor.new_secret() makes 32. A password is not random"
        )
    return secret


def truth(name: str, value: Any) -> bool:
    """True or False, and nothing that merely looks like it."""
    if not isinstance(value, bool):
        raise ParamsError(f"{name} must be True or False, got {show(value)}")
    return value


def number(name: str, value: Any, low: float = 0.0, high: float = float("inf")) -> float:
    """A number from low to high."""
    if not is_real(value) or not low <= value <= high:
        raise ParamsError(f"{name} must be a number from {low:g} to {high:g}, got {show(value)}")
    return float(value)
