"""The JavaScript client in Node.js keeps the contract of `rappor.Client`, in the same files."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from rappor import Field, Params
from rappor.client import Client
from rappor.client.accounts import Ledger
from rappor.client.charging import Caps
from rappor.client.folder import Folder
from rappor.client.ledger_file import find_ledger
from rappor.collection import Collection
from rappor.collection.periods import days_of, period_of
from rappor.privacy.loss import Step, add_up, epsilon_history
from support.client import MONDAY, FakeClock, recorder_on
from support.javascript import running
from support.javascript_cases import VECTORS, random_params
from support.javascript_host import ClientRefused, Host, homepage, hosting, planted
from support.javascript_page import recording
from support.tuple_cases import secret_of
from support.waiting import wait_for

DAY = 86_400_000  # milliseconds


def noon(day: date) -> int:
    return (day - date(1970, 1, 1)).days * DAY + DAY // 2


@pytest.fixture
def host() -> Iterator[Host]:
    with hosting() as made:
        yield made


def ledger_of(directory: Path) -> Ledger:
    found = find_ledger(Folder(directory))
    assert found is not None
    return found


def test_parsed_definitions_are_accepted_and_refused_as_their_texts() -> None:
    frozen = json.loads((VECTORS / "client-definitions.json").read_text("utf-8"))
    good = [*frozen["accepted"], *frozen["other_dialects"]]
    # A parsed text would be taken for the text of a definition.
    bad = [each for each in frozen["refused"] if not each["text"].startswith('"')]
    requests = [
        {"command": "definition", "text": each["text"], "parsed": True} for each in (*good, *bad)
    ]
    with running() as javascript:
        answers = javascript.run(requests)
    assert answers[: len(good)] == [each["memo_digest"] for each in good]
    found = [(answer["code"], answer["path"]) for answer in answers[len(good) :]]
    assert found == [(each["code"], each["path"]) for each in bad]
    assert all(answer["message"] for answer in answers[len(good) :])


def test_epsilon_is_that_of_python_to_the_last_bit() -> None:
    choose = random.Random("epsilon in JavaScript")
    requests: list[dict[str, Any]] = []
    expected: list[float] = []
    while len(requests) < 300:
        kind = choose.choice(("string", "category", "boolean", "ordinal", "bits", "tuple"))
        params = random_params(choose, kind)
        steps = [
            (other.p, other.q, choose.choice((1, 2, 5, 30, 365, 10**6, 10**9)))
            for other in (random_params(choose, kind) for _ in range(choose.randint(1, 3)))
            if params.f > 0 or (other.p > 0 and other.q < 1)
        ]
        requests.append(
            {"command": "epsilon", "kind": kind, "params": params.to_dict()}
            | {"steps": [{"p": p, "q": q, "charged": n} for p, q, n in steps]}
        )
        expected.append(epsilon_history(params, [Step(*step) for step in steps], kind))
    for _ in range(200):
        losses = [
            (choose.random() * 10.0 ** choose.randint(-8, 5), choose.randint(1, 1000))
            for _ in range(choose.randrange(6))
        ]
        requests.append({"command": "sum", "losses": losses})
        expected.append(add_up(losses))
    with running() as javascript:
        found = [
            math.inf if text == "Infinity" else float(text) for text in javascript.run(requests)
        ]
    assert found == expected


def test_periods_are_those_of_python() -> None:
    days = [*range(0, 30_000, 37), *range(16_000, 16_800)]
    requests = [
        {"command": "period", "kind": kind, "day": day} for kind in ("day", "week") for day in days
    ]
    with running() as javascript:
        answers = javascript.run(requests)
    epoch = date(1970, 1, 1)
    for request, (period, first, last) in zip(requests, answers, strict=True):
        expected = period_of(request["kind"], epoch + timedelta(days=request["day"]))
        assert period == expected
        assert tuple(epoch + timedelta(days=day) for day in (first, last)) == days_of(expected)


def test_a_report_is_charged_and_sent_once(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path, homepage(reports_per_period=1))
    (batch,) = host.reported()
    assert host.reported() == []  # the reports of this period are made
    assert (batch.collection, batch.count, batch.k) == ("homepage", 1, 16)
    status = host.call("status")
    assert status["state"] == "on"
    assert status["calls"] == {"made": 1, "the reports of this period are made": 1}
    assert status["collections"][0]["state"] == "made"
    assert status["epsilon"] == ledger_of(tmp_path).epsilon() > 0
    (shown,) = host.call("preview")["sent"]
    assert (shown["cohort"], shown["token"]) == (
        int.from_bytes(batch.cohorts, "little"),
        batch.token.hex(),
    )


def test_python_continues_the_folder_with_the_same_memo_and_ledger(
    host: Host, tmp_path: Path
) -> None:
    echo = homepage(params=Params(k=64, h=2, m=4, f=0.5, p=0.0, q=1.0))  # a report is B' itself
    host.open(tmp_path, echo)
    (first,) = host.reported()
    host.call("close")
    host.close()
    clock = FakeClock(date.fromisoformat(first.period))
    recorder_on(Folder(tmp_path), clock, echo).record("homepage", "example.com", clock.time())
    with Client.open(tmp_path, [echo], consent=True, clock=clock) as client:
        assert client.status().problem is None
        (waiting,) = client.preview().waiting
    assert waiting.cohort == int.from_bytes(first.cohorts, "little")
    assert int(waiting.bits, 2).to_bytes(8, "little") == first.reports
    assert ledger_of(tmp_path).batches == 2


INSTALL = homepage(
    name="install",
    kind="tuple",
    params=Params(k=64, h=2, m=4, f=0.5, p=0.0, q=1.0),  # a report is B' itself
    fields=(Field("page", "string"), Field("channel", "category", ("stable", "beta"))),
)


def tuples_of(host: Host, folder: Path, secret: bytes) -> tuple[list[int], int]:
    """B' of three tuples, of which the second differs in its second field only; charged values."""
    host.open(folder, INSTALL, accountSecret={"hex": secret.hex()})
    found = []
    for page, channel in (("a.org", "stable"), ("a.org", "beta"), ("b.org", "beta")):
        (batch,) = host.reported({"page": page, "channel": channel}, "install")
        found.append(int.from_bytes(batch.reports, "little"))
    assert host.reported({"page": "a.org"}, "install") == []
    assert host.call("status")["calls"] == {"made": 3, "value refused": 1}
    return found, len(ledger_of(folder).accounts[0].values)


@pytest.mark.parametrize("cohort", range(4))
def test_a_tuple_is_reported_and_charged_by_the_view_of_its_cohort(
    host: Host, tmp_path: Path, cohort: int
) -> None:
    secret = secret_of(INSTALL, cohort)
    found, charged = tuples_of(host, tmp_path, secret)
    encoder = INSTALL.encoder(secret)
    assert found == [
        encoder.trace({"page": page, "channel": channel}).permanent
        for page, channel in (("a.org", "stable"), ("a.org", "beta"), ("b.org", "beta"))
    ]
    assert charged == len(set(found)) == (2 if encoder.view == ("page",) else 3)


def test_a_ledger_that_ignores_the_view_is_noticed(tmp_path: Path) -> None:
    sources = planted(
        tmp_path, "recorder.js", "signalOf(collection, encoder.cohort,", "signalOf(collection, 0,"
    )
    with hosting(sources) as host:
        found, charged = tuples_of(host, tmp_path / "client", secret_of(INSTALL, 3))
    assert charged != len(set(found))


def test_a_folder_of_python_is_continued(host: Host, tmp_path: Path) -> None:
    shutil.copytree(VECTORS / "client-folder", tmp_path / "client")
    host.call("clock", noon(date(2026, 11, 17)))
    collection = Collection.read(tmp_path / "client" / "homepage.toml")
    host.open(tmp_path / "client", collection)
    batches = host.reported("a value that is new")
    assert host.call("status")["calls"] == {"the limit on values or ε is reached": 1}
    assert len(batches) == 2  # those that waited
    assert ledger_of(tmp_path / "client").batches == 2


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(number, marks=pytest.mark.long) for number in range(2, 30))]
)
def test_every_decision_and_charge_is_that_of_python(host: Host, tmp_path: Path, seed: int) -> None:
    """The same calls on the same days, with one secret: the ledgers are equal."""
    choose = random.Random(f"ledgers {seed}")
    late, early = "2026-11-25", "2026-W49"
    collections = [
        homepage(name="often", reports_per_period=choose.randint(1, 4), group="g", max_values=2),
        homepage(name="grouped", group="g", max_epsilon=choose.choice((2.0, 6.0, 20.0))),
        homepage(name="nulls", null_reports=True, reports_per_period=choose.randint(1, 2)),
        homepage(
            name="once", one_time=True, reports_per_period=1, params=Params(16, 2, 4, 0.5, 0, 1)
        ),
        homepage(name="budget", budget=True, reports_per_period=1, max_epsilon=9.0, period="week"),
        homepage(name="phases", schedule=((late, 0.5, 0.625),), expires=date(2026, 12, 9)),
        homepage(name="weekly", period="week", schedule=((early, 0.4, 0.6),), max_epsilon=5.0),
        replace(INSTALL, params=Params(16, 2, 4, 0.5, 0.5, 0.75)),
        homepage(name="flag", kind="boolean", params=Params(1, 1, 1, 0.3, 0.1, 0.8)),
    ]
    shared = bytes(range(32)) if seed % 3 == 2 else None
    total = choose.choice((math.inf, 40.0))
    ours, theirs = tmp_path / "python", tmp_path / "javascript"
    clock = FakeClock(MONDAY)
    if shared is None:  # draws the secret
        recorder_on(Folder(ours), clock, collections[0]).record("unknown", 1, clock.time())
        recorder_on(Folder(ours), clock, collections[0]).record("often", object(), clock.time())
        shutil.copytree(ours, theirs)
    caps = Caps(total, shared is not None)
    recorder = recorder_on(Folder(ours), clock, *collections, caps=caps, account_secret=shared)
    options: dict[str, Any] = {} if total == math.inf else {"maxEpsilon": total}
    host.call("clock", noon(MONDAY))
    if shared is not None:
        options["accountSecret"] = {"hex": shared.hex()}
    host.open(theirs, *collections, **options)
    host.call("flush", 60_000)
    recorder.tick()
    for _ in range(60):
        day = clock.day + timedelta(days=choose.choice((0, 0, 0, 1, 1, 2, -1)))
        clock.set(day)
        host.call("clock", noon(day))
        name = choose.choice(collections).name
        value: object = choose.choice(("a", "b", "c", "d"))
        value = choose.random() < 0.5 if name == "flag" else value
        if name == "install":
            value = {"page": value, "channel": choose.choice(("stable", "beta"))}
        recorder.record(name, value, clock.time())
        recorder.tick()
        host.call("report", name, value)
        host.call("flush", 60_000)
    assert recorder.problem is None
    assert ledger_of(theirs) == ledger_of(ours)
    counts = host.call("status")["calls"]
    assert {what: counts.get(what) for what in recorder.counts} == recorder.counts


def test_without_consent_nothing_is_written_or_sent(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path / "client", consent=False)
    assert host.reported() == []
    assert host.call("status")["state"] == "no consent"
    assert not (tmp_path / "client").exists()


def test_do_not_track_counts_as_no(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hosting() as host:
        host.open(tmp_path)
        host.call("report", "homepage", "example.com")
        host.call("close")
    assert (tmp_path / "secret").exists()
    monkeypatch.setenv("DO_NOT_TRACK", "1")
    with hosting(keep_environment=True) as host:
        host.open(tmp_path)
        assert host.reported() == []
        assert host.call("status")["state"] == "do not track"
        assert host.call("optIn") is False


def test_opting_out_suspends_and_nothing_from_before_is_ever_sent(
    host: Host, tmp_path: Path
) -> None:
    host.call("answer", {"status": 503})
    host.open(tmp_path)
    assert len(host.reported()) == 1  # refused, so it waits
    secret = (tmp_path / "secret").read_bytes()
    assert host.call("optOut") is True
    assert host.reported() == []
    assert host.call("status")["state"] == "opted out"
    assert host.call("preview")["waiting"] == []
    host.call("close")
    (tmp_path / "retry").unlink()  # the collector is back
    with hosting() as again:
        again.open(tmp_path)
        assert again.reported() == []
        assert again.call("optIn") is True
        (batch,) = again.reported("after")
        assert batch.count == 1
    assert (tmp_path / "secret").read_bytes() == secret
    assert ledger_of(tmp_path).batches == 2  # what was charged stays charged


def test_opting_out_in_one_process_holds_in_another(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    assert len(host.reported()) == 1
    with hosting() as other:
        other.open(tmp_path)
        assert other.call("optOut") is True
        assert host.reported("later") == []
        assert host.call("status")["calls"]["opted out"] == 1


def test_forgetting_keeps_what_it_cost(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    host.reported()
    cost = ledger_of(tmp_path).epsilon()
    done = host.call("forget")
    assert done["epsilon"] == cost
    assert not (tmp_path / "secret").exists()
    assert host.call("status")["state"] == "forgotten"
    with hosting() as again:
        again.open(tmp_path)
        assert again.reported() == []  # no period gets a second report
        status = again.call("status")
        assert status["epsilon"] == cost
        assert status["calls"] == {"the reports of this period are made": 1}


ESSENTIAL = ("secret", "ledger", "used")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda folder: (folder / "secret").unlink(), "secret-missing"),
        (lambda folder: (folder / "secret").write_bytes(b"rappor-secret-v1\n"), "secret-damaged"),
        (lambda folder: (folder / "ledger").unlink(), "ledger-missing"),
        (lambda folder: (folder / "ledger").write_bytes(b"{}"), "ledger-damaged"),
        (lambda folder: (folder / "used").write_bytes(b""), "marker-damaged"),
        (lambda folder: [(folder / each).unlink() for each in ESSENTIAL], "secret-missing"),
        (lambda folder: (folder / "sent" / "0000000009.batch").write_bytes(b""), "ledger-outdated"),
    ],
)  # fmt: skip
def test_a_secret_is_never_drawn_again_and_a_lost_ledger_stops_all(
    tmp_path: Path, damage: Any, problem: str
) -> None:
    with hosting() as host:
        host.open(tmp_path)
        assert len(host.reported()) == 1
        host.call("close")
    damage(tmp_path)
    files = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with hosting() as host:
        host.open(tmp_path)
        assert host.reported() == []
        status = host.call("status")
    assert (status["state"], status["problem"]) == ("stopped", problem)
    assert status["explanation"]
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == files


def test_a_secret_that_goes_missing_while_the_client_runs_is_not_replaced(
    host: Host, tmp_path: Path
) -> None:
    host.open(tmp_path)
    host.reported()
    shutil.rmtree(tmp_path)
    assert host.reported("again") == []
    assert host.call("status")["problem"] is not None
    assert not (tmp_path / "secret").exists()


def test_answers_decide_whether_a_batch_is_kept(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    host.call("answer", {"status": 422, "code": "period-closed", "retry": False})
    assert len(host.reported("a")) == 1
    assert host.call("status")["batches"] == {"dropped: refused (period-closed)": 1}
    host.call("answer", {"status": 503, "code": "overloaded", "retry": True, "after": 3600})
    (kept,) = host.reported("b")
    status = host.call("status")
    assert (status["waiting"], status["upload"]) == (1, "overloaded")
    assert 3000 < status["nextAttempt"] <= 4000
    assert host.reported("c") == []  # it waits for an hour
    host.call("close")
    with hosting() as again:  # and so does the next process, which then sends the same bytes
        again.open(tmp_path)
        assert again.call("flush", 1000) is False
        (tmp_path / "retry").unlink()
        assert again.call("flush", 60_000) is True
        assert kept.token in {batch.token for batch in again.sent()}


def test_an_answer_about_one_collection_does_not_hold_up_the_others(
    host: Host, tmp_path: Path
) -> None:
    host.open(tmp_path, homepage(), homepage(name="theme"))
    host.call("answer", {"status": 404, "code": "unknown-collection", "retry": True})
    assert [batch.collection for batch in host.reported()] == ["homepage"]
    assert [batch.collection for batch in host.reported("x", "theme")] == ["theme"]


def test_without_a_network_reports_wait(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    host.call("answer", {"fails": True})
    host.reported()
    status = host.call("status")
    assert (status["waiting"], status["upload"]) == (1, "no answer (TypeError)")


def test_values_are_refused_without_their_text(host: Host, tmp_path: Path) -> None:
    host.open(tmp_path)
    for value in (7, None, {"a": 1}, "\ud800", "x" * (2**20 + 1)):
        host.call("report", "homepage", value)
    host.call("report", "unknown", "x")
    host.call("flush", 60_000)
    status = host.call("status")
    assert status["calls"] == {"value refused": 5, "unknown collection": 1}
    assert (status["state"], status["problem"]) == ("on", None)


@pytest.mark.parametrize(
    "options",
    [
        {"consent": "yes"},
        {"collections": []},
        {"collections": "homepage"},
        {"uploadTo": "http://reports.example.org"},
        {"uploadTo": "https://user:word@reports.example.org"},
        {"uploadTo": "nowhere"},
        {"dimensions": {"country": "NZ"}},
        {"ingestKey": "two words"},
        {"maxEpsilon": -1},
        {"jitter": 1e9},
        {"outboxLimit": 0},
    ],
    ids=str,
)
def test_wrong_arguments_are_refused(
    host: Host, tmp_path: Path, options: dict[str, object]
) -> None:
    with pytest.raises(ClientRefused) as refused:
        host.open(tmp_path, **options)
    assert refused.value.code == "params"


def test_a_folder_must_be_named(host: Host) -> None:
    with pytest.raises(ClientRefused, match="directory"):
        host.open(Path(""), directory="")


def test_two_processes_share_one_secret_and_one_limit(tmp_path: Path) -> None:
    collection = homepage(reports_per_period=7, max_values=99)
    with hosting() as one, hosting() as other:
        for host in (one, other):
            host.open(tmp_path, collection)
        for number in range(20):
            for host in (one, other):
                host.call("report", "homepage", f"v{number}")
        batches = []
        for host in (one, other):
            host.call("flush", 60_000)
        for host in (one, other):
            host.call("flush", 60_000)
            batches += host.sent()
    assert len({batch.token for batch in batches}) == 7
    assert len({batch.cohorts for batch in batches}) == 1
    assert ledger_of(tmp_path).batches == 7


@pytest.mark.parametrize("kills", [4, pytest.param(30, marks=pytest.mark.long)])
def test_a_process_that_is_killed_loses_no_charge_and_sends_nothing_without_one(
    tmp_path: Path, kills: int
) -> None:
    """At moments of its own: some reports later, which differ from run to run."""
    # A report is B' itself, and every value is reported once: no two reports are alike by chance.
    echo = Params(k=256, h=2, m=1, f=0.5, p=0.0, q=1.0)
    collection = homepage(params=echo, reports_per_period=10_000, max_values=100_000)
    choose = random.Random(f"kills in Node.js {kills}")
    folder, secrets, charged = tmp_path / "client", set(), 0
    with recording() as received:
        for number in range(kills + 1):
            host = Host()
            host.open(folder, collection, uploadTo=received.url, outboxLimit=10_000)
            status = host.call("status")
            assert status["problem"] is None
            before = status["collections"][0]["reports"]
            assert before >= charged, "a charge was lost"
            charged = before
            if number < kills:
                host.call("reportForever", "homepage", f"{number}")
                wanted = before + choose.randint(1, 5)
                wait_for(lambda wanted=wanted: batches_of(folder) >= wanted, "reports")
                charged = batches_of(folder)
                secrets.add((folder / "secret").read_bytes())
                host.kill()
            else:
                assert host.call("flush", 120_000) is True
                host.close()
    batches = received.batches()
    distinct = {batch.token: batch.reports for batch in batches}
    assert len(set(distinct.values())) == len(distinct), "a report was sent twice"
    assert len(distinct) <= charged, "a report was sent without its charge"
    assert charged - len(distinct) <= kills  # a kill loses the report that was being made
    assert len(secrets) == 1


def batches_of(folder: Path) -> int:
    """How many reports were charged; the file is replaced as a whole."""
    found = find_ledger(Folder(folder)) if (folder / "ledger").exists() else None
    return found.batches if found else 0
