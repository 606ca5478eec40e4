"""Durable counts, reports and tokens: nothing acknowledged is lost or counted twice (SECURITY)."""

from rappor.store.cells import CellKey, dimensions_pairs, dimensions_text
from rappor.store.open import open_store, restore_store
from rappor.store.types import (
    AuditEntry,
    CellSummary,
    Definition,
    Fold,
    Retained,
    SeenCells,
    Store,
    StoredCounts,
)

__all__ = [
    "AuditEntry",
    "CellKey",
    "CellSummary",
    "Definition",
    "Fold",
    "Retained",
    "SeenCells",
    "Store",
    "StoredCounts",
    "dimensions_pairs",
    "dimensions_text",
    "open_store",
    "restore_store",
]
