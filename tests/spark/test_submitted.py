"""A project under `spark-submit`: the JVM is Spark's, and its command line decides."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deltaworks.config.cache import cache_dir
from deltaworks.engines.spark.jars.resolve import jar_files
from deltaworks.engines.spark.java.find import find_java, find_spark_home
from deltaworks.engines.spark.versions import CORE_JARS
from tests.workbench import Workbench

pytestmark = pytest.mark.spark

STEPS = """
from pathlib import Path

def noted(df):
    spark = df.sparkSession
    said = [spark.sparkContext.master, spark.conf.get("spark.sql.shuffle.partitions")]
    said.append(spark.conf.get("spark.sql.session.timeZone"))
    Path(__file__).with_name("said").write_text(" ".join(said))
    return df
"""


def test_what_spark_submit_says_wins_and_a_batch_lands(tmp_path: Path) -> None:
    desk = Workbench(tmp_path)
    desk.write(
        "deltaworks.yaml",
        "project: shop\nwarehouse: ./warehouse\n"
        "engine: {master: 'local[8]', conf: {spark.sql.shuffle.partitions: 9}}\n",
    )
    desk.write("steps.py", STEPS)
    desk.write("in.csv", "id,name\n1,a\n2,b\n")
    desk.write("run.py", "from deltaworks.cli.app import main\n\nmain()\n")
    desk.pipeline(
        "orders",
        "extract: {type: csv, path: in.csv, schema: 'id int, name string'}\n"
        "transform: [{type: python, function: 'steps.py:noted'}]\n"
        "load: {type: delta, table: orders}\n",
    )
    home, cache = find_spark_home({}), cache_dir(os.environ)
    jars = ",".join(str(path) for path in jar_files(CORE_JARS, cache=cache))
    command = ["bash", str(home / "bin" / "spark-submit"), "--master", "local[1]", "--jars", jars]
    command += ["--driver-memory", "800m", "--conf", "spark.sql.shuffle.partitions=7"]
    done = subprocess.run(
        [*command, "run.py", "run", "orders", "--json", "--quiet"],
        cwd=desk.root,
        env={
            **os.environ,
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JAVA_HOME": str(find_java(os.environ, cache=cache).home),
            "PYSPARK_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["batches"][0]["outputs"][0]["rows_inserted"] == 2
    assert (desk.root / "said").read_text() == "local[1] 7 UTC"
    assert [row["id"] for row in desk.rows("orders")] == [1, 2]
