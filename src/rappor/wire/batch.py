"""Batch: the reports of one upload. They share a collection, version, period and cell.

A Batch checks its own structure. Whether the collection exists and the reports fit it is checked by
the collector. Error messages never repeat what was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from rappor.errors import WireError
from rappor.mechanism.report import Report
from rappor.params import MAX_K, MAX_M
from rappor.wire.dimensions import COLLECTION_NAME, Cell, check_cell
from rappor.wire.packing import clear_padding, pack
from rappor.wire.protocol import MAX_BODY, MAX_VERSION, TOKEN_BYTES

PERIOD = re.compile(r"[0-9]{4}-(?:[0-9]{2}-[0-9]{2}|W[0-9]{2})")
_HIGH_BYTES = bytes(range(MAX_M >> 8))  # of a cohort, which is below MAX_M


@dataclass(frozen=True, slots=True)
class Batch:
    """Some reports and what is sent with them.

    Attributes:
        token: 16 random bytes, drawn for this batch only, by which a second copy is recognised.
        collection: the collection's name.
        version: the collection's version, 1 to 65535.
        period: the day or week that the reports belong to.
        dimensions: the cell: (name, value) pairs, sorted by name.
        k: the number of bits in a report.
        cohorts: each report's cohort in two bytes, little-endian.
        reports: each report packed into ceil(k/8) bytes (`wire.pack`), in the same order.
    """

    token: bytes = field(repr=False)
    collection: str
    version: int
    period: str
    dimensions: Cell
    k: int
    cohorts: bytes = field(repr=False)
    reports: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Check the structure, or raise WireError."""
        if not isinstance(self.token, bytes) or len(self.token) != TOKEN_BYTES:
            raise WireError(f"token must be {TOKEN_BYTES} bytes")
        if not isinstance(self.collection, str) or not COLLECTION_NAME.fullmatch(self.collection):
            raise WireError(
                "collection must be a name of 1 to 63 of a-z, 0-9, _ and -, a letter first"
            )
        _check_whole("version", self.version, 1, MAX_VERSION)
        if not isinstance(self.period, str) or not PERIOD.fullmatch(self.period):
            raise WireError("period must be a day such as 2026-11-16 or a week such as 2026-W47")
        object.__setattr__(self, "dimensions", check_cell(self.dimensions))
        _check_whole("k", self.k, 1, MAX_K)
        if not isinstance(self.cohorts, bytes) or not isinstance(self.reports, bytes):
            raise WireError("cohorts and reports must be bytes")
        self._check_reports()

    def _check_reports(self) -> None:
        size, count = (self.k + 7) // 8, self.count
        if not count or len(self.cohorts) != 2 * count:
            raise WireError("cohorts must be two bytes for each report, and at least one report")
        if len(self.reports) != size * count:
            raise WireError(
                f"reports must be {size} bytes each for k = {self.k}, {size * count} in all, "
                f"got {len(self.reports)}"
            )
        if self.cohorts[1::2].translate(None, _HIGH_BYTES):
            raise WireError(f"a cohort must be below {MAX_M}")
        if not clear_padding(self.reports, self.k):
            raise WireError(
                f"reports of {self.k} bits must leave their {-self.k % 8} padding bits 0"
            )

    @property
    def count(self) -> int:
        """The number of reports."""
        return len(self.cohorts) // 2

    @classmethod
    def of(
        cls,
        reports: Iterable[Report],
        *,
        token: bytes,
        collection: str,
        version: int,
        period: str,
        dimensions: Iterable[tuple[str, str]] = (),
        k: int,
    ) -> Batch:
        """Make a batch of the reports that an encoder returns.

        >>> made = Batch.of(
        ...     [Report(3, 5)],
        ...     token=bytes(16),
        ...     collection="homepage",
        ...     version=1,
        ...     period="2026-11-16",
        ...     k=8,
        ... )
        >>> made.count, made.cohorts.hex(), made.reports.hex()
        (1, '0300', '05')
        """
        cohorts, packed = bytearray(), bytearray()
        for cohort, bits in reports:
            _check_whole("cohort", cohort, 0, MAX_M - 1)
            cohorts += cohort.to_bytes(2, "little")
            packed += pack(bits, k)
        return cls(
            token, collection, version, period, tuple(dimensions), k, bytes(cohorts), bytes(packed)
        )


def reports_that_fit(k: int) -> int:
    """The number of reports of k bits that always fit one message, in either format.

    >>> reports_that_fit(128)
    10837
    """
    _check_whole("k", k, 1, MAX_K)
    return (MAX_BODY - 2048) * 3 // 4 // (2 + (k + 7) // 8)


def _check_whole(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise WireError(f"{name} must be a whole number from {low} to {high}")
