"""The parts of a collector process: what is said at the start; retention is tried again."""

import datetime
import json
import math
import time
from dataclasses import replace
from pathlib import Path

import pytest

from rappor import Params
from rappor.collection import Collection, Registry
from rappor.collector import log, process
from rappor.collector.http_protocol import GuardedProtocol
from rappor.collector.settings import CollectorSettings
from rappor.errors import StoreBusy, StoreError, StoreRefused
from rappor.store import RetentionResult
from rappor.store.contract import AuditEntry
from rappor.store.retention_rules import MAX_DAYS_AHEAD

MONDAY = datetime.date(2026, 11, 16)


@pytest.mark.usefixtures("logging_restored")
def test_what_lint_calls_an_error_is_logged_at_the_start(capsys):
    log.set_up("info")
    bad = Collection("homepage", 1, Params.preset("windows"))
    process.warn_of(Registry([bad]), MONDAY)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert {line["event"] for line in lines} == {"lint"}
    assert {line["level"] for line in lines} == {"warning"}
    assert "no-expiry" in {line["code"] for line in lines}


@pytest.mark.usefixtures("logging_restored")
def test_an_empty_folder_of_collections_is_said(capsys):
    log.set_up("info")
    process.warn_of(Registry([]), MONDAY)
    assert json.loads(capsys.readouterr().err)["event"] == "no-collections"


class Untouched:
    """A store from which retention removes nothing."""

    retained: datetime.date | None = None

    def server_day(self) -> datetime.date | None:
        return None

    def retain(self, today: datetime.date, _: Registry) -> RetentionResult:
        return RetentionResult(today, settled=True)

    def audit(self, *_: str) -> None: ...

    def audit_log(self) -> list[AuditEntry]:
        return []

    def definitions(self) -> list[str]:
        return []

    def save_definition(self, *_: str, **__: str) -> bool:
        return True


@pytest.mark.usefixtures("logging_restored")
def test_an_end_that_is_near_is_logged_with_each_retention(tmp_path: Path, capsys) -> None:
    log.set_up("info")
    soon = MONDAY + datetime.timedelta(days=14)
    near = Collection("homepage", 1, Params.preset("windows"), expires=soon)
    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, Untouched(), Registry([near]), lambda: MONDAY)  # type: ignore[arg-type]
    collector._retain(Untouched())  # type: ignore[arg-type]
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    said = [line["text"] for line in lines if line["event"] == "expires-soon"]
    assert said == [
        "homepage v1 expires on 2026-11-30, in 14 days: from then on no report is accepted, and "
        "all its counts and reports are deleted"
    ]


@pytest.mark.parametrize(("expires", "again"), [(MONDAY, True), (None, False)])
def test_retention_runs_again_after_a_reload_that_ends_a_collection(
    tmp_path: Path, expires: datetime.date | None, again: bool
) -> None:
    folder = tmp_path / "collections"
    folder.mkdir()
    before = Collection("homepage", 1, Params.preset("windows"))
    changed = replace(before, expires=expires)
    (folder / "homepage.toml").write_text(changed.to_toml())
    settings = CollectorSettings(tmp_path / "data", folder)
    collector = process.Collector(settings, Untouched(), Registry([before]), lambda: MONDAY)  # type: ignore[arg-type]
    collector._retained_on = MONDAY
    collector.writer.ask = lambda _, task: task(Untouched())  # type: ignore[method-assign]
    collector.reload()
    assert (collector._retained_on is None) is again


@pytest.mark.parametrize("settled", [True, False])
def test_retention_that_a_reader_kept_from_finishing_is_tried_again(
    tmp_path: Path, settled: bool
) -> None:
    """The bytes are in the log until it is emptied: promised is that they are gone."""

    class Read:
        retained: datetime.date | None = None

        def server_day(self) -> None: ...

        def retain(self, today: datetime.date, registry: Registry) -> RetentionResult:
            return RetentionResult(today, reports=1, settled=settled)

        def audit(self, *_: str) -> None: ...

        def audit_log(self) -> list[AuditEntry]:
            return []

    (tmp_path / "collections").mkdir()
    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, Read(), Registry(), lambda: MONDAY)  # type: ignore[arg-type]
    collector._retain(Read())  # type: ignore[arg-type]
    if settled:
        assert collector._retry_at == math.inf
    else:
        assert collector._retry_at - time.monotonic() <= 600


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize("days", [2, 3])
def test_retention_by_a_clock_that_is_ahead_of_the_server_touches_nothing(
    tmp_path: Path, capsys, days: int
) -> None:
    """It would delete tokens, and every collector would close periods as of that day."""
    log.set_up("info")
    noted = []

    class Served(Untouched):
        def server_day(self) -> datetime.date:
            return MONDAY - datetime.timedelta(days=days)

        def audit(self, *entry: str) -> None:
            noted.append(entry)

    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, Served(), Registry(), lambda: MONDAY)  # type: ignore[arg-type]
    collector._retain(Served())  # type: ignore[arg-type]
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    wrong = days > MAX_DAYS_AHEAD
    assert ("clock-leapt" in events, noted == []) == (wrong, wrong)
    assert collector.app.admission.retained == (None if wrong else MONDAY)
    assert (collector._retry_at < math.inf) is wrong  # the clock may be corrected


def test_retention_that_another_collector_runs_is_tried_again(tmp_path: Path) -> None:
    class Busy(Untouched):
        def retain(self, *_: object) -> RetentionResult:
            raise StoreBusy("another process runs retention")

    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, Busy(), Registry(), lambda: MONDAY)  # type: ignore[arg-type]
    collector._retain(Busy())  # type: ignore[arg-type]
    assert collector._retry_at < math.inf


def test_a_process_that_slept_holds_it_against_nobody(tmp_path: Path) -> None:
    """Stopped by a signal or with its machine: a request that was on its way is not late."""

    class Noted(GuardedProtocol):
        def __init__(self) -> None:
            self.forgiven, self.checked = 0.0, 0

        def forgive(self, seconds: float) -> None:
            self.forgiven += seconds

        def check_time(self, now: float) -> None:
            self.checked += 1

    class Empty:
        retained = None

        def audit_log(self) -> list[AuditEntry]:
            return []

    (tmp_path / "collections").mkdir()
    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, Empty(), Registry(), lambda: MONDAY)  # type: ignore[arg-type]
    connection = Noted()
    collector.server_state.connections.add(connection)
    for now in (100.0, 100.5, 101.1, 161.6, 162.1):
        collector._check_connections(now)
    assert connection.checked == 5
    assert connection.forgiven == pytest.approx(60.0)


class LeastPrivilege(Untouched):
    """A database whose role may not delete, and what is known of the latest retention by others."""

    def __init__(self, last: datetime.date | None) -> None:
        self._last = last

    def retain(self, today: datetime.date, _: Registry) -> RetentionResult:
        raise StoreRefused("permission denied for table writers")

    def probe(self) -> None:
        """Reads the day of the latest retention, as `PostgresStore.probe` does."""
        self.retained = self._last


@pytest.mark.usefixtures("logging_restored")
@pytest.mark.parametrize(
    ("days", "level"), [(None, "warning"), (3, "warning"), (2, "info"), (0, "info")]
)
def test_retention_that_is_left_to_the_owner_is_a_warning_if_nobody_ran_it(
    tmp_path: Path, capsys, days: int | None, level: str
) -> None:
    log.set_up("info")
    last = None if days is None else MONDAY - datetime.timedelta(days)
    store = LeastPrivilege(last)
    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, store, Registry(), lambda: MONDAY)  # type: ignore[arg-type]
    assert collector.app.last_retention is None
    collector._retain(store)  # type: ignore[arg-type]
    (said,) = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert (said["event"], said["level"]) == ("retention-not-permitted", level)
    assert said["last"] == ("never" if last is None else last.isoformat())
    assert "rappor retain --store" in said["text"]
    assert collector.app.last_retention is None  # it did not run here
    assert collector._retry_at == math.inf


class LeastPrivilegeWithRows(LeastPrivilege):
    """One that has added reports: it sees rows to merge, and not those to merge them with."""

    def audit(self, *_: str) -> None:
        raise StoreRefused("permission denied for function append_audit")

    def retain(self, today: datetime.date, _: Registry) -> RetentionResult:
        raise StoreError("a writer: damaged (not what was written there)")


@pytest.mark.usefixtures("logging_restored")
def test_a_role_that_may_not_delete_is_not_made_to_try(tmp_path: Path, capsys) -> None:
    """Each attempt would stop all collectors for a moment."""
    log.set_up("info")
    store = LeastPrivilegeWithRows(MONDAY)
    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, store, Registry(), lambda: MONDAY)  # type: ignore[arg-type]
    for _ in range(2):  # again after a reload
        collector._retain(store)  # type: ignore[arg-type]
    said = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert said == ["retention-not-permitted"] * 2


def test_metrics_tell_the_latest_retention_by_this_process_or_another(tmp_path: Path) -> None:
    store = Untouched()
    settings = CollectorSettings(tmp_path / "data", tmp_path / "collections")
    collector = process.Collector(settings, store, Registry(), lambda: MONDAY)  # type: ignore[arg-type]
    assert "rappor_last_retention_timestamp_seconds 0.0" in page_of(collector)
    collector._retain(store)  # type: ignore[arg-type]
    assert "rappor_last_retention_timestamp_seconds 1.7947872e+09" in page_of(collector)


def page_of(collector: process.Collector) -> str:
    return collector.app._metrics_page()[2].decode()
