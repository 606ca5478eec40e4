"""Durable counts, reports and tokens: nothing acknowledged is lost or counted twice."""

from rappor.store.cell_key import CellKey, dimensions_pairs, dimensions_text
from rappor.store.contract import (
    AuditEntry,
    CellCache,
    CellSummary,
    Definition,
    Fold,
    RetentionResult,
    Store,
    StoredCounts,
)
from rappor.store.open import open_store, restore_store

__all__ = [
    "AuditEntry",
    "CellCache",
    "CellKey",
    "CellSummary",
    "Definition",
    "Fold",
    "RetentionResult",
    "Store",
    "StoredCounts",
    "dimensions_pairs",
    "dimensions_text",
    "open_store",
    "restore_store",
]
