"""Without randomness: nothing is reported or sent, no thread ends, and all goes on afterwards."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client, workers
from rappor.client.randomness import random_bytes, shuffled, uniform
from rappor.client.recorder import Recorder
from rappor.client.transport import Answer
from rappor.errors import EntropyError
from support.client import LIMIT, FakeClock, FakeTransport, Setting, batch, homepage
from support.waiting import wait_for


def fail_with(error: Exception) -> Callable[[int], bytes]:
    def urandom(_count: int) -> bytes:
        raise error

    return urandom


NONE = [OSError(38, "no getrandom"), NotImplementedError("no source of randomness")]


@pytest.mark.parametrize("error", NONE, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("draw", [lambda: random_bytes(1), uniform, lambda: shuffled(["a"])])
def test_no_randomness_is_an_error_of_its_own(
    monkeypatch: pytest.MonkeyPatch, error: Exception, draw: Callable[[], object]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "urandom", fail_with(error))
        with pytest.raises(EntropyError):
            draw()


@pytest.mark.parametrize("error", NONE, ids=lambda error: type(error).__name__)
def test_a_moment_without_randomness_is_told_and_passes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(workers, "_PAUSE", 0.01)
    collector, clock = FakeTransport([OSError("down")]), FakeClock()
    given: dict[str, Any] = {"consent": True, "clock": clock, "transport": collector}
    with Client.open(tmp_path, [homepage()], jitter=0, **given) as client:
        client.report("homepage", "a.org")
        assert not client.flush(LIMIT)  # it waits
        with monkeypatch.context() as patched:
            patched.setattr(os, "urandom", fail_with(error))
            clock.forward(1)
            assert not client.flush(LIMIT)
            status = client.status()
            assert (status.state, status.problem) == ("stopped", "no-entropy")
            assert len(collector.bodies) == 1
        wait_for(lambda: client.status().state == "on", "randomness")
        wait_for(lambda: len(collector.bodies) == 2, "the upload")
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
    assert len(collector.bodies) == 3


def test_without_randomness_nothing_is_charged_and_the_next_call_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "_PAUSE", 0.01)
    monkeypatch.setattr(workers, "TICK", 0.01)
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        with monkeypatch.context() as patched:
            patched.setattr(os, "urandom", fail_with(NONE[0]))
            client.report("homepage", "a.org")
            assert not client.flush(LIMIT)
            assert client.status().problem == "no-entropy"
            assert client.status().epsilon == 0
        wait_for(lambda: client.status().state == "on", "randomness")  # without a further call
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        assert client.status().calls["made"] == 1


def test_a_person_opts_out_without_randomness(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        monkeypatch.setattr(os, "urandom", fail_with(NONE[1]))
        assert client.opt_out()
        assert client.status().waiting == 0


def test_an_answer_is_obeyed_without_randomness(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting()

    class Last(FakeTransport):
        def post(self, body: bytes, timeout: float) -> Answer:
            monkeypatch.setattr(os, "urandom", fail_with(NONE[0]))
            return Answer(503, "overloaded", 1000.0)

    setting.sender._transport = Last()
    setting.outbox.put(1, batch())
    assert not setting.send()
    assert setting.sender.waits() >= 999


class Odd(BaseException):
    """Not even an Exception."""


@pytest.mark.parametrize("error", [KeyError, MemoryError, SystemExit, KeyboardInterrupt, Odd])
def test_nothing_ends_the_thread_that_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    monkeypatch.setattr(workers, "_PAUSE", 0.01)

    class Broken(FakeTransport):
        def post(self, body: bytes, timeout: float) -> Answer:
            if not self.bodies:
                self.bodies.append(body)
                raise error
            return super().post(body, timeout)

    collector, clock = Broken(), FakeClock()
    given: dict[str, Any] = {"consent": True, "clock": clock, "transport": collector}
    with Client.open(tmp_path, [homepage()], jitter=0, **given) as client:
        client.report("homepage", "a.org")
        sender = client._sender
        assert sender is not None
        wait_for(
            lambda: sender.waits() > 0 or len(collector.bodies) == 2, "the end of the first attempt"
        )
        clock.forward(0.5)
        wait_for(lambda: client.flush(LIMIT), "an upload")
        assert client.status().state == "on"
    assert len(collector.bodies) == 2


@pytest.mark.parametrize("error", [KeyError, MemoryError, SystemExit, KeyboardInterrupt, Odd])
def test_nothing_ends_the_thread_that_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    real, failed = Recorder._open, []

    def broken(self: Recorder) -> Any:
        if not failed:
            failed.append(True)
            raise error
        return real(self)

    monkeypatch.setattr(Recorder, "_open", broken)
    with Client.open(tmp_path, [homepage()], consent=True, clock=FakeClock()) as client:
        client.report("homepage", "a.org")
        wait_for(lambda: client.status().problem == "internal", "the failure")
        client.report("homepage", "a.org")
        assert client.flush(LIMIT)
        assert client.status().calls["made"] == 1
        assert client.status().state == "on"
