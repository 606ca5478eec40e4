"""The contents of a whole store, to copy it to a store of another kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rappor.store.cell_key import CellKey
from rappor.store.contract import AuditEntry, Definition, Fold


@dataclass(frozen=True, slots=True)
class StoreContents:
    """Everything in a store at one moment. The iterables can be read once.

    Attributes:
        definitions: the saved definitions.
        audit: the audit log, oldest entry first.
        imports: the digest of each imported file, and what the audit log says about it.
        folds: the counts of each cell and cohort, without reports.
        reports: the kept reports of each cell and cohort, packed, in a random order.
        tokens: tokens by the day (an ordinal) from which they are kept, some at a time.
    """

    definitions: Iterable[Definition]
    audit: Iterable[AuditEntry]
    imports: Iterable[tuple[bytes, str]]
    folds: Iterable[Fold]
    reports: Iterable[tuple[CellKey, int, bytes]]
    tokens: Iterable[tuple[int, list[bytes]]]
