"""The JavaScript client over time and in several tabs.

`clients/js/tests/scenarios.js` says what happens in each scenario.
"""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

from support.javascript import PACKAGE, node
from support.javascript_host import homepage, planted

ALPHA = 1e-6  # of each test of random moments and orders


def outcome(scenario: str, *arguments: str, sources: Path = PACKAGE / "src") -> Any:
    """What a scenario found; its collection is `homepage`, unless arguments say otherwise."""
    definition = homepage(reports_per_period=1000).to_client_json()
    script = PACKAGE / "tests" / "scenarios.js"
    command = [node(), str(script), scenario, str(sources), *(arguments or (definition,))]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def test_an_idle_client_wakes_every_thirty_seconds_at_most() -> None:
    """After its own upload, that of another tab, and the opt-out of another tab."""
    found = outcome("idle")
    assert found.pop("sent") == 3
    assert set(found) == {"afterUpload", "twoTabs", "afterOptOut"}
    assert max(found.values()) <= 600 / 30


def test_an_opt_out_between_the_last_check_and_the_request_stops_it() -> None:
    found = outcome("stopBeforeTheRequest")
    assert found == {"out": True, "flushed": False, "sent": 0, "waiting": 0}


def test_a_database_that_opens_late_is_used_and_one_that_fails_late_is_opened_again() -> None:
    assert outcome("slowDatabase") == ["directory-unusable", "directory-unusable", 7, 2]


def test_short_visits_send_at_the_first_look_after_the_moment() -> None:
    assert outcome("shortVisits") == 1


def test_what_waited_while_nobody_looked_is_not_sent_together() -> None:
    """One of 40; a new moment within the same second is as rare as 1 in 300 for each other one."""
    assert 1 <= outcome("manyWait") <= stats.binom.isf(ALPHA, 39, 2 / 300) + 1


def spread_is_uniform(times: list[float]) -> bool:
    """Whether moments fill five minutes: a χ² test over ten parts."""
    counts = [sum(30 * part <= moment < 30 * (part + 1) for moment in times) for part in range(10)]
    return sum(counts) >= len(times) - 1 and float(stats.chisquare(counts).pvalue) > ALPHA


def order_is_random(numbers: list[int]) -> bool:
    """Whether as many steps go up as in a random order: (n - 1)/2, with variance (n + 1)/12."""
    n = len(numbers)
    ups = sum(one < other for one, other in itertools.pairwise(numbers))
    return abs(ups - (n - 1) / 2) < stats.norm.isf(ALPHA / 2) * math.sqrt((n + 1) / 12)


def test_reports_are_sent_at_random_moments_and_in_a_random_order() -> None:
    found = outcome("moments")
    for sent in found.values():
        assert sorted(number for _, number in sent) == list(range(100))
        assert order_is_random([number for _, number in sent])
    assert spread_is_uniform([moment for moment, _ in found["background"]])


def test_moments_and_orders_that_are_not_random_are_caught(tmp_path: Path) -> None:
    sources = planted(
        tmp_path,
        "sender.js",
        "randomBytes(6).reduce((sum, byte) => (sum + byte) / 256, 0)",
        "0.5",
    )
    found = outcome("moments", sources=sources)
    assert not spread_is_uniform([moment for moment, _ in found["background"]])
    assert not order_is_random([number for _, number in found["flushed"]])


def test_an_opt_out_without_room_for_its_mark_deletes_what_waits_and_is_noted_elsewhere() -> None:
    elsewhere, nowhere = outcome("optOutWithoutRoom")
    assert (elsewhere["before"], elsewhere["out"], elsewhere["state"]) == (1, True, "opted out")
    assert (elsewhere["waiting"], elsewhere["sent"]) == (0, 0)
    assert (elsewhere["in"], elsewhere["later"]) == (True, "on")
    assert (nowhere["out"], nowhere["waiting"], nowhere["sent"]) == (False, 0, 0)


def test_reports_after_another_tab_opted_in_again_count() -> None:
    assert outcome("outAndInElsewhere") == [{"made": 2}, {"made": 2}]


def test_opting_in_again_clears_nothing() -> None:
    assert outcome("optInWhileOn") == [True, 1]


def test_without_consent_clearing_is_requested_although_the_lock_is_held() -> None:
    assert outcome("noConsentWhileLocked") == [True, True]


def test_nothing_is_forgotten_until_it_is() -> None:
    busy = "directory-busy"
    assert outcome("forgetWhileSending") == [busy, "stopped", busy, True, None, "forgotten"]


def test_waiting_for_ever_is_not_waiting_not_at_all() -> None:
    assert outcome("waitForEver") == ["waits"]


def test_a_problem_that_is_over_is_not_said_any_more() -> None:
    assert outcome("problemsEnd") == ["overloaded", None, 0, None]


def test_huge_values_are_refused_before_they_are_copied() -> None:
    calls, looked = outcome("hugeValues")
    assert calls == {"value refused": 4}
    assert looked <= 10


def test_an_account_secret_that_is_none_is_refused() -> None:
    assert outcome("wrongSecrets") == ["params"] * 4 + [None] * 2


def test_a_transport_that_fails_in_any_way_is_not_asked_again_at_once() -> None:
    assert outcome("oddTransports") == [[1, None], [1, None]]


def test_an_answer_that_cannot_be_noted_is_no_fault_of_the_network() -> None:
    assert outcome("answerCannotBeNoted") == ["disk-full", "disk-full", 1]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has abstract sockets")
def test_a_stranger_who_connects_to_a_lock_does_not_keep_it(tmp_path: Path) -> None:
    assert outcome("strangerAtTheLock", str(tmp_path)) == "released"
