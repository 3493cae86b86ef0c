"""Programs of Spark's, started from the PySpark package on this machine's own addresses."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from deltaworks.config.cache import cache_dir
from deltaworks.engines.spark.java.find import find_java, find_spark_home

LOOPBACK = "127.0.0.1"
QUICK_START = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"


@contextmanager
def spark_program(
    folder: Path, program: str, *arguments: str, memory: str = "256m"
) -> Iterator[subprocess.Popen[bytes]]:
    """A script of PySpark's `bin`, its log in a folder; it ends with the block, with all below."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", str(find_spark_home({}) / "bin" / program), *arguments],
            env={**_environment(folder), "SPARK_DAEMON_MEMORY": memory},
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and what it started, at once."""
    with suppress(psutil.NoSuchProcess):
        main = psutil.Process(process.pid)
        for one in [main, *main.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                one.kill()
    process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def last_words(folder: Path) -> str:
    """The ends of all logs, for whoever must find out why something did not start."""
    logs = sorted(folder.rglob("log"))
    return "\n".join(path.read_text(errors="replace")[-1500:] for path in logs)


def _environment(folder: Path) -> dict[str, str]:
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("SPARK_")}
    return inherited | {
        "JAVA_HOME": str(find_java(os.environ, cache=cache_dir(os.environ)).home),
        "SPARK_HOME": str(find_spark_home({})),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_CONF_DIR": str(folder),
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_WORKER_DIR": str(folder / "work"),
        "PYSPARK_PYTHON": sys.executable,
    }
