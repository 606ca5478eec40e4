"""A data folder that is taken away, made read-only or claimed twice: nothing is lost in silence."""

import shutil
import signal
import subprocess
import sys
from contextlib import closing
from http.client import HTTPException
from pathlib import Path

import pytest

from rappor.store import open_store
from support.collecting import (
    Client,
    Process,
    batch,
    client_of,
    collect_command,
    collector,
    day,
    running,
    stored,
)
from support.command import rappor
from support.waiting import wait_for


def is_red(port: int) -> bool:
    """Whether the health check says so, or nobody is there any more."""
    client = Client(port)
    try:
        return client.get("/healthz").status == 503
    except (OSError, HTTPException):
        return True
    finally:
        client.close()


def send(client: Client) -> int:
    """The answer's status; 0 where the collector has gone."""
    try:
        return client.send(batch()).status
    except (OSError, HTTPException):
        return 0


def test_no_batch_is_acknowledged_once_the_folder_is_deleted(tmp_path: Path) -> None:
    with collector(tmp_path) as process:
        with client_of(process) as client:
            for _ in range(50):
                assert client.send(batch()).status == 204
            shutil.rmtree(tmp_path / "data")
            answers = {send(client) for _ in range(50)}
            assert answers <= {0, 503}
        assert process.wait() == 1
        assert "writer-died" in process.events()
    assert not (tmp_path / "data" / "store.sqlite").exists()


@pytest.mark.parametrize("name", ["store.sqlite", "store.sqlite-wal"])
def test_health_turns_red_without_traffic_when_a_file_is_deleted(tmp_path: Path, name: str) -> None:
    with collector(tmp_path) as process:
        with client_of(process) as client:
            assert client.send(batch()).status == 204
            assert client.get("/healthz").status == 200
        (tmp_path / "data" / name).unlink()
        wait_for(lambda: is_red(process.port), "a red health check")
        assert process.wait() == 1


def test_serve_begins_anew_where_the_folder_was_deleted(tmp_path: Path) -> None:
    with running(collect_command(tmp_path, verb="serve")) as process:
        with client_of(process) as client:
            assert client.send(batch()).status == 204
        shutil.rmtree(tmp_path / "data")
        process.wait_for_event("listening", 2)
        with client_of(process) as client:
            assert client.send(batch()).status == 204
        assert process.end() == 0, process.text
    assert stored(tmp_path) == {(day(), ""): 1}


def test_serve_does_not_begin_anew_next_to_what_a_store_has_left(tmp_path: Path) -> None:
    with running(collect_command(tmp_path, verb="serve")) as process:
        with client_of(process) as client:
            assert client.send(batch()).status == 204
        (tmp_path / "data" / "store.sqlite").unlink()
        wait_for(lambda: "store was deleted or moved" in "".join(process.text))
        assert process.events().count("listening") == 1
        process.end()


@pytest.mark.parametrize("verb", ["collect", pytest.param("serve", marks=pytest.mark.long)])
@pytest.mark.parametrize("other", ["collect", "serve"])
def test_a_second_collector_is_refused_and_the_first_goes_on(
    tmp_path: Path, verb: str, other: str
) -> None:
    with running(collect_command(tmp_path, verb=verb)) as process, client_of(process) as client:
        with closing(Process(collect_command(tmp_path, verb=other))) as second:
            assert second.wait() == 1
            assert "another collector" in "".join(second.text)
        assert rappor("status", "--data", tmp_path / "data").returncode == 0
        assert client.send(batch()).status == 204
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 1}


def test_a_killed_collector_leaves_the_folder_to_the_next(tmp_path: Path) -> None:
    for number in range(1, 3):
        with collector(tmp_path) as process, client_of(process) as client:
            assert client.send(batch()).status == 204
            process.end(signal.SIGKILL)
        assert stored(tmp_path) == {(day(), ""): number}


# A file system of its own, to be turned read-only under the collector. Linux refuses that while
# files are open for writing; where it does not, as after a disk error, writes fail.
READ_ONLY = """
import os, subprocess, sys
data = sys.argv[1]
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", data], check=True)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def test_an_unwritable_folder_acknowledges_nothing_that_is_not_stored(tmp_path: Path) -> None:
    """The folder's own mount is made read-only, or, where that is refused, its mode is changed."""
    data = tmp_path / "data"
    data.mkdir()
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    mounting = [*alone, sys.executable, "-c", READ_ONLY, data]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mounting, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no file system can be mounted here")
    with running([*mounting, *collect_command(tmp_path)]) as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        inside = Path(f"/proc/{process.process.pid}/root{data}")
        enter = ["nsenter", "--user", "--mount", "--target", str(process.process.pid)]
        remount = ["mount", "-o", "remount,ro", str(data)]
        done = subprocess.run([*enter, *remount], capture_output=True, check=False)
        inside.chmod(0o500)
        acknowledged = 1
        for _ in range(20):
            answer = send(client)
            assert answer in (0, 204, 503)
            acknowledged += answer == 204
        if done.returncode == 0:
            assert acknowledged == 1
            assert is_red(process.port)
            assert process.wait() == 1
        shutil.copytree(inside, tmp_path / "copy" / "data")
        assert stored(tmp_path / "copy") == {(day(), ""): acknowledged}


def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    open_store(data).close()
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    bind = (
        "import os, subprocess, sys; d = sys.argv[1]; "
        "subprocess.run(['mount', '--bind', d, d], check=True); "
        "subprocess.run(['mount', '-o', 'remount,bind,ro', d], check=True); "
        "os.execvp(sys.argv[2], sys.argv[2:])"
    )
    mounting = [*alone, sys.executable, "-c", bind, data]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*mounting, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("no file system can be mounted here")
    with closing(Process([*mounting, *collect_command(tmp_path)])) as process:
        assert process.wait() == 1
        assert "listening" not in process.events()
        assert "ead-only" in "".join(process.text)
