"""An empty data folder, and a clock that only goes when it is told to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.dashboard.context import Desk
from support.dashboard import Sample
from support.dashboard_desk import Clock, made_desk


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[Desk]:
    """A desk over nothing; files about pages with numbers make their own."""
    sample = Sample(tmp_path)
    sample.data.mkdir()
    sample.definitions.mkdir()
    with made_desk(tmp_path, sample=sample, now=clock) as desk:
        yield desk
