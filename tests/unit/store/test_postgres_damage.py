"""A store in PostgreSQL whose bytes have changed says so, or still tells the truth."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from rappor.errors import StoreError
from rappor.store import Store, open_store
from rappor.store.cell_key import COHORT_BITS, cell_id
from support.postgres import Server
from support.store_samples import DAY, PARAMS, always, everything, fill, fold, token

pytestmark = pytest.mark.slow

# What may change in a row, by table.
BYTES = {
    "counts": ("data", "checksum"),
    "cells": ("parity", "checksum"),
    "reports": ("data", "checksum"),
    "writers": ("parity",),
    "definitions": ("checksum",),
    "imports": ("digest", "checksum"),
    "audit": ("checksum",),
    "audit_end": ("checksum",),
    "tokens": ("token",),
}
NUMBERS = {
    "counts": ("id", "writer"),
    "cells": ("reports", "cohorts", "k", "m", "writer"),
    "reports": ("slot", "number"),
    "writers": ("cells",),
    "definitions": ("version",),
    "audit_end": ("size",),
}
TEXTS = {
    "cells": ("collection", "period", "dimensions", "params_digest"),
    "definitions": ("toml", "collection"),
    "imports": ("detail",),
    "audit": ("at", "actor", "action", "detail"),
}
FLIP = "set_byte({0}, length({0}) / 2, get_byte({0}, length({0}) / 2) # 1)"
CHANGES = {
    "bytes": (BYTES, FLIP),
    "numbers": (NUMBERS, "{0} + 100"),
    "texts": (TEXTS, "overlay({0} PLACING '~' FROM 2)"),
}
# A token is random: another one is as good. `check` tells only one of a wrong length.
HARMLESS = {("tokens", "token")}


@pytest.fixture(scope="module")
def filled(postgres: Server) -> str:
    """The name of a database with a filled store, which nobody is connected to."""
    url = postgres.new_store()
    with closing(open_store(url)) as store:
        fill(store)
    return url.rpartition("/")[2]


@pytest.fixture
def copy(postgres: Server, filled: str) -> Iterator[str]:
    name = postgres.new_database(filled)
    yield name
    postgres.sql(f"DROP DATABASE {name} WITH (FORCE)")


def damage(server: Server, database: str, table: str, change: str) -> None:
    """Change the row of a table that has the most in it, as a disk or a person might."""
    server.sql(
        f"UPDATE rappor.{table} SET {change} WHERE ctid = "
        f"(SELECT ctid FROM rappor.{table} ORDER BY length({table}::text) DESC, ctid LIMIT 1)",
        database,
    )


def told(store: Store) -> object:
    try:
        return everything(store)
    except StoreError:
        return None


@pytest.mark.parametrize("kind", list(CHANGES))
def test_every_change_of_a_row_is_noticed(postgres: Server, copy: str, kind: str) -> None:
    """`check` names it, and readers are given the truth or an error."""
    columns, change = CHANGES[kind]
    pairs = [(table, name) for table, names in columns.items() for name in names]
    with closing(open_store(postgres.url(copy), read_only=True)) as store:
        truth = everything(store)
        assert store.check() == []
        silent = []
        for table, name in pairs:
            undo = f"ROLLBACK_{table}_{name}"
            postgres.sql(f"CREATE TABLE public.{undo} AS SELECT * FROM rappor.{table}", copy)
            damage(postgres, copy, table, f"{name} = {change.format(name)}")
            noticed = store.check() != []
            if (table, name) not in HARMLESS and not noticed:
                silent.append((table, name))
            if told(store) not in (None, truth) and not noticed:
                silent.append((table, f"{name}: another answer"))
            postgres.sql(f"DELETE FROM rappor.{table}", copy)
            postgres.sql(f"INSERT INTO rappor.{table} SELECT * FROM public.{undo}", copy)
        assert silent == []
        assert store.check() == []
        assert everything(store) == truth


@pytest.mark.parametrize(
    "table", ["counts", "cells", "definitions", "audit", "writers", "token_parts"]
)
def test_a_row_that_vanishes_is_missed(postgres: Server, copy: str, table: str) -> None:
    postgres.sql(
        f"DELETE FROM rappor.{table} WHERE ctid = (SELECT max(ctid) FROM rappor.{table})", copy
    )
    with closing(open_store(postgres.url(copy), read_only=True)) as store:
        assert store.check() != []


def test_damaged_kept_reports_are_not_mixed_with_new_ones(postgres: Server, copy: str) -> None:
    postgres.sql(f"UPDATE rappor.reports SET data = {FLIP.format('data')}", copy)
    before = postgres.sql("SELECT slot, data FROM rappor.reports ORDER BY slot", copy)
    with closing(open_store(postgres.url(copy))) as store:
        slots = {slot for slot, _ in before}
        for key in [each.cell for each in store.cells() if each.kept]:
            for cohort in range(PARAMS.m):
                if cell_id(key) << COHORT_BITS | cohort not in slots:
                    continue
                with pytest.raises(StoreError, match="damaged"):
                    store.add([token(cohort)], always([fold(key, cohort, [1], keep=True)]), DAY)
    assert postgres.sql("SELECT slot, data FROM rappor.reports ORDER BY slot", copy) == before
