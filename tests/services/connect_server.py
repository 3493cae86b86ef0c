"""A real Spark Connect server with Delta."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from deltaworks.config.cache import cache_dir
from deltaworks.engines.spark.jars.resolve import jar_files
from deltaworks.engines.spark.session.conf import DELTA_EXTENSION
from deltaworks.engines.spark.session.required_conf import DELTA_CATALOG
from deltaworks.engines.spark.versions import CORE_JARS
from tests.services.spark_process import (
    LOOPBACK,
    QUICK_START,
    free_port,
    last_words,
    spark_program,
)

_START_SECONDS = 120
_CLIENT = ("grpc", "grpc_status", "zstandard")
_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass(frozen=True)
class ConnectServer:
    """Where the server listens, and its process."""

    url: str
    process: subprocess.Popen[bytes]


def missing_client() -> list[str]:
    """Packages of the client that are not installed."""
    return [name for name in _CLIENT if find_spec(name) is None]


@contextmanager
def connect_server(folder: Path) -> Iterator[ConnectServer]:
    """A server that ends with the block, whatever happens in it."""
    port = free_port()
    jars = jar_files(CORE_JARS, cache=cache_dir(os.environ))
    conf = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.extensions": DELTA_EXTENSION,
        "spark.sql.catalog.spark_catalog": DELTA_CATALOG,
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.driver.extraJavaOptions": QUICK_START,
        "spark.driver.memory": "900m",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.ui.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    said = [part for key, value in conf.items() for part in ("--conf", f"{key}={value}")]
    words = ["--master", "local[2]", "--class", _CLASS, *said, "spark-internal"]
    with spark_program(folder, "spark-submit", *words, memory="900m") as process:
        _wait_until_ready(port, process, folder)
        yield ConnectServer(f"sc://{LOOPBACK}:{port}", process)


def _wait_until_ready(port: int, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"the Spark Connect server does not start\n{last_words(folder)}")
        time.sleep(0.5)
