"""Fixtures for pytest. Opt in, in your conftest.py: pytest_plugins = ["rappor.testing.fixtures"].

Each test has its own people, clock and collector, so that it passes in any order, any number of
times a day, and with DO_NOT_TRACK set where it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import pytest

from rappor.client import Client
from rappor.collection import Collection
from rappor.testing.collector import MemoryCollector
from rappor.testing.manual_clock import ManualClock

__all__ = ["rappor_client", "rappor_clock", "rappor_collector"]


@pytest.fixture
def rappor_clock() -> ManualClock:
    """The clock of the other fixtures: noon of today until the test moves it."""
    return ManualClock()


@pytest.fixture
def rappor_collector(
    monkeypatch: pytest.MonkeyPatch, rappor_clock: ManualClock
) -> Iterator[Callable[..., MemoryCollector]]:
    """A function that starts a collector in memory.

    It takes the collections ("homepage.toml"), and the key as `ingest_key`. DO_NOT_TRACK is unset
    for the test: the people in it are made up. Set it with monkeypatch to test an application
    without consent.
    """
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    started: list[MemoryCollector] = []

    def start(
        *collections: Collection | str | PathLike[str], ingest_key: str | None = None
    ) -> MemoryCollector:
        collector = MemoryCollector(collections, ingest_key=ingest_key, today=rappor_clock.today)
        started.append(collector)
        return collector

    yield start
    for collector in started:
        collector.close()


@pytest.fixture
def rappor_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, rappor_clock: ManualClock
) -> Iterator[Callable[..., Client]]:
    """A function that opens a client.

    It takes the collections ("homepage.toml"), and the options of `Client.open` such as
    `upload_to`. Each call is another person, with a new directory, who consents. The clients are
    closed at the end of the test.
    """
    monkeypatch.delenv("DO_NOT_TRACK", raising=False)
    opened: list[Client] = []

    def start(*collections: Collection | str | PathLike[str], **options: Any) -> Client:
        directory = tmp_path / "rappor-people" / str(len(opened))
        given: dict[str, Any] = {"consent": True, "clock": rappor_clock, **options}
        opened.append(Client.open(directory, collections, **given))
        return opened[-1]

    yield start
    for client in opened:
        client.close()
