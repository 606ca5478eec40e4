"""PostgresStore: the store in a database. Each public method is one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from psycopg.types.numeric import Int8

from rappor.collection import Registry
from rappor.errors import StoreBroken, StoreBusy, StoreError, StoreUnavailable
from rappor.store.cell_key import CellKey, cell_id
from rappor.store.checksums import checksum
from rappor.store.contents import StoreContents
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
from rappor.store.definition_rules import parse
from rappor.store.postgres import (
    audit,
    cell_rows,
    contents,
    count_rows,
    definitions,
    integrity,
    report_chunks,
    retention,
    schema,
    token_rows,
    writers,
)
from rappor.store.postgres.arrays import (
    PackedBytes,
    PackedNumbers,
    packed_bytes,
    packed_numbers,
)
from rappor.store.postgres.cell_rows import WriterCell
from rappor.store.postgres.connection import Connection, translating, without_limits
from rappor.store.postgres.count_rows import RowChanges, WriterRows
from rappor.store.postgres.locks import RETENTION, share_store, take_store
from rappor.store.postgres.released import PostgresSnapshots
from rappor.store.postgres.schema import ADD_BATCHES_SINCE, MIGRATIONS, PostgresMigration
from rappor.store.postgres.session import PostgresSession
from rappor.store.released import ReleasedCounts
from rappor.store.retention_rules import is_ahead, retention_detail
from rappor.store.sqlite.contents import write_backup
from rappor.store.token_window import check_tokens

_BEGIN = (
    "SELECT version, oldest, part, day, retained, epoch, "
    "(SELECT writer FROM rappor.writers WHERE pid = pg_backend_pid()) FROM rappor.state"
)
_ADD = (
    "SELECT rappor.add_batches(%b::integer, %b::bigint, %b::bigint, %b::integer, %b::integer, "
    "%b::bytea[], %b::bigint[], %b::bytea[], %b::bytea[], "
    "%b::bigint[], %b::bigint[], %b::bytea[], %b::bytea[])"
)
_PROBE = bytes(2**16)
# They change nothing, and the server checks all rights that adding needs.
_MAY_ADD = (
    "INSERT INTO rappor.tokens (token, part) SELECT token, part FROM rappor.tokens WHERE false",
    "UPDATE rappor.cells SET reports = reports WHERE false",
    "UPDATE rappor.counts SET data = data WHERE false",
)
_DAY_ATTEMPTS = 3  # to open a new day of tokens; retention may close it again meanwhile
_PAUSE_SECONDS = 1.0  # after retention by another process, for batches that were admitted before


class StoreState(NamedTuple):
    """What a transaction relies on: it does not change before the transaction ends.

    Attributes:
        version: the schema.
        oldest: the oldest schema that a writer may know.
        part: the part that tokens go to.
        day: its day.
        retained: the latest day of retention.
        epoch: grows when rows were changed by another process.
        writer: the writer of this connection, or None.
    """

    version: int
    oldest: int
    part: int
    day: int
    retained: int
    epoch: int
    writer: int | None


def _utc_now() -> datetime:
    return datetime.now(UTC)


class PostgresStore:
    """See `rappor.store.Store` for what each method does.

    Any number of processes may write. Each has rows of its own, so they do not wait for each other.

    Args:
        url: the database, as libpq reads it.
        read_only: open for reading only; the store must exist.
        now: the clock of the audit log.
        migrations: the schemas that this version knows.
        clock: for pauses.

    Attributes:
        retained: the latest day of retention, or None; updated by each call of `add`.
    """

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = False,
        now: Callable[[], datetime] = _utc_now,
        migrations: Sequence[PostgresMigration] = MIGRATIONS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._now, self._known = now, len(migrations)
        self._session = PostgresSession(url, read_only)
        self._clock = clock
        self._rows: WriterRows | None = None
        self._epoch = -1  # the state of the database that the rows describe
        self._generation = 0  # the connection that has registered as a writer
        self._pause_until = 0.0
        self.accepted: str | None = None
        self.retained: date | None = None
        try:
            if not read_only:
                with self._session.maintaining() as connection, translating(url):
                    if not _is_current(connection, self._known):
                        schema.migrate(connection, migrations)
            with self._session.reading() as connection, translating(url):
                schema.verify(connection, self._known)
                row = connection.execute("SELECT retained FROM rappor.state").fetchone()
                self.retained = _day(row[0] if row else 0)
        except BaseException:
            self._session.close()
            raise

    @property
    def name(self) -> str:
        """The store's URL without passwords."""
        return self._session.name

    def add(
        self,
        tokens: Sequence[bytes],
        fold: Callable[[Sequence[int]], Iterable[Fold]],
        day: date,
    ) -> list[bool]:
        """Count batches exactly once; see `Store.add`."""
        given = list(tokens)
        check_tokens(given)
        if not given:
            return []
        if self._add_at_once(given, fold, day):
            return [True] * len(given)
        for _ in range(_DAY_ATTEMPTS):
            new = self._add(given, fold, day)
            if new is not None:
                return new
            with self._session.writing() as connection:
                connection.execute("SELECT rappor.open_token_day(%s)", (day.toordinal(),))
        raise StoreBusy(f"{self.name}: the day of tokens {day} cannot be opened now")

    def _add_at_once(
        self, tokens: list[bytes], fold: Callable[[Sequence[int]], Iterable[Fold]], day: date
    ) -> bool:
        """Add new batches to rows that exist, in one statement; False if that is not possible.

        Nothing is written then.
        """
        wanted = sorted(set(tokens))
        if len(wanted) < len(tokens):
            return False
        # The rows are written whole: no other thread may plan from them before they are adopted.
        with self._session.alone():
            rows = self._rows
            if rows is None or self._known < ADD_BATCHES_SINCE or self._clock() < self._pause_until:
                return False
            change = rows.plan(fold(range(len(tokens))))
            if change is None or not change.rows:
                return False
            retained = 0 if self.retained is None else self.retained.toordinal()
            about = (self._known, rows.writer, self._epoch, retained, day.toordinal())
            values = (*map(Int8, about), packed_bytes(wanted), *_columns(change))
            try:
                with self._session.maintaining() as connection:  # one statement is a transaction
                    done = connection.execute(_ADD, values, binary=True).fetchone()
            except BaseException:
                self._rows = None  # it is not known whether they say what is stored
                raise
            if done != (True,):
                return False
            rows.adopt(change)
            return True

    def _add(
        self, tokens: list[bytes], fold: Callable[[Sequence[int]], Iterable[Fold]], day: date
    ) -> list[bool] | None:
        """Add, or return None if a part for tokens of that day has to be opened first."""
        with self._adding() as (connection, rows, state):
            if state.day < day.toordinal():
                connection.execute("ROLLBACK")
                return None
            new = token_rows.insert(connection, tokens, state.part)
            indices = [index for index, is_new in enumerate(new) if is_new]
            if indices:
                rows.apply(connection, fold(indices))
            else:
                connection.execute("ROLLBACK")  # nothing to write or sync
        return new

    @contextmanager
    def _adding(self) -> Iterator[tuple[Connection, WriterRows, StoreState]]:
        """A transaction that adds reports, with the rows of this writer."""
        if self._clock() < self._pause_until:
            raise StoreBusy(f"{self.name}: retention has just run")
        # Rows that a transaction has changed are forgotten before another thread sees them, if it
        # is rolled back.
        with self._session.alone():
            for is_last in (False, True):
                try:
                    with self._session.writing() as connection:
                        state = self._sharing(connection)
                        self._notice(state)
                        if state.writer is not None and self._is_registered:
                            yield connection, self._own_rows(state.writer, state.epoch), state
                            return
                except BaseException:
                    self._rows = None  # they may say what was rolled back
                    raise
                if is_last:
                    raise StoreUnavailable(
                        f"{self.name}: the connection has no writer; is a pooler "
                        "between that gives it to others? Use session pooling"
                    )
                self._register()

    @property
    def _is_registered(self) -> bool:
        """Whether this connection has registered; its number may have been that of another."""
        return self._generation == self._session.generation

    def _register(self) -> None:
        with self._session.maintaining() as connection:
            writers.register(connection)
            self._generation = self._session.generation

    def _sharing(self, connection: Connection) -> StoreState:
        """Let nobody change what this transaction relies on; return that."""
        share_store(connection)
        return self._state(connection)

    @contextmanager
    def _changing(self) -> Iterator[Connection]:
        """A transaction of any length that nobody adds reports meanwhile."""
        with self._session.alone():
            self._rows = None
            with self._session.writing() as connection:
                take_store(connection)
                self._state(connection)
                without_limits(connection)
                yield connection

    def _state(self, connection: Connection) -> StoreState:
        """What the transaction relies on, or StoreBroken if a newer rappor has changed it."""
        state = StoreState(*_row(connection.execute(_BEGIN).fetchone()))
        self._check_version(state)
        return state

    def _check_version(self, state: StoreState) -> None:
        """StoreBroken if a newer rappor has changed the schema: the process must end."""
        try:
            schema.check_version(state.version, state.oldest, self._known)
        except StoreError as error:
            raise StoreBroken(f"{self.name}: {error}") from None

    def _own_rows(self, writer: int, epoch: int) -> WriterRows:
        if self._rows is None or self._rows.writer != writer or self._epoch != epoch:
            self._rows, self._epoch = WriterRows(writer), epoch
        return self._rows

    def _notice(self, state: StoreState) -> None:
        """Notice retention by another process: batches that it forgot must not be accepted."""
        retained = _day(state.retained)
        if retained is not None and (self.retained is None or retained > self.retained):
            self.retained = retained
            self._pause_until = self._clock() + _PAUSE_SECONDS
            raise StoreBusy(f"{self.name}: retention has just run")

    def add_file(self, digest: bytes, folds: Iterable[Fold], *, actor: str, detail: str) -> bool:
        """Count a file of reports exactly once; see `Store.add_file`."""
        with self._adding() as (connection, rows, _):
            new = connection.execute(
                "INSERT INTO rappor.imports (digest, detail, checksum) VALUES (%s, %s, %s) "
                "ON CONFLICT DO NOTHING RETURNING 1",
                (digest, detail, checksum("imports", digest, detail)),
            ).fetchone()
            if new is None:
                connection.execute("ROLLBACK")
                return False
            without_limits(connection)
            added = rows.apply(connection, folds)
            audit.append(connection, self._entry(actor, "import", f"{detail}: {added} reports"))
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
            return [count_rows.read(connection, cells) for cells in wanted]

    def counts_of(self, cells: Iterable[CellKey]) -> list[StoredCounts]:
        """The counts of these cells, in this order, without those that do not exist."""
        keys = list(cells)
        with self._session.reading() as connection:
            found: dict[CellKey, list[WriterCell]] = {}
            for row in cell_rows.of_cells(connection, map(cell_id, keys)):
                found.setdefault(row.key, []).append(row)
            return [count_rows.read(connection, found[key]) for key in keys if key in found]

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
            wanted = cell_rows.matching(connection, collection, version, periods, dimensions)
        for cells in wanted:
            with self._session.reading() as connection:  # not open while the caller works
                kept = report_chunks.read(connection, cells[0])
            for cohort, reports in kept.items():
                yield cells[0].key, cohort, reports

    def save_definition(self, toml: str, *, actor: str) -> bool:
        """Save a collection's definition; return whether it is new or changed."""
        known = parse(toml)
        with self._session.reading() as connection:  # most are saved already: no lock is needed
            saved = definitions.read(connection)
        if Definition(known.name, known.version, toml) in saved and not self._session.read_only:
            return False
        with self._changing() as connection:
            new = definitions.save(connection, toml)
            if new is None:
                connection.execute("ROLLBACK")
                return False
            audit.append(connection, self._entry(actor, "define", f"{new.name} v{new.version}"))
        return True

    def definitions(self) -> list[Definition]:
        """All saved definitions, sorted by collection and version."""
        with self._session.reading() as connection:
            return definitions.read(connection)

    def audit(self, actor: str, action: str, detail: str) -> None:
        """Append an entry to the audit log."""
        with self._session.writing() as connection:
            self._sharing(connection)
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
                without_limits(connection)
                planned = retention.plan(connection, today, registry)
            return retention.summary(planned, today, dry_run=True)
        self._check_day(today)
        with self._session.alone(), self._retaining():
            with self._changing() as connection:
                writers.merge(connection)
                planned = retention.plan(connection, today, registry)
                done = retention.summary(planned, today, dry_run=False)
                retention.execute(connection, planned, today)
                audit.append(connection, self._entry(actor, "retain", retention_detail(done)))
            self.retained = max(filter(None, (self.retained, today)))
            self.released.forget(cell.cell for cell in self.cells())
            return replace(done, settled=self._rewrite())

    def server_day(self) -> date | None:
        """Today by the clock of the server, in UTC."""
        with self._session.reading() as connection:
            row = connection.execute("SELECT (now() AT TIME ZONE 'UTC')::date").fetchone()
        found: date = _row(row)[0]
        return found

    def _check_day(self, today: date) -> None:
        """StoreError if retention would run days ahead of the server's clock.

        It would delete tokens whose batches are still accepted, and close periods for all
        collectors. Neither can be undone.
        """
        day = self.server_day()
        if is_ahead(today, day):
            raise StoreError(
                f"{self.name}: retention as of {today} is refused: by the clock of the server it "
                f"is {day}; correct the clock of this machine, or name an earlier day"
            )

    @contextmanager
    def _retaining(self) -> Iterator[None]:
        """Run retention alone, its rewriting included. StoreBusy if another process runs it."""
        with self._session.maintaining() as connection:
            row = connection.execute(f"SELECT pg_try_advisory_lock({RETENTION})").fetchone()
        if row != (True,):
            raise StoreBusy(f"{self.name}: another process runs retention")
        try:
            yield
        finally:
            # A connection that is lost has no locks.
            with suppress(StoreError), self._session.maintaining() as connection:
                connection.execute(f"SELECT pg_advisory_unlock({RETENTION})")

    def _rewrite(self) -> bool:
        """Rewrite tables that rows were deleted from; False if a reader blocks it for too long.

        What is left is in the state, and done by the next retention, also if this one is killed.
        """
        try:
            with self._session.maintaining() as connection:
                retention.rewrite(connection)
        except StoreBusy:
            return False
        return True

    def settle(self) -> None:
        """Merge the rows of writers that are gone; see `Store.settle`."""
        with self._session.writing() as connection:
            wanted = writers.may_merge(connection) and writers.any_gone(connection)
            connection.execute("ROLLBACK")
        if wanted:
            with self._changing() as connection:
                writers.merge(connection)

    def probe(self) -> None:
        """Reach the server and write something that is rolled back: a full disk refuses it."""
        with self._adding() as (connection, rows, _):
            connection.execute(
                "INSERT INTO rappor.counts (id, writer, data, checksum) VALUES (-1, %s, %s, '')",
                (rows.writer, _PROBE),
            )
            for statement in _MAY_ADD:
                connection.execute(statement)
            connection.execute("ROLLBACK")

    def check(self) -> list[str]:
        """Read everything and return what is wrong; an empty list if nothing is."""
        with self._session.reading() as connection:
            without_limits(connection)
            return integrity.problems(connection)

    def size(self) -> StoreSize:
        """The size of all tables and indexes."""
        with self._session.reading() as connection:
            row = connection.execute(
                "SELECT coalesce(sum(pg_table_size(c.oid) + pg_indexes_size(c.oid)), 0)::bigint "
                "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = 'rappor' AND c.relkind = 'r'"
            ).fetchone()
        return StoreSize(int(_row(row)[0]), None)

    def stamp(self) -> tuple[int, int, int]:
        """Three numbers; at least one of them differs after every change of the database."""
        with self._session.reading() as connection:
            row = connection.execute(
                "SELECT pg_snapshot_xmin(now)::text::bigint, pg_snapshot_xmax(now)::text::bigint, "
                "(SELECT count(*) FROM pg_snapshot_xip(now)) FROM pg_current_snapshot() AS now"
            ).fetchone()
        first, last, running = _row(row)
        return first, last, running

    @property
    def released(self) -> ReleasedCounts:
        """Snapshots in the database."""
        return ReleasedCounts(PostgresSnapshots(self._session))

    def losses(self) -> list[str]:
        """None: the server notices a lost log itself and does not start."""
        return []

    @property
    def in_place(self) -> bool:
        """True: the server guards its files."""
        return True

    def backup(self, path: str | PathLike[str]) -> None:
        """Write a complete, verified and synced copy, even while others write.

        It is the file of an SQLite store: a backup can be restored to either kind of store.
        """
        with self._session.reading() as connection:
            without_limits(connection)
            write_backup(contents.read(connection), Path(path).expanduser())

    def load(self, given: StoreContents) -> None:
        """Fill an empty store with the contents of another, in one transaction.

        Raises:
            StoreError: the store is not empty; nothing is changed then.
        """
        with self._changing() as connection:
            contents.load(connection, given)

    def close(self) -> None:
        """Merge this writer's rows with those of writers that are gone, and disconnect."""
        with self._session.alone():
            rows, self._rows = self._rows, None
            if rows is not None and not self._session.closed and self._session.connected:
                with suppress(StoreError):  # everything is stored already; the next merge does it
                    with self._session.maintaining() as connection:
                        writers.unregister(connection, rows.writer)
                    self.settle()
        self._session.close()

    def __enter__(self) -> PostgresStore:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _columns(change: RowChanges) -> tuple[PackedBytes | PackedNumbers, ...]:
    """The rows as `rappor.add_batches` takes them: an array for each column."""
    slots, datas, checksums = zip(*change.rows, strict=True)
    cells = change.cells
    return (
        packed_numbers(slots),
        packed_bytes(datas),
        packed_bytes(checksums),
        packed_numbers([cell.id for cell in cells]),
        packed_numbers([cell.reports for cell in cells]),
        packed_bytes([cell.parity for cell in cells]),
        packed_bytes([cell.checksum for cell in cells]),
    )


def _row(row: tuple[Any, ...] | None) -> tuple[Any, ...]:
    if row is None:
        raise StoreError("damaged (its state is missing); restore a backup")
    return row


def _day(number: int) -> date | None:
    return date.fromordinal(number) if number else None


def _is_current(connection: Connection, known: int) -> bool:
    """Whether no migration is missing: a collector need not be allowed to run one."""
    return schema.exists(connection) and schema.version(connection) >= known
