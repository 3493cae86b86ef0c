"""What the driver learns of its workers, and what it says when they cannot work for it."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.config.project import EngineSettings, ProjectConfig, load_project
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.engines.spark.session.workers import ask_workers, reach_master, ship_package
from deltaworks.engines.spark.transforms import python_worker as python_rows
from deltaworks.errors import EngineError, StorageError
from deltaworks.runtime.diagnostics import cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VERSION = ".".join(str(part) for part in sys.version_info[:3])
OTHER = """#!/bin/sh
PYTHONPATH="{folder}:$PYTHONPATH" exec "{python}" "$@"
"""
NEWER = """
import sys
from collections import namedtuple
fields = "major minor micro releaselevel serial"
sys.version_info = namedtuple("version_info", fields)(3, 99, 0, "final", 0)
"""


def config(tmp_path: Path, *, warehouse: str = "") -> ProjectConfig:
    """A project whose engine calls itself a cluster."""
    found = load_project(tmp_path, environ={})
    engine = EngineSettings(master="spark://127.0.0.1:1")
    return replace(found, engine=engine, warehouse=warehouse or found.warehouse)


@pytest.fixture
def chosen_python(jvm: SparkSession) -> Iterator[Any]:
    """Lets a test choose the Python of the workers."""
    context: Any = jvm.sparkContext
    before = context.pythonExec

    def choose(path: Path) -> None:
        context.pythonExec = str(path)

    yield choose
    context.pythonExec = before


def test_workers_say_their_python_and_whether_they_see_the_warehouse(
    tmp_path: Path, spark: SparkSession
) -> None:
    workers, shared = cluster.examine_cluster(config(tmp_path), start=lambda: spark)
    assert (workers.ok, shared.ok) == (True, True)
    assert workers.detail.endswith(f"at spark://127.0.0.1:1, with Python {VERSION}")
    assert list((tmp_path / "warehouse").iterdir()) == []
    (bucket,) = cluster.examine_cluster(
        config(tmp_path, warehouse="s3://lake/w"), start=lambda: spark
    )
    assert bucket.part == "workers"
    (elsewhere,) = ask_workers(spark, str(tmp_path / "no-such-file"), wait_seconds=60)
    assert not elsewhere.sees
    (blind,) = cluster._shared("/data", (elsewhere,))
    assert (blind.ok, "does not see /data" in blind.detail) == (False, True)


def test_a_local_spark_is_no_cluster(tmp_path: Path) -> None:
    assert cluster.examine_cluster(load_project(tmp_path, environ={}), start=pytest.fail) == ()


def test_a_worker_without_the_drivers_python_is_named(
    tmp_path: Path, spark: SparkSession, chosen_python: Any
) -> None:
    chosen_python(tmp_path / "no-python")
    (found,) = cluster.examine_cluster(config(tmp_path), start=lambda: spark)
    assert not found.ok
    assert "the workers have no " in found.detail
    assert "no-python" in found.detail
    assert "spark.pyspark.python" in found.fix


def test_a_worker_with_another_python_is_named_in_a_job_too(
    tmp_path: Path, spark: SparkSession, chosen_python: Any
) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    (tmp_path / "sitecustomize.py").write_text(NEWER)
    other = tmp_path / "python"
    other.write_text(OTHER.format(folder=tmp_path, python=sys.executable))
    other.chmod(0o755)
    chosen_python(other)
    wanted = f"the workers run Python 3.99, and the driver Python {VERSION.rpartition('.')[0]}"
    (found,) = cluster.examine_cluster(config(tmp_path), start=lambda: spark)
    assert found.detail == wanted
    with pytest.raises(PySparkException) as caught:
        spark.range(1).select(F.udf(lambda x: x, "bigint")("id")).collect()
    assert translate(caught.value).message == wanted


def test_a_cluster_that_gives_no_worker_is_told_after_a_while(
    tmp_path: Path, spark: SparkSession
) -> None:
    def occupy() -> None:
        context = spark.sparkContext
        context.parallelize(range(2), 2).foreach(lambda _: time.sleep(6))

    busy = threading.Thread(target=occupy)
    busy.start()
    time.sleep(2)
    with pytest.raises(EngineError, match=r"no worker took a task within 0\.5 s"):
        ask_workers(spark, str(tmp_path), wait_seconds=0.5)
    busy.join()


def test_this_package_is_sent_to_the_workers(tmp_path: Path, spark: SparkSession) -> None:
    ship_package(spark, tmp_path)
    path = next(entry for entry in sys.path if entry.endswith(".zip") and "deltaworks-" in entry)
    sys.path.remove(path)

    def origin(_: Any) -> str:
        import deltaworks

        return str(deltaworks.__file__)

    found = spark.sparkContext.parallelize([1], 1).map(origin).collect()
    assert found[0].endswith(".zip/deltaworks/__init__.py")


def test_a_function_that_was_packed_is_still_one() -> None:
    from pyspark.sql.types import IntegerType, StructField, StructType

    columns = StructType([StructField("id", IntegerType())])
    code = python_rows.UserCode(name="f", step="s", file="", shown_file="")
    function = python_rows.RowFunction(
        lambda row: row, code, takes=columns, gives=columns, root="."
    )
    assert python_rows.Packed(function)((7,)) == (7,)


def test_of_several_masters_one_must_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        reach_master(f"spark://127.0.0.1:{port}")
        reach_master(f"spark://127.0.0.1:{port},127.0.0.1:9")
        reach_master(f"spark://127.0.0.1:9,127.0.0.1:{port}")
    reach_master("yarn")
    with pytest.raises(StorageError, match="does not accept connections"):
        reach_master("spark://127.0.0.1:9")
