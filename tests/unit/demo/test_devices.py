"""Devices of the demo: a refused request is waited for, a server that has ended is not."""

from typing import Any

import pytest

from rappor.demo import DemoError, devices
from rappor.demo.devices import stored


class Refused:
    """A client whose reports are stored by its n-th flush."""

    def __init__(self, times: float) -> None:
        self.left = times

    def flush(self, _timeout: float) -> bool:
        self.left -= 1
        return self.left < 0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_PAUSE_SECONDS", 0.0)


def test_a_device_whose_first_requests_are_refused_is_waited_for() -> None:
    checked: list[int] = []
    client: Any = Refused(3)
    assert stored(client, lambda: checked.append(1))
    assert len(checked) == 3


def test_waiting_has_an_end() -> None:
    client: Any = Refused(float("inf"))
    assert not stored(client, lambda: None, patience=0.0)


def test_nobody_waits_for_a_server_that_has_ended() -> None:
    def ended() -> None:
        raise DemoError("the server ended")

    client: Any = Refused(float("inf"))
    with pytest.raises(DemoError, match="the server ended"):
        stored(client, ended)
