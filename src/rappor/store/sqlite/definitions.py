"""The saved definitions of collections: one TOML text for each version."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rappor.collection import Collection, check_period
from rappor.errors import ParamsError, StoreError
from rappor.store.cell_key import CellKey
from rappor.store.contract import Definition
from rappor.store.sqlite.connection import Connection
from rappor.store.sqlite.seals import check_seal, checksum, reseal, typed


class ExpectedParams(NamedTuple):
    """The parameters of a cell's reports by its definition."""

    params_digest: str
    k: int
    m: int


def read(connection: Connection) -> list[Definition]:
    """All definitions, or StoreError if one was changed or is missing."""
    saved, sealed = [], []
    query = "SELECT collection, version, toml, checksum FROM definitions"
    for row in connection.execute(query):
        *fields, seal = typed(row, "sisb", "definitions")
        if checksum("definitions", *fields) != seal:
            raise StoreError(f"the definition of {fields[0][:80]!r}: damaged (checksum)")
        saved.append(Definition(*fields))
        sealed.append(seal)
    check_seal(connection, "definitions", sealed)
    return sorted(saved)


def parse(toml: str) -> Collection:
    """The collection in a TOML text, or StoreError."""
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
    """Save a definition; None if the same text is saved already.

    Raises:
        StoreError: not a definition, or one that changes the meaning of a saved version.
    """
    new = parse(toml)
    known = {(saved.collection, saved.version): saved.toml for saved in read(connection)}
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
    """StoreError unless the change is allowed within a version: others need a new version."""
    from rappor.collection import diff

    change = diff(old, new)
    if not change.allowed:
        raise StoreError(
            f"{new.name} v{new.version} is in use with another definition, and the change needs a "
            f"new version: {change.cost}"
        )


def expected(connection: Connection, key: CellKey) -> ExpectedParams:
    """The parameters of a cell by its definition, or StoreError if it does not allow the cell."""
    definition = one(connection, key.collection, key.version)
    try:
        check_period(definition.period, key.period)
    except ParamsError as error:
        raise StoreError(f"{key}: {error}") from None
    if definition.cell(dict(key.pairs)) != key.pairs:
        raise StoreError(f"{key}: dimensions that its definition does not declare")
    params = definition.params_for(key.period)
    return ExpectedParams(params.digest, params.k, params.m)
