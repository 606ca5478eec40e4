"""Lists of candidates in a data folder: those that the dashboard saved."""

from contextlib import closing
from pathlib import Path

import pytest

from rappor.dashboard.state import DashboardState
from rappor.decoding.saved_candidates import STATE_FILE, saved_candidates
from rappor.errors import StoreError


def test_the_newest_list_is_read_while_the_dashboard_runs_and_after(tmp_path: Path) -> None:
    with closing(DashboardState(tmp_path / STATE_FILE)) as state:
        state.save_candidates("homepage", ["a"], "me")
        state.save_candidates("homepage", ["a", "b"], "me")
        during = saved_candidates(tmp_path, "homepage")
    files = sorted(tmp_path.iterdir())
    after = saved_candidates(tmp_path, "homepage")
    assert during == after
    assert after is not None
    assert (after.version, after.strings) == (2, ("a", "b"))
    assert sorted(tmp_path.iterdir()) == files  # reading leaves no file behind
    first = saved_candidates(tmp_path, "homepage", 1)
    assert first is not None
    assert first.strings == ("a",)
    assert saved_candidates(tmp_path, "homepage", 3) is None
    assert saved_candidates(tmp_path, "theme") is None


def test_a_folder_without_a_dashboard_has_no_lists(tmp_path: Path) -> None:
    assert saved_candidates(tmp_path, "homepage") is None
    assert not list(tmp_path.iterdir())


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_bytes(b"no database" * 100)
    with pytest.raises(StoreError, match=r"dashboard\.sqlite: its lists of candidates cannot be"):
        saved_candidates(tmp_path, "homepage")
