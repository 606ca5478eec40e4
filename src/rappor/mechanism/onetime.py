"""One-time RAPPOR: a client that reports once per collection, and never again (§2.1, R11).

Two readings are supported, and both enforce a single report per collection, not per value:
- p = 0, q = 1: the text's reading, without the instantaneous step; S = B' and ε = ε∞(f);
- f = 0: the experiments' reading, without the permanent step; ε = ε1. S is drawn afresh, so it is
  kept before it is sent: n draws would cost n ε1.
"""

from __future__ import annotations

from typing import Protocol

from rappor.errors import LedgerError, ParamsError
from rappor.mechanism.encoder import Encoder
from rappor.mechanism.report import Report


class Slot(Protocol):
    """A durable place for one collection's one report, for all threads and processes alike."""

    def load(self) -> Report | None:
        """The report that was kept, or None if there was never one."""

    def keep(self, report: Report) -> None:
        """Make the report durable unless one is kept already, or raise.

        Of several at once, one wins: create the file exclusively, insert under a unique key.
        """


class OneTime:
    """Makes at most one report, whatever the values it is given.

    The value of the first call is the one reported; what the slot kept is what is returned, so that
    threads and processes that race for the first call end with the same report. Later calls give
    that report again, to be sent again if an upload failed; sending it twice tells nothing new.
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
        """The collection's one report. Nothing is returned that was not kept first."""
        held = self._slot.load()
        if held is None:
            self._slot.keep(self._encoder.encode(value))
            held = self._slot.load()
            if held is None:
                raise LedgerError("the slot lost a report that it had said was kept")
        if not self._is_ours(held):
            raise LedgerError("the kept report belongs to another collection or client")
        return held

    def _is_ours(self, held: object) -> bool:
        """Whether what was kept can be this client's: a Report of its cohort and width."""
        if not isinstance(held, Report):
            return False
        return held.cohort == self._encoder.cohort and not held.bits >> self._encoder.params.k
