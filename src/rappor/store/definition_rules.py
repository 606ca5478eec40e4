"""What the saved definition of a collection allows: changes, and the parameters of its cells."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from rappor.collection import Collection, check_period
from rappor.errors import ParamsError, StoreError
from rappor.store.cell_key import CellKey


class ExpectedParams(NamedTuple):
    """The parameters of a cell's reports by its definition."""

    params_digest: str
    k: int
    m: int


def parse(toml: str) -> Collection:
    """The collection in a TOML text, or StoreError."""
    try:
        return _parsed(toml)
    except ParamsError as error:
        raise StoreError(f"not a collection's definition: {error}") from None


@lru_cache(maxsize=256)
def _parsed(toml: str) -> Collection:
    return Collection.from_toml(toml)


def check_change(old: Collection, new: Collection) -> None:
    """StoreError unless the change is allowed within a version: others need a new version."""
    from rappor.collection import diff

    change = diff(old, new)
    if not change.allowed:
        raise StoreError(
            f"{new.name} v{new.version} is in use with another definition, and the change needs a "
            f"new version: {change.cost}"
        )


def expected_params(definition: Collection, key: CellKey) -> ExpectedParams:
    """The parameters of a cell by its definition, or StoreError if it does not allow the cell."""
    try:
        check_period(definition.period, key.period)
    except ParamsError as error:
        raise StoreError(f"{key}: {error}") from None
    if definition.cell(dict(key.pairs)) != key.pairs:
        raise StoreError(f"{key}: dimensions that its definition does not declare")
    params = definition.params_for(key.period)
    return ExpectedParams(params.digest, params.k, params.m)
