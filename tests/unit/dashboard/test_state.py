"""Lists of candidates, results and jobs, as the dashboard keeps them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.dashboard.state import DashboardState
from rappor.dashboard.state.saved import MAX_JOBS, MAX_RESULTS
from rappor.errors import ParamsError
from support.dashboard_context import Clock


@pytest.fixture
def state(tmp_path: Path) -> Iterator[DashboardState]:
    made = DashboardState(tmp_path / "dashboard.sqlite", tmp_path, Clock())
    yield made
    made.close()


def test_each_saved_list_is_a_new_version(state: DashboardState) -> None:
    assert state.candidates("homepage") is None
    assert state.save_candidates("homepage", ["a", "b"], "analyst ada") == 1
    assert state.save_candidates("homepage", ["a", "b", "c"], "analyst ada") == 2
    assert state.save_candidates("other", ["x"], "analyst ada") == 1
    newest, first = state.candidates("homepage"), state.candidates("homepage", 1)
    assert newest is not None
    assert first is not None
    assert (newest.version, newest.strings) == (2, ("a", "b", "c"))
    assert (first.version, first.strings, first.actor) == (1, ("a", "b"), "analyst ada")
    assert [(each.version, each.size) for each in state.candidate_versions("homepage")] == [
        (2, 3),
        (1, 2),
    ]
    assert state.candidates("homepage", 3) is None


@pytest.mark.parametrize("strings", [[], ["a\nb"]])
def test_a_list_that_is_none_is_refused(state: DashboardState, strings: list[str]) -> None:
    with pytest.raises(ParamsError, match="candidate"):
        state.save_candidates("homepage", strings, "test")
    assert state.candidates("homepage") is None


def test_a_list_beside_the_definition_is_version_1(state: DashboardState, tmp_path: Path) -> None:
    file = tmp_path / "homepage.candidates.txt"
    file.write_text("a\n\nb\na\n", encoding="utf-8")
    found = state.candidates("homepage")
    assert found is not None
    assert (found.version, found.strings, found.actor) == (1, ("a", "b"), "file")
    file.write_text("changed\n", encoding="utf-8")
    assert state.save_candidates("homepage", ["c"], "test") == 2
    assert state.candidates("homepage", 1) == found


def test_strings_come_back_as_they_were(state: DashboardState) -> None:
    strings = ["=1+1", "<script>", " lead", "é\u2028x", "tab\there", "nul\x00", "\x0b\x0c\x1c"]
    state.save_candidates("homepage", strings, "test")
    found = state.candidates("homepage")
    assert found is not None
    assert list(found.strings) == strings


def test_results_are_found_by_key_and_the_newest_by_collection(state: DashboardState) -> None:
    facts = {"collection": "homepage", "detected": 3, "dimensions": []}
    state.save_result("k1", "decode", facts, b"table")
    state.save_result("k2", "decode", facts | {"detected": 4}, None)
    state.save_result("k3", "trend", facts | {"detected": 5}, None)
    one, latest = state.result("k1"), state.latest_result("homepage")
    assert one is not None
    assert latest is not None
    assert (one.table, one.meta["detected"]) == (b"table", 3)
    assert latest.key == "k2"
    state.save_result("k1", "decode", facts, None)
    again = state.latest_result("homepage")
    assert again is not None
    assert again.key == "k1"
    assert state.result("nothing") is None


def test_the_list_of_collections_takes_results_of_all_dimensions_together(
    state: DashboardState,
) -> None:
    whole = {"collection": "homepage", "detected": 3, "dimensions": []}
    state.save_result("k1", "decode", whole, None)
    state.save_result("k2", "decode", whole | {"dimensions": [["country", "NZ"]]}, None)
    assert state.latest_metas()["homepage"]["detected"] == 3
    assert len(state.latest_metas()["homepage"]["dimensions"]) == 0


def test_the_list_of_collections_takes_the_period_that_pages_show_first(
    state: DashboardState,
) -> None:
    """Not a sum of periods, nor an older period, that somebody looked at meanwhile."""
    about = {"collection": "homepage", "dimensions": []}
    for key, periods in (("k1", ["d2"]), ("k2", ["d1", "d2"]), ("k3", ["d1"])):
        state.save_result(key, "decode", about | {"periods": periods}, None)
    assert state.latest_metas()["homepage"]["periods"] == ["d2"]


@pytest.mark.slow
def test_old_results_and_jobs_are_forgotten(state: DashboardState) -> None:
    for number in range(MAX_RESULTS + 5):
        state.save_result(f"k{number}", "decode", {"collection": "homepage"}, None)
    assert state.result("k4") is None
    assert state.result("k5") is not None
    for number in range(MAX_JOBS + 5):
        state.save_job(f"{number:04}", "decode", "k", "done", {"id": number})
    assert len(state.jobs()) == MAX_JOBS


def test_a_job_is_kept_as_it_was_last(state: DashboardState) -> None:
    state.save_job("1", "decode", "k", "running", {"share": 0.5})
    state.save_job("1", "decode", "k", "done", {"share": 1.0})
    (job,) = state.jobs()
    assert (job.status, job.document) == ("done", {"share": 1.0})


def test_what_was_kept_is_there_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "dashboard.sqlite"
    first = DashboardState(path)
    first.save_candidates("homepage", ["a"], "test")
    first.address = "http://127.0.0.1:1"
    first.close()
    second = DashboardState(path)
    found = second.candidates("homepage")
    assert found is not None
    assert (found.strings, second.address) == (("a",), "http://127.0.0.1:1")
    second.close()


def test_drafts_do_not_fill_the_disk(tmp_path: Path) -> None:
    state = DashboardState(tmp_path / "dashboard.sqlite")
    for number in range(40):
        for kind in ("draft", "google", "decode"):
            state.save_result(f"{kind}-{number}", kind, {"collection": "homepage"}, b"x")
    kept = {
        kind: sum(state.result(f"{kind}-{number}") is not None for number in range(40))
        for kind in ("draft", "google", "decode")
    }
    state.close()
    assert kept == {"draft": 5, "google": 2, "decode": 40}


def test_first_lists_are_saved_at_the_start_and_a_bad_one_stops_nothing(
    state: DashboardState, tmp_path: Path
) -> None:
    (tmp_path / "bad.candidates.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "homepage.candidates.txt").write_text("a.org\nb.org\n", "utf-8")
    state.save_first_lists()
    assert state.candidate_sizes() == {"homepage": 2}
    assert state.save_candidates("homepage", ["c.org"], "me") == 2
    state.save_first_lists()  # a later start
    assert state.candidate_sizes() == {"homepage": 1}
