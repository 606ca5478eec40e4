"""Every exception that rappor raises on purpose, in one tree.

Messages name the field, what was given and what is allowed. They never hold a secret, or a value
that a person reported.
"""


class RapporError(Exception):
    """The root: catch this to catch everything rappor raises on purpose."""


class ParamsError(RapporError, ValueError):
    """Parameters, kinds or dialects that are malformed, out of range or carry no privacy."""


class EncodeError(RapporError, ValueError):
    """A value that its collection cannot encode. The value itself is never in the message."""


class EntropyError(RapporError):
    """The operating system gave no randomness; there is no safe substitute."""


class WireError(RapporError, ValueError):
    """Bytes or text that are not a report."""


class LedgerError(RapporError):
    """A charge that contradicts what a ledger already holds."""


class StoreError(RapporError):
    """The durable store refused, or what it holds is damaged."""


class StoreFull(StoreError):
    """The disk is full: the write was rolled back; later calls may succeed."""


class StoreBusy(StoreError):
    """Another process was writing for too long: nothing was written; later calls may succeed."""


class StoreRefused(StoreError):
    """The system lets us neither open nor write the store: permissions, a read-only disk."""


class StoreLost(StoreError):
    """Transactions that were acknowledged are missing: the store does not open."""


class StoreBroken(StoreError):
    """The disk failed to write or to sync: nothing is retried, and the process must end."""


class DecodeError(RapporError, ValueError):
    """Counts or candidates that cannot be decoded."""


class MissingExtraError(RapporError, ImportError):
    """A name that needs an optional dependency which is not installed."""

    def __init__(self, name: str, extra: str) -> None:
        """Say which extra provides `name`, as a line to paste into a shell."""
        super().__init__(
            f"rappor.{name} needs the '{extra}' extra: pip install 'rappor[{extra}]'",
            name=f"rappor.{name}",
        )
        self.extra = extra
