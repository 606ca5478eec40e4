"""An empty data folder, and a clock that only goes when it is told to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rappor.dashboard.context import Context
from support.dashboard import Sample
from support.dashboard_context import Clock, made_context


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def context(tmp_path: Path, clock: Clock) -> Iterator[Context]:
    """A context over nothing; files about pages with numbers make their own."""
    sample = Sample(tmp_path)
    sample.data.mkdir()
    sample.definitions.mkdir()
    with made_context(tmp_path, sample=sample, now=clock) as context:
        yield context
