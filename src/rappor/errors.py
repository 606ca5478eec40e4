"""Every exception that rappor raises on purpose, in one tree.

Messages name the field, what was given and what is allowed. They never hold a secret, or a value
that a person reported.
"""

from __future__ import annotations


class RapporError(Exception):
    """The root: catch this to catch everything rappor raises on purpose."""


class ParamsError(RapporError, ValueError):
    """Parameters, kinds or dialects that are malformed, out of range or carry no privacy."""


class DefinitionError(ParamsError):
    """A collection's definition for clients that a client refuses.

    Attributes:
        code: what is wrong, one of `rappor.collection.client_json.CODES`.
        path: the field, such as params.k; empty if several fields do not fit together.
    """

    def __init__(self, code: str, path: str, text: str) -> None:
        """Say what is wrong with which field."""
        super().__init__(f"{path}: {text}" if path else text)
        self.code = code
        self.path = path

    def in_file(self, file: object) -> DefinitionError:
        """The same error, with the name of the file first."""
        named = DefinitionError(self.code, self.path, "")
        named.args = (f"{file}: {self}",)
        return named


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


class StoreUnavailable(StoreError):
    """A database or object store cannot be reached, or a commit has no known outcome.

    Later calls may succeed.
    """


class StoreRefused(StoreError):
    """The system lets us neither open nor write the store: permissions, a read-only disk."""


class StoreLost(StoreError):
    """Transactions that were acknowledged are missing: the store does not open."""


class StoreBroken(StoreError):
    """The disk failed to write or to sync: nothing is retried, and the process must end."""


class UnsupportedSystemError(RapporError):
    """A server was started on a system that lacks what it needs."""


class DecodeError(RapporError, ValueError):
    """Counts or candidates that cannot be decoded."""


def tested_releases(constraints: str) -> str:
    """Where a clone pins what to install: the end of a message about a missing package."""
    line = f"pip install --require-hashes -r {constraints}"
    return f"in a clone of rappor, {line} installs the releases that are tested"


class MissingExtraError(RapporError, ImportError):
    """A name that needs an optional dependency which is not installed."""

    def __init__(self, name: str, extra: str) -> None:
        """Say which extra provides `name`, as lines to paste into a shell.

        The first works wherever rappor is installed, on a package index or not: pip reads the
        extras of the installed version.
        """
        line = f"pip install 'rappor[{extra}]'"
        super().__init__(
            f"rappor.{name} needs the '{extra}' extra: {line}; "
            + tested_releases(
                "constraints-spark.txt" if extra == "spark" else "constraints-demo.txt"
            ),
            name=f"rappor.{name}",
        )
        self.extra = extra
