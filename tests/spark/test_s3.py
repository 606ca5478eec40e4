"""A lake on a server that speaks S3, with uploads that are cut: no half file is ever read."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from pyarrow import fs

from rappor.aggregate.lake import LakePlace, compact, count_lake, seal, verify
from rappor.errors import StoreError
from rappor.host import LOOPBACK
from rappor.store import open_store
from support.cutting_proxy import CuttingProxy
from support.lakes import CLOSED, TODAY, keeping, numbers, stored
from support.ports import held_port
from support.spark_cluster import SparkCluster, run_rappor
from support.waiting import wait_for

pytestmark = pytest.mark.long
BUCKET = "telemetry"
MULTIPART = 12 * 2**20  # bytes: more than the largest part of an upload
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",  # of a server that asks for none
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "2",
    "AWS_RETRY_MODE": "standard",
}
CELLS = {(CLOSED, "NZ"): 3000, (CLOSED, "CH"): 400, ("2026-10-19", "NZ"): 2000}


class CuttingUploads(CuttingProxy):
    """Cuts every connection after some bytes to the server, while there is a limit."""

    limit: int | None = None

    def _forward(self, source: socket.socket, sink: socket.socket, to_server: bool) -> None:
        left = self.limit if to_server else None
        if left is None:
            super()._forward(source, sink, to_server)
            return
        try:
            while data := source.recv(65536):
                sink.sendall(data[:left])
                left -= min(left, len(data))
                if not left:
                    self.cuts += 1
                    break
        except OSError:
            pass
        self._close(source, sink)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server with one bucket."""
    log = tmp_path_factory.mktemp("s3") / "server.log"
    with held_port() as port, pytest.MonkeyPatch.context() as patch, log.open("wb") as file:
        for name, value in CREDENTIALS.items():
            patch.setenv(name, value)
        command = [sys.executable, "-m", "moto.server", "-H", LOOPBACK, "-p", str(port)]
        process = subprocess.Popen(command, stdout=file, stderr=file)
        try:
            wait_for(lambda: listens(port), "an S3 server", process=process)
            system, _ = fs.FileSystem.from_uri(f"{address(port)}&allow_bucket_creation=true")
            system.create_dir(BUCKET)
            yield port
        finally:
            process.kill()
            process.wait()


def listens(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def address(port: int, folder: str = "") -> str:
    options = f"endpoint_override={LOOPBACK}:{port}&scheme=http&region=us-east-1"
    return f"s3://{BUCKET}{folder}?{options}"


@contextmanager
def cutting(port: int) -> Iterator[CuttingUploads]:
    proxy = CuttingUploads(port)
    try:
        yield proxy
    finally:
        proxy.close()


def test_uploads_that_are_cut_leave_nothing_that_is_read(server: int, tmp_path: Path) -> None:
    data, place = keeping(tmp_path / "data", CELLS), LakePlace(address(server, "/cut"))
    expected = stored(data)
    cut = 0
    for limit in (1, 300, 1_000, 2_500, 5_000, 20_000, 30_000):
        with cutting(server) as proxy, closing(open_store(data)) as store:
            proxy.limit = limit
            with suppress(StoreError):  # unless the client's second attempt helps
                seal(store, LakePlace(address(proxy.port, "/cut")), TODAY)
            cut += proxy.cuts
        if place.list("_manifest"):
            found = count_lake(place)
            assert found.faults == ()
            assert all(cell in expected for cell in numbers(found.cells))
    assert cut >= 7
    with closing(open_store(data)) as store:
        seal(store, place, TODAY)
    assert numbers(count_lake(place).cells) == expected
    codes = {fault.code for fault in verify(place).faults}
    assert codes <= {"unlisted"}  # whole files whose record was cut: named, and never used
    compact(place, TODAY)
    assert numbers(count_lake(place).cells) == expected


def test_a_large_upload_that_is_cut_is_no_object(server: int) -> None:
    place, data = LakePlace(address(server, "/large")), os.urandom(MULTIPART)
    for limit in (1_000, 6 * 2**20):
        with cutting(server) as proxy:
            proxy.limit = limit
            with pytest.raises(StoreError):
                LakePlace(address(proxy.port, "/large")).write("a.parquet", data)
            assert proxy.cuts
        assert place.list() == {}
    place.write("a.parquet", data)
    assert place.read("a.parquet") == data


def test_a_lake_on_s3_is_counted_by_command_and_spark(
    server: int, cluster: SparkCluster, tmp_path: Path
) -> None:
    data, lake = keeping(tmp_path / "data", CELLS), address(server, "/counted")
    with closing(open_store(data)) as store:
        assert seal(store, LakePlace(lake), TODAY).reports == 4 * 5400
    outputs = [tmp_path / "here.csv", tmp_path / "there.csv"]
    engines: list[list[str]] = [[], ["--engine", "spark", "--master", "local[2]"]]
    for output, engine in zip(outputs, engines, strict=True):
        done = run_rappor(cluster, "aggregate", lake, *engine, "--output", output, **CREDENTIALS)
        assert done.returncode == 0, done.stderr
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


def test_a_server_that_is_down_is_one_sentence(cluster: SparkCluster) -> None:
    with held_port() as port:
        done = run_rappor(cluster, "lake", "ls", address(port, "/x"), **CREDENTIALS)
    assert done.returncode == 1, done.stderr
    assert "check the address and the credentials" in done.stderr
    assert "Traceback" not in done.stderr
