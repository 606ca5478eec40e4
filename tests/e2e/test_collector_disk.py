"""B3: a full disk is waited out, a broken one ends the process; nothing acknowledged is lost."""

import shutil
import subprocess
import sys
import time
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
    wait_for,
    write_collections,
)


def test_a_full_disk_is_said_within_a_second_and_waited_out_in_place(tmp_path: Path) -> None:
    with running(planted_command("sick-disk", tmp_path)) as process, client_of(process) as client:
        assert client.send(batch()).status == 204
        (tmp_path / "full").touch()
        started = time.monotonic()
        answer = client.send(batch())
        assert time.monotonic() - started < 1
        assert (answer.status, answer.code) == (507, "store-full")
        assert int(answer.headers["retry-after"]) > 0
        health = client.get("/healthz")
        assert (health.status, health.json) == (503, {"status": "disk full"})
        (tmp_path / "full").unlink()
        wait_for(lambda: client.get("/healthz").status == 200, 5)  # without any traffic
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
                started = time.monotonic()
                answer = client.send(sent)
                assert time.monotonic() - started < 1
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


def test_in_a_moment_of_quiet_the_order_of_arrival_is_gone_from_the_disk(tmp_path: Path) -> None:
    with running(planted_command("none", tmp_path)) as process, client_of(process) as client:
        log = tmp_path / "data" / "store.sqlite-wal"
        assert client.send(batch()).status == 204
        assert log.stat().st_size > 0
        wait_for(lambda: log.stat().st_size == 0, 5)
        assert client.send(batch()).status == 204
        assert process.end() == 0
    assert stored(tmp_path) == {(day(), ""): 2}
