"""What the tests of the collector's modules share."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def logging_restored() -> Iterator[None]:
    """Undo `log.set_up`, which is meant for a process of its own."""
    root = logging.getLogger()
    before = (root.handlers[:], root.level, logging.raiseExceptions)
    yield
    root.handlers[:], level, logging.raiseExceptions = before
    root.setLevel(level)
    logging.captureWarnings(False)
