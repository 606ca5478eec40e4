"""SqliteStore: the store in one file, each public method one transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType

from rappor.collection import Registry
from rappor.errors import StoreError
from rappor.store.cells import CellKey
from rappor.store.released import Released
from rappor.store.sqlite import (
    audit,
    backup,
    cell_rows,
    chunks,
    definitions,
    imported_files,
    integrity,
    retention,
)
from rappor.store.sqlite import folds as folding
from rappor.store.sqlite import tokens as remembering
from rappor.store.sqlite.connection import Connect, Connection, connect
from rappor.store.sqlite.recent_tokens import RecentTokens
from rappor.store.sqlite.row_cache import Known
from rappor.store.sqlite.session import Session
from rappor.store.types import (
    AuditEntry,
    CellSummary,
    Definition,
    Fold,
    Retained,
    SeenCells,
    StoredCounts,
)

POSSIBLE_LOSS, ACCEPT_LOSS = "possible-loss", "accept-loss"  # in the audit log
_PATIENCE_MS = 2_000  # with readers, before retention leaves the log to the next one


def _utc_now() -> datetime:
    return datetime.now(UTC)


class SqliteStore:
    """See `rappor.store.Store` for what each method does.

    Args:
        path: the file; made, with its folder, where it is missing and not `read_only`.
        read_only: only look.
        accept_loss: who goes on without acknowledged transactions that are missing; None: nobody.
        connect: how a connection is made.
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
        self._fresh, self._known = RecentTokens(), Known()
        self._as_of: tuple[int, int] | None = None  # these two
        self.accepted: str | None = None
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
        remembering.check_tokens(given)
        with self._session.writing() as connection:
            self._catch_up(connection)
            new = remembering.insert(connection, self._fresh, given, day)
            indices = [index for index, is_new in enumerate(new) if is_new]
            if indices:
                folding.apply(connection, fold(indices), self._known)
            else:
                connection.execute("ROLLBACK")  # nothing to write, so nothing to sync
        return new

    def _catch_up(self, connection: Connection) -> None:
        """Learn anew where it may have changed: another's commit, or our own roll-back."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        as_of = (version, self._session.rollbacks)
        if self._as_of != as_of:
            self._as_of = None
            self._known.forget()
            self._fresh.read_again(connection)
            self._as_of = as_of

    def add_file(self, digest: bytes, folds: Iterable[Fold], *, actor: str, detail: str) -> bool:
        """Count a file of reports exactly once, for ever; whether it was new."""
        with self._session.writing() as connection:
            if not imported_files.insert(connection, digest, detail):
                return False
            self._catch_up(connection)
            added = folding.apply(connection, folds, self._known)
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
        """The counts of all cells that match, by version, period and dimensions."""
        with self._session.reading() as connection:
            wanted = cell_rows.matching(connection, collection, version, periods, dimensions)
            return [folding.read(connection, cell) for cell in wanted]

    def counts_of(self, cells: Iterable[CellKey]) -> list[StoredCounts]:
        """The counts of these cells, in this order; those that are gone are left out."""
        with self._session.reading() as connection:
            found = [cell_rows.find(connection, key) for key in cells]
            return [folding.read(connection, cell) for cell in found if cell is not None]

    def cells(self, seen: SeenCells | None = None) -> list[CellSummary]:
        """All cells, by key."""
        with self._session.reading() as connection:
            return cell_rows.summaries(connection, SeenCells() if seen is None else seen)

    def reports(
        self,
        collection: str,
        version: int | None = None,
        *,
        periods: Iterable[str] | None = None,
        dimensions: str | None = None,
    ) -> Iterator[tuple[CellKey, int, bytes]]:
        """The kept reports of each cell and cohort, packed, in an order drawn anew."""
        with self._session.reading() as connection:
            wanted = list(cell_rows.matching(connection, collection, version, periods, dimensions))
        for cell in wanted:
            with self._session.reading() as connection:  # not held while the caller is at work
                found = cell_rows.find(connection, cell.key)
                kept = {} if found is None else chunks.read(connection, found)
            for cohort, reports in kept.items():
                yield cell.key, cohort, reports

    def save_definition(self, toml: str, *, actor: str) -> bool:
        """Keep a collection's definition; whether it is new or changed."""
        with self._session.writing() as connection:
            saved = definitions.save(connection, toml)
            if saved is None:
                connection.execute("ROLLBACK")
                return False
            entry = self._entry(actor, "define", f"{saved.name} v{saved.version}")
            audit.append(connection, entry)
        return True

    def definitions(self) -> list[Definition]:
        """All saved definitions, by collection and version."""
        with self._session.reading() as connection:
            return definitions.read(connection)

    def audit(self, actor: str, action: str, detail: str) -> None:
        """Write down who did what."""
        with self._session.writing() as connection:
            audit.append(connection, self._entry(actor, action, detail))

    def _entry(self, actor: str, action: str, detail: str) -> AuditEntry:
        when = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return AuditEntry(when, actor, action, detail)

    def audit_log(self) -> list[AuditEntry]:
        """Everything that was written down, oldest first."""
        with self._session.reading() as connection:
            return audit.read(connection)

    def retain(
        self,
        today: date,
        registry: Registry | None = None,
        *,
        dry_run: bool = False,
        actor: str = "store",
    ) -> Retained:
        """Remove what is too old, so that its bytes are gone."""
        if dry_run:
            with self._session.reading() as connection:
                found = retention.plan(connection, today, registry)
            return retention.summary(found, today, dry_run=True)
        with self._session.writing() as connection:
            found = retention.plan(connection, today, registry)
            done = retention.summary(found, today, dry_run=False)
            self._catch_up(connection)
            self._fresh.merge(connection)
            retention.execute(connection, found, today)
            self._known.forget()
            audit.append(connection, self._entry(actor, "retain", _said(done)))
        Released(self.path.parent).forget(each.cell for each in self.cells())
        return replace(done, settled=self._session.settle(_PATIENCE_MS))

    def settle(self) -> None:
        """Move everything to its final place: no trace of the order of arrival is left."""
        self._merge()
        self._session.settle()

    def _merge(self) -> None:
        """Move the latest tokens to where they stay."""
        with self._session.writing() as connection:
            self._catch_up(connection)
            if not self._fresh.merge(connection):
                connection.execute("ROLLBACK")

    def check(self) -> list[str]:
        """Read everything, and say each thing that is wrong; an empty list where nothing is."""
        with self._session.reading() as connection:
            found = integrity.problems(connection)
        with suppress(StoreError):  # a damaged audit log is among the problems
            found += self.losses()
        return found

    def losses(self) -> list[str]:
        """What is missing, or may be, and nobody has accepted yet."""
        found: list[str] = []
        for entry in self.audit_log():
            if entry.action == ACCEPT_LOSS:
                found = []
            elif entry.action == POSSIBLE_LOSS:
                found.append(f"{entry.detail} (noticed {entry.when})")
        doubt = self._session.finding.doubt
        if doubt is not None and self._session.read_only:  # else it is in the audit log
            found.append(doubt)
        return found

    @property
    def in_place(self) -> bool:
        """Whether the open files are still those in the folder."""
        return self._session.is_in_place

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a whole, verified and synced copy, also while others write."""
        backup.backup(self.path, Path(path).expanduser())

    def close(self) -> None:
        """Let go of the files."""
        if self._session.usable:
            with suppress(StoreError):  # all of it is on disk: whoever opens it next goes on
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


def _said(done: Retained) -> str:
    return (
        f"{done.reports} kept reports, {len(done.count_cells)} cells of expired collections with "
        f"{done.counted} counted reports, {done.tokens} tokens"
    )
