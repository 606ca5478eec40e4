"""One-time RAPPOR: a client that reports once per collection, and never again (§2.1).

The paper can be read in two ways. Both allow a single report per collection, not per value:
- p = 0, q = 1: as in the text, without the instantaneous step; S = B' and ε = ε∞(f);
- f = 0: as in the experiments, without the permanent step; ε = ε1. S is drawn at random, so it is
  stored before it is sent: n draws would cost n ε1.
"""

from __future__ import annotations

from typing import Protocol

from rappor.errors import LedgerError, ParamsError
from rappor.mechanism.encoder import Encoder
from rappor.mechanism.report import Report


class Slot(Protocol):
    """A durable place for the one report of a collection, shared by all threads and processes."""

    def load(self) -> Report | None:
        """The stored report, or None if there was never one."""

    def keep(self, report: Report) -> None:
        """Store the report durably unless one is stored already, or raise.

        If several calls race, one wins: create the file exclusively, or insert with a unique key.
        """


class OneTime:
    """Makes at most one report, for any number of values.

    The first call reports its value. Every call returns what the slot has stored, so that threads
    and processes that race for the first call get the same report. Later calls return that report
    again, to repeat a failed upload; sending it twice reveals nothing new.
    """

    __slots__ = ("_encoder", "_slot")

    def __init__(self, encoder: Encoder, slot: Slot) -> None:
        """Bind an encoder with one-time parameters to the slot of its collection."""
        if not isinstance(encoder, Encoder):
            raise ParamsError(f"encoder must be rappor.Encoder, got {type(encoder).__name__}")
        params = encoder.params
        if params.f != 0 and (params.p, params.q) != (0, 1):
            raise ParamsError(
                "one-time reports need f = 0, or p = 0 with q = 1, so that a single randomization "
                f"is left; got f = {params.f!r}, p = {params.p!r}, q = {params.q!r}"
            )
        self._encoder = encoder
        self._slot = slot

    def report(self, value: object) -> Report:
        """The collection's one report; it is stored before it is returned."""
        held = self._slot.load()
        if held is None:
            self._slot.keep(self._encoder.encode(value))
            held = self._slot.load()
            if held is None:
                raise LedgerError("the slot lost a report that it had stored")
        if not self._is_ours(held):
            raise LedgerError("the stored report belongs to another collection or client")
        return held

    def _is_ours(self, held: object) -> bool:
        """Whether the stored object can be this client's: a Report of its cohort and width."""
        if not isinstance(held, Report):
            return False
        return held.cohort == self._encoder.cohort and not held.bits >> self._encoder.params.k
