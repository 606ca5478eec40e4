"""Status: what waits after a refusal, why and what to do; and a table to print."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rappor import wire
from rappor.client import Client, WaitingReports
from rappor.client.problems import REFUSALS, UNTRUSTED
from rappor.client.status import COLLECTION_STATES, upload_text, waiting_reports
from rappor.client.transport import Answer
from support.client import LIMIT, FakeClock, FakeTransport, Setting, batch, homepage

REFUSED = [
    (401, "unauthorized"),
    (403, "forbidden"),
    (404, "unknown-collection"),
    (404, "not-found"),
]


def opened(directory: Path, *answers: Answer, **given: Any) -> Client:
    """A client of `homepage` whose collector gives these answers."""
    options: dict[str, Any] = {"consent": True, "clock": FakeClock(), **given}
    return Client.open(directory, [homepage()], transport=FakeTransport(list(answers)), **options)


@pytest.mark.parametrize(("status", "code"), REFUSED)
def test_after_a_refusal_the_status_says_what_waits_since_when_and_what_to_do(
    tmp_path: Path, status: int, code: str
) -> None:
    with opened(tmp_path, *[Answer(status, code)] * 9) as client:
        client.report("homepage", "a.org")
        assert not client.flush(LIMIT)
        found = client.status()
    assert found.waiting_reports == (
        WaitingReports("homepage", 1, "2026-11-16", "2026-11-30", code),
    )
    assert found.upload == (
        f"the collector answered {status} {code}: 1 report waits (homepage), from 2026-11-16. "
        f"It is kept until 2026-11-30 at the latest. {REFUSALS[code]}."
    )


@pytest.mark.parametrize(("status", "code"), REFUSED)
def test_the_next_process_knows_why_before_it_tries(tmp_path: Path, status: int, code: str) -> None:
    with opened(tmp_path, *[Answer(status, code)] * 9) as client:
        client.report("homepage", "a.org")
        client.flush(LIMIT)
    with opened(tmp_path, *[Answer(status, code)] * 9) as later:
        assert later.status().waiting_reports[0].reason == code


def test_every_refusal_that_a_person_has_to_correct_has_advice() -> None:
    waits = {problem.code for problem in wire.PROBLEMS.values() if problem.retry}
    corrected = {code for code in waits if wire.PROBLEMS[code].status in (401, 403, 404)}
    assert set(REFUSALS) == corrected | {"401", "403", "404", UNTRUSTED}


def test_an_answer_that_no_collector_gives_points_to_the_address(tmp_path: Path) -> None:
    with opened(tmp_path, Answer(404)) as client:
        client.report("homepage", "a.org")
        assert not client.flush(LIMIT)
        found = client.status().upload or ""
    assert found.startswith("the collector answered 404: 1 report waits")
    assert "Check upload_to: this is not the answer of a collector" in found


def test_what_another_collection_stores_does_not_hide_a_refusal() -> None:
    setting = Setting(Answer(403, "forbidden"))
    setting.outbox.put(1, batch(1, collection="font"))
    setting.send()
    setting.outbox.put(2, batch(2, collection="homepage"))
    setting.send()
    assert setting.outbox.counts() == {"sent": 1}
    assert setting.sender.error is None
    assert setting.sender.retry().reasons == {"font": "forbidden"}
    assert setting.sender.waits() == 0


def test_when_everything_is_stored_no_reason_is_left() -> None:
    setting = Setting(Answer(401, "unauthorized"))
    setting.outbox.put(1, batch(1))
    setting.send()
    assert setting.sender.retry().reasons == {"": "unauthorized"}
    setting.clock.forward(1)
    setting.send()
    assert setting.sender.retry().reasons == {}
    assert setting.disk.read("retry") is None


def test_the_file_of_an_earlier_version_is_read() -> None:
    from rappor.client.folder import seal

    setting = Setting()
    after = setting.clock.time() + 100
    setting.disk.replace("retry", seal("retry", b'{"after": %d, "failures": 2}' % after))
    assert setting.sender.retry() == (after, 2, {})
    setting.disk.replace("retry", seal("retry", b'{"after": 1, "failures": 2, "reasons": 3}'))
    assert setting.sender.retry() == (0.0, 0, {})


def test_the_oldest_period_is_the_earliest_in_time() -> None:
    found = waiting_reports([("a", "2026-W47"), ("a", "2026-W46"), ("b", "2026-11-16")], {})
    assert [(one.reports, one.since, one.until) for one in found] == [
        (2, "2026-W46", "2026-11-29"),
        (1, "2026-11-16", "2026-11-30"),
    ]
    assert upload_text(found) is None


def test_reports_that_wait_for_different_reasons_are_told_apart() -> None:
    periods = [(f"c{number}", "2026-11-16") for number in range(6)]
    text = upload_text(waiting_reports(periods, {"": "no answer (OSError)", "c5": "forbidden"}))
    assert text is not None
    assert "no answer (OSError): 5 reports wait (c0, c1, c2 and 2 more)" in text
    assert "403 forbidden: 1 report waits (c5)" in text


def test_a_status_prints_as_a_table(tmp_path: Path) -> None:
    with opened(tmp_path) as client:
        client.report("homepage", "a.org")
        client.report("homepage", "secret.example")
        assert client.flush(LIMIT)
        shown = str(client.status())
    assert shown.splitlines() == [
        "on: values are reported",
        "",
        "collection   period      reports  values      ε  at most  state",
        "homepage v1  2026-11-16        1  1 of 3  4.395   13.184  "
        "the reports of this period are made",
        "",
        "ε of all collections together: 4.395",
        "reports: 0 waiting, 1 sent",
        "calls of report() in this process: 1 made, 1 the reports of this period are made",
    ]
    assert "example" not in shown


def test_a_printed_status_says_what_is_wrong(tmp_path: Path) -> None:
    with opened(tmp_path, Answer(503, "overloaded", 40.0)) as client:
        client.report("homepage", "a.org")
        assert not client.flush(LIMIT)
        shown = str(client.status())
    assert "upload: the collector answered 503 overloaded: 1 report waits" in shown
    assert re.search(r"next attempt: in about \d+ s$", shown, re.MULTILINE)
    (tmp_path / "secret").unlink()
    with opened(tmp_path) as client:
        assert str(client.status()).startswith("stopped: the file `secret` was used before")
    with opened(tmp_path, consent=False) as client:
        assert "problem: secret-missing: " in str(client.status())


def test_every_state_of_a_collection_has_words() -> None:
    from rappor.client import status

    written = re.findall(r'state = "([a-z ]+)"', Path(status.__file__).read_text(encoding="utf-8"))
    assert set(written) == set(COLLECTION_STATES)


def test_epsilon_of_all_collections_is_the_sum_of_what_the_table_shows(tmp_path: Path) -> None:
    two = [homepage(), homepage(name="search")]
    given: dict[str, Any] = {"transport": FakeTransport(), "consent": True, "clock": FakeClock()}
    with Client.open(tmp_path, two, **given) as client:
        client.report("homepage", "a.org")
        client.report("search", "b.org")
        assert client.flush(LIMIT)
        shown = str(client.status())
    assert shown.count("  4.395  ") == 2
    assert "ε of all collections together: 8.790\n" in shown  # the exact sum is 8.7889
    with Client.open(tmp_path, [homepage()], **given) as client:  # search is not asked any more
        assert "ε of all collections together: 8.790\n" in str(client.status())
