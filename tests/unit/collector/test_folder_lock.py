"""A data folder has one collector; a lock says so, and dies with its process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rappor.collector.folder_lock import NAME, CollectorLock, is_locked
from rappor.errors import StoreError

HOLDER = """
import sys, time
from rappor.collector.folder_lock import CollectorLock
claim = CollectorLock(sys.argv[1])
print("held", flush=True)
time.sleep(3600)
"""


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    first = CollectorLock(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    assert (tmp_path / "data" / NAME).stat().st_mode & 0o077 == 0
    with pytest.raises(StoreError, match="another collector"):
        CollectorLock(tmp_path / "data")
    CollectorLock(tmp_path / "other").close()
    assert is_locked(tmp_path / "data")
    first.close()
    assert not is_locked(tmp_path / "data")
    assert not is_locked(tmp_path / "none")
    CollectorLock(tmp_path / "data").close()


@pytest.mark.slow
def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(StoreError, match="another collector"):
            CollectorLock(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(300)
    CollectorLock(tmp_path).close()
