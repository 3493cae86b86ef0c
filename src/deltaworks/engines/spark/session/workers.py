"""The workers of a cluster: what they are sent, and what they say about themselves."""

from __future__ import annotations

import threading
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from deltaworks.engines.spark.errors.translate import translate
from deltaworks.engines.spark.session.jobs import cancel_jobs, mark_jobs, unmark_jobs
from deltaworks.errors import EngineError, StorageError
from deltaworks.storage.tcp_check import reach
from deltaworks.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_TAG = "deltaworks-workers"
_TASKS_EACH = 4
_STANDALONE, _PORT = "spark://", 7077


@dataclass(frozen=True)
class WorkerReport:
    """One machine of the cluster, as its Python sees it."""

    host: str
    python: str
    sees: bool
    """Whether a file that the driver wrote is there."""


def reach_master(master: str) -> None:
    """Fail at once where no master of a standalone cluster answers; Spark tries for a minute."""
    if not master.startswith(_STANDALONE):
        return
    *others, last = (
        urlsplit(f"//{place}") for place in master.removeprefix(_STANDALONE).split(",")
    )
    for address in others:
        with suppress(StorageError):
            reach(address.hostname or "", address.port or _PORT)
            return
    reach(last.hostname or "", last.port or _PORT)


def ship_package(spark: SparkSession, folder: Path) -> None:
    """Send this package to the workers, so that functions of the user's can import it there."""
    archive = folder / f"deltaworks-{__version__}.zip"
    package = Path(__file__).parents[3]
    with zipfile.ZipFile(archive, "w") as packed:
        for path in sorted(package.rglob("*.py")):
            packed.write(path, path.relative_to(package.parent))
    spark.sparkContext.addPyFile(str(archive))


def ask_workers(spark: SparkSession, file: str, *, wait_seconds: float) -> tuple[WorkerReport, ...]:
    """Who works for this session; a cluster that gives it nobody is an error after a while."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    late = threading.Event()

    def give_up() -> None:
        late.set()
        cancel_jobs(spark, _TAG)

    timer = threading.Timer(wait_seconds, give_up)
    mark_jobs(spark, _TAG)
    timer.start()
    try:
        answers = _asked(spark, file)
    except (Py4JJavaError, PySparkException) as error:
        if late.is_set():
            raise EngineError(
                f"no worker took a task within {wait_seconds:g} s",
                hint="see that workers are free, or ask for less: "
                "spark.executor.memory, spark.executor.cores, spark.cores.max",
            ) from error
        raise translate(error) from error
    finally:
        timer.cancel()
        unmark_jobs(spark, _TAG)
    return tuple(sorted({WorkerReport(*answer) for answer in answers}, key=lambda one: one.host))


def _asked(spark: SparkSession, file: str) -> list[tuple[str, str, bool]]:
    def describe(_: Any) -> Iterator[tuple[str, str, bool]]:  # pragma: no cover - in a worker
        # sent by value: nothing of this package may be needed over there
        import os
        import platform
        import socket

        yield socket.gethostname(), platform.python_version(), os.path.exists(file)  # noqa: PTH110

    context = spark.sparkContext
    tasks = context.defaultParallelism * _TASKS_EACH
    return context.parallelize(range(tasks), tasks).mapPartitions(describe).collect()
