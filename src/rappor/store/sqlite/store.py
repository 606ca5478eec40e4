"""SqliteStore: the store in one file. Each public method is one transaction."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType

from rappor.collection import Registry
from rappor.errors import StoreError, StoreFull
from rappor.store.cell_key import CellKey
from rappor.store.contract import (
    AuditEntry,
    CellCache,
    CellSummary,
    Definition,
    Fold,
    RetentionResult,
    StoredCounts,
    StoreSize,
)
from rappor.store.released import ReleasedCounts
from rappor.store.retention_rules import retention_detail
from rappor.store.sqlite import (
    audit,
    backup,
    cell_rows,
    count_rows,
    definitions,
    imported_files,
    integrity,
    report_chunks,
    retention,
    token_rows,
)
from rappor.store.sqlite.connection import Connect, Connection, connect
from rappor.store.sqlite.recent_tokens import RecentTokens
from rappor.store.sqlite.row_cache import RowCache
from rappor.store.sqlite.session import Session
from rappor.store.token_window import check_tokens

POSSIBLE_LOSS, ACCEPT_LOSS = "possible-loss", "accept-loss"  # in the audit log
_PROBE = bytes(2**16)
_PATIENCE_MS = 2_000  # to wait for readers before retention gives up emptying the log


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqliteStore:
    """See `rappor.store.Store` for what each method does.

    Args:
        path: the file; it is made with its folder if it is missing, unless `read_only`.
        read_only: open for reading only.
        accept_loss: who accepts that acknowledged transactions are missing; None: nobody.
        connect: opens a connection.
        now: the clock of the audit log.
    """

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        accept_loss: str | None = None,
        connect: Connect = connect,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.path = path
        self._now = now
        self._session = Session(path, connect, read_only, accept_loss is not None)
        self._recent_tokens, self._row_cache = RecentTokens(), RowCache()
        self._as_of: tuple[int, int] | None = None  # the state of the file that these two describe
        self.accepted: str | None = None
        self.retained: date | None = None  # one collector alone: the audit log says it
        if read_only:
            return
        finding = self._session.finding
        if finding.note is not None:
            self.audit("store", "recovered", finding.note)
        if finding.doubt is not None:
            self.audit("store", POSSIBLE_LOSS, finding.doubt)
        if accept_loss is not None:
            missing = [*self.losses(), *filter(None, [finding.accepted])]
            if missing:
                self.accepted = "; ".join(missing)
                self.audit(accept_loss, ACCEPT_LOSS, self.accepted)

    def add(
        self,
        tokens: Sequence[bytes],
        fold: Callable[[Sequence[int]], Iterable[Fold]],
        day: date,
    ) -> list[bool]:
        """Count batches exactly once; see `Store.add`."""
        given = list(tokens)
        check_tokens(given)
        with self._session.writing() as connection:
            self._catch_up(connection)
            new = token_rows.insert(connection, self._recent_tokens, given, day)
            indices = [index for index, is_new in enumerate(new) if is_new]
            if indices:
                count_rows.apply(connection, fold(indices), self._row_cache)
            else:
                connection.execute("ROLLBACK")  # nothing to write or sync
        return new

    def _catch_up(self, connection: Connection) -> None:
        """Refresh what is in memory after another process's commit or our own roll-back."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        as_of = (version, self._session.rollbacks)
        if self._as_of != as_of:
            self._as_of = None
            self._row_cache.forget()
            self._recent_tokens.read_again(connection)
            self._as_of = as_of

    def add_file(self, digest: bytes, folds: Iterable[Fold], *, actor: str, detail: str) -> bool:
        """Count a file of reports exactly once; see `Store.add_file`."""
        with self._session.writing() as connection:
            if not imported_files.insert(connection, digest, detail):
                return False
            self._catch_up(connection)
            added = count_rows.apply(connection, folds, self._row_cache)
            entry = self._entry(actor, "import", f"{detail}: {added} reports")
            audit.append(connection, entry)
        return True

    def counts(
        self,
        collection: str,
        version: int | None = None,
        *,
        periods: Iterable[str] | None = None,
        dimensions: str | None = None,
    ) -> list[StoredCounts]:
        """The counts of all matching cells, sorted by version, period and dimensions."""
        with self._session.reading() as connection:
            wanted = cell_rows.matching(connection, collection, version, periods, dimensions)
            return [count_rows.read(connection, cell) for cell in wanted]

    def counts_of(self, cells: Iterable[CellKey]) -> list[StoredCounts]:
        """The counts of these cells, in this order, without those that do not exist."""
        with self._session.reading() as connection:
            found = [cell_rows.find(connection, key) for key in cells]
            return [count_rows.read(connection, cell) for cell in found if cell is not None]

    def cells(self, cache: CellCache | None = None) -> list[CellSummary]:
        """All cells, sorted by key."""
        with self._session.reading() as connection:
            return cell_rows.summaries(connection, CellCache() if cache is None else cache)

    def reports(
        self,
        collection: str,
        version: int | None = None,
        *,
        periods: Iterable[str] | None = None,
        dimensions: str | None = None,
    ) -> Iterator[tuple[CellKey, int, bytes]]:
        """The kept reports of each cell and cohort, packed, in a new random order."""
        with self._session.reading() as connection:
            wanted = list(cell_rows.matching(connection, collection, version, periods, dimensions))
        for cell in wanted:
            with self._session.reading() as connection:  # not open while the caller works
                found = cell_rows.find(connection, cell.key)
                kept = {} if found is None else report_chunks.read(connection, found)
            for cohort, reports in kept.items():
                yield cell.key, cohort, reports

    def save_definition(self, toml: str, *, actor: str) -> bool:
        """Save a collection's definition; return whether it is new or changed."""
        with self._session.writing() as connection:
            saved = definitions.save(connection, toml)
            if saved is None:
                connection.execute("ROLLBACK")
                return False
            entry = self._entry(actor, "define", f"{saved.name} v{saved.version}")
            audit.append(connection, entry)
        return True

    def definitions(self) -> list[Definition]:
        """All saved definitions, sorted by collection and version."""
        with self._session.reading() as connection:
            return definitions.read(connection)

    def audit(self, actor: str, action: str, detail: str) -> None:
        """Append an entry to the audit log."""
        with self._session.writing() as connection:
            audit.append(connection, self._entry(actor, action, detail))

    def _entry(self, actor: str, action: str, detail: str) -> AuditEntry:
        when = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return AuditEntry(when, actor, action, detail)

    def audit_log(self) -> list[AuditEntry]:
        """The audit log, oldest entry first."""
        with self._session.reading() as connection:
            return audit.read(connection)

    def retain(
        self,
        today: date,
        registry: Registry | None = None,
        *,
        dry_run: bool = False,
        actor: str = "store",
    ) -> RetentionResult:
        """Remove what is too old; see `Store.retain`."""
        if dry_run:
            with self._session.reading() as connection:
                found = retention.plan(connection, today, registry)
            return retention.summary(found, today, dry_run=True)
        with self._session.writing() as connection:
            found = retention.plan(connection, today, registry)
            done = retention.summary(found, today, dry_run=False)
            self._catch_up(connection)
            self._recent_tokens.merge(connection)
            retention.execute(connection, found, today)
            self._row_cache.forget()
            audit.append(connection, self._entry(actor, "retain", retention_detail(done)))
        self.released.forget(cell.cell for cell in self.cells())
        return replace(done, settled=self._session.settle(_PATIENCE_MS))

    def settle(self) -> None:
        """Move everything to its final place; see `Store.settle`."""
        self._merge()
        self._session.settle()

    def _merge(self) -> None:
        """Move the recent tokens to the large table."""
        with self._session.writing() as connection:
            self._catch_up(connection)
            if not self._recent_tokens.merge(connection):
                connection.execute("ROLLBACK")

    def probe(self) -> None:
        """Check for free space, which a full disk has again when something was deleted."""
        file = self.path.with_name(".room")
        try:
            with file.open("wb") as handle:
                handle.write(_PROBE)
                handle.flush()
                os.fsync(handle.fileno())
        except OSError as error:
            raise StoreFull(f"{self.path}: no room on the disk ({error.strerror})") from None
        finally:
            file.unlink(missing_ok=True)

    def check(self) -> list[str]:
        """Read everything and return what is wrong; an empty list if nothing is."""
        with self._session.reading() as connection:
            found = integrity.problems(connection)
        with suppress(StoreError):  # a damaged audit log is in the list already
            found += self.losses()
        return found

    def size(self) -> StoreSize:
        """The size of the files, and the free space next to them."""
        files = self.path.parent.glob(f"{self.path.name}*")
        used = sum(file.stat().st_size for file in files)
        return StoreSize(used, shutil.disk_usage(self.path.parent).free)

    @property
    def released(self) -> ReleasedCounts:
        """Snapshots in a file next to the store."""
        return ReleasedCounts(self.path.parent)

    def losses(self) -> list[str]:
        """Possible losses that nobody has accepted yet."""
        found: list[str] = []
        for entry in self.audit_log():
            if entry.action == ACCEPT_LOSS:
                found = []
            elif entry.action == POSSIBLE_LOSS:
                found.append(f"{entry.detail} (noticed {entry.when})")
        doubt = self._session.finding.doubt
        if doubt is not None and self._session.read_only:  # otherwise it is in the audit log
            found.append(doubt)
        return found

    def server_day(self) -> date | None:
        """None: the clock is this machine's."""
        return None

    @property
    def in_place(self) -> bool:
        """Whether the open files are still those in the folder."""
        return self._session.is_in_place

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a complete, verified and synced copy, even while others write."""
        backup.backup(self.path, Path(path).expanduser())

    def close(self) -> None:
        """Close the files."""
        if self._session.usable:
            with suppress(StoreError):  # everything is on disk already
                self._merge()
        self._session.close()

    def __enter__(self) -> SqliteStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
