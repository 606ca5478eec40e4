"""The stores of these tests are in memory, and have no clock: a busy disk changes nothing."""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rappor.store import retention_rules
from rappor.store.sqlite import connection, recent_tokens, session
from support.postgres import Server, a_server

MEMORY = Path("/dev/shm")
ROOM = 2**28  # bytes that must be free there
NEVER_SECONDS = 1e9
WRITERS_WAIT_MS = 300_000
ANY_DAYS = 10**6

NewFolder = Callable[[str], Path]


@pytest.fixture(scope="session")
def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewFolder]:
    """Makes folders in memory, or where pytest has them if the system has no such place.

    Stores sync every commit. On a disk that is most of the time of these tests, and nothing in them
    depends on it: `support.faulty_disk` sees what is synced, and what a killed process has written
    is read from the page cache anyway. The stores of tests/e2e are on the disk.
    """
    numbers = itertools.count()
    in_memory = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    parent = MEMORY if in_memory else tmp_path_factory.mktemp("stores")
    with tempfile.TemporaryDirectory(prefix="rappor-tests-", dir=parent) as root:

        def make(name: str) -> Path:
            folder = Path(root) / f"{name}-{next(numbers)}"
            folder.mkdir()
            return folder

        yield make


@pytest.fixture
def tmp_path(new_folder: NewFolder) -> Iterator[Path]:
    """A folder for one test."""
    folder = new_folder("test")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module", autouse=True)
def no_clock() -> Iterator[None]:
    """Nothing happens because a minute has passed, nobody gives up waiting for another writer."""
    settings = connection._SETTINGS | {"busy_timeout": (str(WRITERS_WAIT_MS), WRITERS_WAIT_MS)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "LOG_SECONDS", NEVER_SECONDS)
        patch.setattr(recent_tokens, "SECONDS", NEVER_SECONDS)
        patch.setattr(connection, "_SETTINGS", settings)
        # Tests say what day it is: the server's clock does not.
        patch.setattr(retention_rules, "MAX_DAYS_AHEAD", ANY_DAYS)
        for module in (connection, session):
            patch.setattr(module, "BUSY_MS", WRITERS_WAIT_MS)
        yield


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server for all tests of this process."""
    with a_server() as server:
        yield server
