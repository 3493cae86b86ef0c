"""Spark and delta-rs on one table of a real S3 server, by one section of the project file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deltaworks.config.project import load_project
from deltaworks.storage.engine_options import delta_rs_options
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server

pytestmark = pytest.mark.spark

PROGRAM = """
import sys
import psutil
from deltaworks import Project
from deltaworks.engines.spark.session.start import jvm_process

with Project.open(sys.argv[1]) as project:
    spark = project.spark
    rows = spark.read.csv("s3a://lake/in/orders.csv", header=True, schema="id int, name string")
    rows.write.format("delta").save("s3a://lake/orders")
    rows.where("id = 2").selectExpr("id", "'new' AS name").createOrReplaceTempView("changed")
    spark.sql(
        "MERGE INTO delta.`s3a://lake/orders` t USING changed s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET *"
    )
    java, _ = jvm_process(spark)
    print(spark.sparkContext.getConf().toDebugString(), *psutil.Process(java).cmdline())
"""


def test_what_spark_writes_on_s3_delta_rs_reads(tmp_path: Path, s3: S3Server) -> None:
    from deltalake import DeltaTable

    files = s3.files()
    files.create_dir("lake")
    with files.open_output_stream("lake/in/orders.csv") as out:
        out.write(b"id,name\n1,a\n2,b\n3,c\n")
    (tmp_path / "deltaworks.yaml").write_text(
        "project: shop\nwarehouse: ./warehouse\nengine: {master: 'local[2]'}\nstorage:\n"
        f"  s3://lake: {{credential: lake, endpoint: '{s3.endpoint}', path_style: true}}\n"
    )
    record = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": "us-east-1"}
    variable = {"DELTAWORKS_CREDENTIAL__LAKE": json.dumps(record)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        env={**os.environ, **variable},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "org.apache.spark.deploy.SparkSubmit" in done.stdout
    assert SECRET_KEY not in done.stdout + done.stderr
    access = load_project(tmp_path, environ=variable).store_access("s3a://lake/orders")
    assert access is not None
    table = DeltaTable("s3://lake/orders", storage_options=delta_rs_options(access))
    rows = sorted(table.to_pyarrow_table().to_pylist(), key=lambda row: row["id"])
    assert [row["name"] for row in rows] == ["a", "new", "c"]
    assert table.version() == 1
