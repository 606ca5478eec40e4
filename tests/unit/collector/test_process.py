"""The parts of a collector process: what is said at the start; retention is tried again."""

import datetime
import json
import math
import time
from pathlib import Path

import pytest

from rappor import Params
from rappor.collection import Collection, Registry
from rappor.collector import log, process
from rappor.collector.http_protocol import GuardedProtocol
from rappor.collector.settings import CollectorSettings
from rappor.store import RetentionResult
from rappor.store.contract import AuditEntry

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


@pytest.mark.parametrize("settled", [True, False])
def test_retention_that_a_reader_kept_from_finishing_is_tried_again(
    tmp_path: Path, settled: bool
) -> None:
    """The bytes are in the log until it is emptied: promised is that they are gone."""

    class Read:
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
