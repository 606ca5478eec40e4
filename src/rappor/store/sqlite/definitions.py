"""Collections' definitions, as TOML by version: what every number in the store is about."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rappor.collection import Collection, check_period
from rappor.errors import ParamsError, StoreError
from rappor.store.cells import CellKey
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.seals import check_seal, checksum, reseal, typed
from rappor.store.types import Definition


class Expected(NamedTuple):
    """What a definition says about the reports of a cell."""

    params_digest: str
    k: int
    m: int


def read(connection: Connection) -> list[Definition]:
    """All definitions, or StoreError where one was changed or is gone."""
    found, sealed = [], []
    query = "SELECT collection, version, toml, checksum FROM definitions"
    for row in connection.execute(query):
        *fields, seal = typed(row, "sisb", "definitions")
        if checksum("definitions", *fields) != seal:
            raise StoreError(f"the definition of {fields[0][:80]!r}: damaged (checksum)")
        found.append(Definition(*fields))
        sealed.append(seal)
    check_seal(connection, "definitions", sealed)
    return sorted(found)


def parse(toml: str) -> Collection:
    """The collection that a text defines, or StoreError."""
    try:
        return _parsed(toml)
    except ParamsError as error:
        raise StoreError(f"not a collection's definition: {error}") from None


@lru_cache(maxsize=256)
def _parsed(toml: str) -> Collection:
    return Collection.from_toml(toml)


def one(connection: Connection, collection: str, version: int) -> Collection:
    """A definition by name and version, or StoreError."""
    row = connection.execute(
        "SELECT toml, checksum FROM definitions WHERE collection=? AND version=?",
        (collection, version),
    ).fetchone()
    if row is None:
        raise StoreError(f"no definition of {collection} v{version} is in the store")
    toml, seal = typed(row, "sb", f"the definition of {collection} v{version}")
    if checksum("definitions", collection, version, toml) != seal:
        raise StoreError(f"the definition of {collection} v{version}: damaged (checksum)")
    return parse(toml)


def save(connection: Connection, toml: str) -> Collection | None:
    """Keep a definition; None where the same text is there already.

    Raises:
        StoreError: no definition, or one that changes what a saved version means.
    """
    new = parse(toml)
    known = {(each.collection, each.version): each.toml for each in read(connection)}
    old = known.get((new.name, new.version))
    if old == toml:
        return None
    seal = checksum("definitions", new.name, new.version, toml)
    if old is not None:
        _check_change(parse(old), new)
        gone = checksum("definitions", new.name, new.version, old)
        connection.execute(
            "UPDATE definitions SET toml=?, checksum=? WHERE collection=? AND version=?",
            (toml, seal, new.name, new.version),
        )
        reseal(connection, "definitions", 0, gone, seal)
    else:
        connection.execute(
            "INSERT INTO definitions VALUES (?, ?, ?, ?)", (new.name, new.version, toml, seal)
        )
        reseal(connection, "definitions", 1, seal)
    return new


def _check_change(old: Collection, new: Collection) -> None:
    """Editing a live collection is refused: a new version is made, and charged (SECURITY)."""
    from rappor.collection import diff

    found = diff(old, new)
    if not found.allowed:
        raise StoreError(
            f"{new.name} v{new.version} is in use with another definition, and the change needs a "
            f"new version: {found.cost}"
        )


def expected(connection: Connection, key: CellKey) -> Expected:
    """What the definition says about a cell, or StoreError where there can be no such cell."""
    definition = one(connection, key.collection, key.version)
    try:
        check_period(definition.period, key.period)
    except ParamsError as error:
        raise StoreError(f"{key}: {error}") from None
    if definition.cell(dict(key.pairs)) != key.pairs:
        raise StoreError(f"{key}: dimensions that its definition does not declare")
    params = definition.params_for(key.period)
    return Expected(params.digest, params.k, params.m)
