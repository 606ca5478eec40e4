"""A client's own time limits, out of the way: no outcome depends on how busy the machine is."""

import pytest

from support.client import be_patient


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch.setattr)
