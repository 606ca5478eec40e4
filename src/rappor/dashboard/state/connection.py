"""One connection to dashboard.sqlite that threads take turns with; errors in our words."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from rappor.dashboard.state.schema import migrate
from rappor.errors import StoreError, StoreFull

BUSY_SECONDS = 10.0


class File:
    """The open file: 0600, WAL, made where it is missing."""

    def __init__(self, path: Path) -> None:
        """Open, and bring to the newest schema.

        Raises:
            StoreError: it cannot be opened, is damaged, or is not ours.
        """
        self.path = path
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except OSError as error:
            raise StoreError(f"{path}: cannot be made ({error.strerror})") from None
        with self._translating():
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=BUSY_SECONDS,
            )
        try:
            with self._translating():
                for setting in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                    self._connection.execute(f"PRAGMA {setting}").fetchall()
                self._connection.execute("PRAGMA secure_delete=ON").fetchall()
                migrate(self._connection)
        except StoreError:
            self._connection.close()
            raise

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One durable transaction: all of what happens in it, or nothing."""
        with self._lock, self._translating():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Statements that change nothing."""
        with self._lock, self._translating():
            yield self._connection

    @contextmanager
    def _translating(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            if (getattr(error, "sqlite_errorcode", 0) or 0) & 0xFF == sqlite3.SQLITE_FULL:
                raise StoreFull(f"{self.path}: no room on the disk; nothing was written") from None
            raise StoreError(f"{self.path}: {error}") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()
