"""The saved definitions of collections: one TOML text for each version."""

from __future__ import annotations

from rappor.collection import Collection
from rappor.errors import StoreError
from rappor.store.cell_key import CellKey
from rappor.store.checksums import checksum, typed
from rappor.store.contract import Definition
from rappor.store.definition_rules import ExpectedParams, check_change, expected_params, parse
from rappor.store.postgres.connection import Connection


def read(connection: Connection) -> list[Definition]:
    """All definitions, or StoreError if one was changed."""
    saved = []
    query = "SELECT collection, version, toml, checksum FROM rappor.definitions"
    for row in connection.execute(query, binary=True):
        *fields, seal = typed(row, "sisb", "definitions")
        if checksum("definitions", *fields) != seal:
            raise StoreError(f"the definition of {fields[0][:80]!r}: damaged (checksum)")
        saved.append(Definition(*fields))
    return sorted(saved)


def one(connection: Connection, collection: str, version: int) -> Collection:
    """A definition by name and version, or StoreError."""
    row = connection.execute(
        "SELECT toml, checksum FROM rappor.definitions WHERE collection = %s AND version = %s",
        (collection, version),
        binary=True,
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
    if old is not None:
        check_change(parse(old), new)
    seal = checksum("definitions", new.name, new.version, toml)
    connection.execute(
        "INSERT INTO rappor.definitions (collection, version, toml, checksum) "
        "VALUES (%s, %s, %s, %s) ON CONFLICT (collection, version) "
        "DO UPDATE SET toml = excluded.toml, checksum = excluded.checksum",
        (new.name, new.version, toml, seal),
    )
    return new


def expected(connection: Connection, key: CellKey) -> ExpectedParams:
    """The parameters of a cell by its definition, or StoreError if it does not allow the cell."""
    return expected_params(one(connection, key.collection, key.version), key)
