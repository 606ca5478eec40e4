"""A full disk is waited out, a broken one ends the process; nothing acknowledged is lost."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rappor import Params, Report
from rappor.collection import Collection
from support.collecting import (
    batch,
    client_of,
    collect_command,
    day,
    planted_command,
    running,
    stored,
    write_collections,
)
from support.waiting import wait_for


def test_a_full_disk_is_said_and_waited_out_in_place(tmp_path: Path) -> None:
    with running(planted_command("sick-disk", tmp_path)) as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        (tmp_path / "full").touch()
        answer = client.send(batch())
        assert (answer.status, answer.code) == (507, "store-full")
        assert int(answer.headers["retry-after"]) > 0
        health = client.get("/healthz")
        assert (health.status, health.json) == (503, {"status": "disk full"})
        (tmp_path / "full").unlink()
        wait_for(lambda: client.get("/healthz").status == 200)  # without any traffic
        assert client.send(batch()).status == 204
        assert process.events().count("disk-full") == 1
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 2}


def test_a_broken_disk_ends_the_process_and_a_restart_goes_on(tmp_path: Path) -> None:
    for expected in (2, 4):  # reports after each life
        with running(planted_command("sick-disk", tmp_path)) as process:
            with client_of(process) as client:
                sent = batch()
                assert client.send(batch()).status == 204
                assert client.send(batch()).status == 204
                (tmp_path / "broken").touch()
                answer = client.send(sent)
                assert (answer.status, answer.code) == (503, "store-failed")
            assert process.wait() == 1
            assert "writer-died" in process.events()
        assert stored(tmp_path) == {(day(), ""): expected}


MOUNT = """
import os, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", sys.argv[1]], check=True)
os.execvp(sys.argv[2], sys.argv[2:])
"""


def test_a_disk_that_is_really_full_loses_nothing_acknowledged(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    # A file system of 3 MiB of its own, which only this process sees.
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if (
        shutil.which("unshare") is None
        or subprocess.run(
            [*alone, sys.executable, "-c", MOUNT, data, "true"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("no file system can be mounted here")
    wide = Params(k=4096, h=2, m=256, f=0.5, p=0.5, q=0.75)
    write_collections(tmp_path, Collection("homepage", 1, wide))
    command = [*alone, sys.executable, "-c", MOUNT, data, *collect_command(tmp_path)]
    with running(command) as process, client_of(process) as client:
        acknowledged, answer = 0, None
        for cohort in range(256):  # 32 KiB of counts each
            answer = client.send(batch([Report(cohort, 1)], k=wide.k))
            if answer.status != 204:
                break
            acknowledged += 1
        assert answer is not None
        assert (answer.status, answer.code) == (507, "store-full")
        assert client.get("/healthz").status == 503
        assert acknowledged > 5
        inside = f"/proc/{process.process.pid}/root{data}"
        copy = tmp_path / "copy"
        shutil.copytree(inside, copy / "data")
        assert stored(copy) == {(day(), ""): acknowledged}


LIMITED = (
    "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); "
    "os.execv(sys.argv[2], sys.argv[2:])"
)


@pytest.mark.long
def test_a_disk_that_fails_is_outlived_by_serve(tmp_path: Path) -> None:
    """The whole path with real processes: a write that fails (EFBIG is no full disk), 503, an
    exit, a restart, recovery; everything acknowledged is there, once."""
    wide = Params(k=4096, h=1, m=1, f=0.5, p=0.5, q=0.75)
    write_collections(tmp_path, Collection("homepage", 1, wide))
    limit = 2**20  # bytes of the write-ahead log
    command = collect_command(tmp_path, verb="serve")
    made = batch([Report(0, 1)], k=wide.k)
    with running([sys.executable, "-c", LIMITED, str(limit), *command]) as process:
        acknowledged = 0  # the number that the log has room for
        with client_of(process) as client:
            while (answer := client.send(made)).status == 204:
                acknowledged += 1
                made = batch([Report(0, 1)], k=wide.k)
        assert (answer.status, answer.code) == (503, "store-failed")
        assert acknowledged > 5
        process.wait_for_event("listening", 2)
        with client_of(process) as client:
            for _ in range(more := acknowledged // 2):  # the one that failed is the first
                assert client.send(made).status == 204
                made = batch([Report(0, 1)], k=wide.k)
        assert "writer-died" in process.events()
        assert process.end() == 0, process.text
    assert stored(tmp_path) == {(day(), ""): acknowledged + more}


def test_in_a_moment_of_quiet_the_order_of_arrival_is_gone_from_the_disk(tmp_path: Path) -> None:
    with running(planted_command("none", tmp_path)) as process, client_of(process) as client:
        log = tmp_path / "data" / "store.sqlite-wal"
        assert client.send(batch()).status == 204
        assert log.stat().st_size > 0
        wait_for(lambda: log.stat().st_size == 0)
        assert client.send(batch()).status == 204
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 2}
