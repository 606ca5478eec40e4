"""A client's directory, and its time limits out of the way: a busy machine changes nothing."""

from pathlib import Path

import pytest

from support.client import be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch.setattr)


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a client may put its files."""
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    return tmp_path / "client"
