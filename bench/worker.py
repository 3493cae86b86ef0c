"""One side of a case in a process of its own: a warm JVM that is told when to work.

Reads a round's number per line, answers one line of JSON each.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.case import TOTAL, Case

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def find_case(name: str) -> Any:
    """The only case in the module of that name."""
    module = importlib.import_module(f"bench.cases.{name}")
    found: list[Case] = [
        value()
        for value in vars(module).values()
        if isinstance(value, type) and getattr(value, "name", None) == name
    ]
    return found[0]


def plain_session(connectors: Collection[str]) -> SparkSession:
    """Spark as its documentation starts it, with the same jars and no setting of ours."""
    from pyspark.sql import SparkSession

    from deltaworks.config.cache import cache_dir
    from deltaworks.doctor import fetch_jars
    from deltaworks.engines.spark.jars.connectors import connector_jars
    from deltaworks.engines.spark.jars.resolve import jar_files
    from deltaworks.engines.spark.jars.s3 import S3_JARS
    from deltaworks.engines.spark.versions import CORE_JARS

    fetched = fetch_jars(os.environ, notify=lambda _: None, everything=bool(connectors))
    more = connector_jars([name for name in connectors if name != "s3"])
    stores = S3_JARS if "s3" in connectors else ()
    wanted = jar_files((*CORE_JARS, *stores, *more), cache=cache_dir(os.environ))
    jars = [path for path in fetched if path in wanted]
    return (
        SparkSession.builder.master("local[*]")
        .appName("plain")
        .config("spark.driver.extraClassPath", os.pathsep.join(str(jar) for jar in jars))
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config(
            "spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        )
        .config("spark.driver.memory", "4g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )


def main() -> None:
    """Serve rounds until the input ends."""
    side, name, where = sys.argv[1:4]
    folder = Path(where)
    case: Case = find_case(name)
    if side == "ours":
        from deltaworks.api import Project

        project = Project.open(folder / "project")
        spark = project.spark
    else:
        spark = plain_session(case.connectors)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        round_ = int(line)
        case.stage(folder, round_, side)
        before, start = jobs_so_far(spark), time.perf_counter()
        if side == "ours":
            parts = case.ours(project, folder, round_)
        else:
            parts = case.plain(spark, folder, round_)
        seconds = time.perf_counter() - start
        answer = {
            "seconds": {**(parts or {}), TOTAL: seconds},
            "jobs": jobs_so_far(spark) - before,
            "result": case.check(spark, folder, round_, side),
        }
        print(json.dumps(answer), flush=True)


def jobs_so_far(spark: SparkSession) -> int:
    """How many jobs Spark has been given since it started."""
    return int(spark._jsc.sc().dagScheduler().numTotalJobs())  # noqa: SLF001 - PySpark counts none


if __name__ == "__main__":
    main()
