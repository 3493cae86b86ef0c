"""What all cases on object storage have in common: a server, a bucket, and keys for both sides."""

from __future__ import annotations

import json
import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.case import Case
from bench.orders import COLUMNS, fingerprint
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, s3_server, server_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PLACE = "DELTAWORKS_BENCH_S3"
_CREDENTIAL = "DELTAWORKS_CREDENTIAL__LAKE"
REGION = "us-east-1"


class LakeCase(Case):
    """Tables in a bucket; our books are there too."""

    connectors = ("s3",)

    def __init__(self) -> None:
        self._running = ExitStack()

    def prepare(self, folder: Path) -> None:
        program = server_program()
        if program is None:
            raise SystemExit("bench: the S3 server is not installed: make setup")
        server = self._running.enter_context(s3_server(program, folder / "server"))
        server.files().create_dir("lake")
        keys = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY, "region": REGION}
        os.environ[_PLACE], os.environ[_CREDENTIAL] = server.endpoint, json.dumps(keys)
        (folder / "project" / "deltaworks.yaml").write_text(
            "project: bench\nwarehouse: s3://lake/wh\nstorage:\n"
            f"  s3://lake: {{credential: lake, endpoint: '{server.endpoint}', path_style: true}}\n"
        )

    def finish(self) -> None:
        self._running.close()

    def check(self, spark: SparkSession, folder: Path, round_: int, side: str) -> str:
        reach(spark)
        table = spark.read.format("delta").load(f"s3a://lake/{side}_{round_}")
        return fingerprint(table, COLUMNS)


def reach(spark: SparkSession) -> None:
    """Tell Spark of the server, as anybody would."""
    configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - there is no other way
    for key, value in {
        "endpoint": os.environ[_PLACE],
        "endpoint.region": REGION,
        "access.key": ACCESS_KEY,
        "secret.key": SECRET_KEY,
        "path.style.access": "true",
    }.items():
        configuration.set(f"fs.s3a.{key}", value)


def delta_options() -> dict[str, str]:
    """How delta-rs reaches the server."""
    return {
        "AWS_ENDPOINT_URL": os.environ[_PLACE],
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "aws_conditional_put": "etag",
    }


def files() -> Any:
    """The bucket as a file system."""
    from pyarrow.fs import S3FileSystem

    return S3FileSystem(
        access_key=ACCESS_KEY,
        secret_key=SECRET_KEY,
        endpoint_override=os.environ[_PLACE].partition("://")[2],
        scheme="http",
        region=REGION,
    )
