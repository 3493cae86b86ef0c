"""Examine a cluster by using it: a session, a small job on every worker, nothing left behind."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.config.project import ProjectConfig
from deltaworks.doctor import Finding
from deltaworks.errors import DeltaworksError
from deltaworks.model.table_ref import is_url

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from deltaworks.engines.spark.session.workers import WorkerReport

_WAIT_SECONDS = 60.0


def examine_cluster(
    config: ProjectConfig, *, start: Callable[[], SparkSession]
) -> tuple[Finding, ...]:
    """What the driver finds out about the engine that a profile chooses; nothing if it is local."""
    master = config.engine.master
    if master.startswith("local"):
        return ()
    remote = master.startswith("sc://")
    try:
        return _server(master, start()) if remote else _workers(config, start())
    except DeltaworksError as error:
        part = "connect" if remote else "workers"
        return (Finding(part, ok=False, detail=error.message, fix=error.hint),)


def _server(master: str, spark: SparkSession) -> tuple[Finding, ...]:
    return (Finding("connect", ok=True, detail=f"{master} answers, with Spark {spark.version}"),)


def _workers(config: ProjectConfig, spark: SparkSession) -> tuple[Finding, ...]:
    from deltaworks.engines.spark.session.workers import ask_workers

    with _marked(config.warehouse) as file:
        found = ask_workers(spark, file, wait_seconds=_WAIT_SECONDS)
    hosts = ", ".join(sorted({one.host for one in found}))
    pythons = ", ".join(sorted({one.python for one in found}))
    detail = f"{hosts} at {config.engine.master}, with Python {pythons}"
    return (Finding("workers", ok=True, detail=detail), *_shared(config.warehouse, found))


@contextmanager
def _marked(warehouse: str) -> Iterator[str]:
    """A file in the warehouse for workers to look for; none where it is in a bucket."""
    if is_url(warehouse):
        yield ""
        return
    folder = Path(warehouse)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, prefix="_doctor-") as file:
        yield file.name


def _shared(warehouse: str, found: tuple[WorkerReport, ...]) -> tuple[Finding, ...]:
    if is_url(warehouse):
        return ()
    blind = sorted({one.host for one in found if not one.sees})
    if not blind:
        return (Finding("shared", ok=True, detail=f"every worker sees {warehouse}"),)
    return (
        Finding(
            "shared",
            ok=False,
            detail=f"{', '.join(blind)} does not see {warehouse}",
            fix="put the warehouse where every worker sees it: a bucket, or a shared folder",
        ),
    )
