"""A real Spark standalone cluster of one machine: a master and two workers."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tests.services.spark_process import (
    LOOPBACK,
    QUICK_START,
    free_port,
    kill,
    last_words,
    spark_program,
)

_START_SECONDS = 120
_DEPLOY = "org.apache.spark.deploy"


@dataclass(frozen=True)
class SparkCluster:
    """Where the master listens, and the processes of its workers."""

    url: str
    page: str
    workers: tuple[subprocess.Popen[bytes], ...]

    @property
    def conf(self) -> dict[str, str]:
        """Settings that fit small workers on one machine."""
        return {
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": QUICK_START,
            "spark.driver.extraJavaOptions": QUICK_START,
            "spark.driver.host": LOOPBACK,
            "spark.driver.bindAddress": LOOPBACK,
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
        }

    def alive(self) -> int:
        """How many workers the master counts on."""
        return int(self.state()["aliveworkers"])

    def state(self) -> dict[str, Any]:
        """What the master says about itself."""
        with urllib.request.urlopen(f"{self.page}/json/", timeout=10) as reply:  # noqa: S310
            return dict(json.load(reply))

    def kill(self, number: int) -> None:
        """Kill a worker and its executors at once, as a machine does that loses its power."""
        kill(self.workers[number])

    def works_for(self, number: int, pids: set[int]) -> bool:
        """Whether one of these processes belongs to a worker."""
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(self.workers[number].pid).children(recursive=True)
            return bool(pids & {process.pid for process in below})
        return False


@contextmanager
def spark_cluster(folder: Path, *, workers: int = 2) -> Iterator[SparkCluster]:
    """A master and its workers; they end with the block, whatever happens in it."""
    port, page = free_port(), free_port()
    place = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page))
    size = ("--host", LOOPBACK, "--webui-port", "0", "--cores", "1", "--memory", "1g")
    url = f"spark://{LOOPBACK}:{port}"
    with ExitStack() as stack:

        def start(name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
            program = spark_program(folder / name, "spark-class", f"{_DEPLOY}.{kind}", *arguments)
            return stack.enter_context(program)

        start("master", "master.Master", *place)
        started = [start(f"worker-{i}", "worker.Worker", *size, url) for i in range(workers)]
        cluster = SparkCluster(url, f"http://{LOOPBACK}:{page}", tuple(started))
        _wait_until_ready(cluster, folder)
        yield cluster


def _wait_until_ready(cluster: SparkCluster, folder: Path) -> None:
    """Ready is a master that counts on all of its workers."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with suppress(OSError, ValueError):
            if cluster.alive() == len(cluster.workers):
                return
        ended = [process for process in cluster.workers if process.poll() is not None]
        if ended or time.monotonic() > deadline:
            raise RuntimeError(f"the Spark cluster does not start\n{last_words(folder)}")
        time.sleep(0.5)
