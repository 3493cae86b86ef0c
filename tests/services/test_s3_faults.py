"""What a pipeline on S3 does when the server dies, answers slowly, or its answer is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.lakes import QUICK, Lake
from tests.services.proxy import Proxy, proxy_before
from tests.services.s3_server import S3Server, s3_server, server_program

pytestmark = pytest.mark.spark

JOB = """
extract: {{type: csv, path: "{source}", schema: "id bigint, name string"}}
load: {{type: {kind}, {target}, mode: append}}
"""
MOMENTS = {
    "data": ("delta", r"/wh/t/part-"),
    "commit": ("delta", r"/wh/t/_delta_log/0+\.json"),
    "manifest": ("csv", r"/out/_deltaworks\.json"),
}


@pytest.fixture(scope="module")
def server(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:  # noqa: ARG001 - or a skip
    program = server_program()
    assert program is not None
    with s3_server(program, tmp_path_factory.mktemp("mortal")) as mortal:
        yield mortal


def lake_behind(proxy: Proxy, tmp_path: Path, server: S3Server, bucket: str) -> Lake:
    """A project that soon gives up on a store that is away."""
    quick = {"attempts.maximum": "1", "retry.limit": "1", "retry.interval": "100ms"}
    hadoop = ", ".join(f"fs.s3a.bucket.{bucket}.{key}: '{value}'" for key, value in quick.items())
    storage = f"endpoint: '{proxy.endpoint}', path_style: true, hadoop: {{{hadoop}}}, {QUICK}"
    return Lake(tmp_path, server, bucket=bucket, storage=storage)


def job(lake: Lake, kind: str) -> None:
    lake.put("in/a.csv", "id,name\n1,a\n2,b\n")
    target = "table: t" if kind == "delta" else f'path: "{lake.at("out")}"'
    lake.pipeline("p", JOB.format(source=lake.at("in"), kind=kind, target=target))
    if kind != "delta":
        lake.pipeline("read", JOB.format(source=lake.at("out"), kind="delta", target="table: t"))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_server_that_dies_in_a_write_and_comes_back_costs_no_row(
    jvm: object,  # noqa: ARG001 - the JVM must be up
    tmp_path: Path,
    server: S3Server,
    moment: str,
) -> None:
    kind, where = MOMENTS[moment]
    fallen: list[str] = []

    def fall(verb: str, path: str) -> None:
        if verb == "PUT" and re.search(where, path) and not fallen:
            fallen.append(path)
            server.kill()

    with proxy_before(server.port) as proxy:
        lake = lake_behind(proxy, tmp_path, server, f"mortal-{moment}")
        job(lake, kind)
        proxy.on_request = fall
        told = lake.cli("run", "p")
        server.start()
        assert fallen
        assert told.code == 4, told.stderr
        assert "Traceback" not in told.stderr
        if kind == "delta":
            assert lake.cli("table", "show", "t").code == 1  # no table, not half of one
        else:
            assert "not finished" in lake.fail("read").stderr or not lake.names("out")
        lake.run("p")
        if kind != "delta":
            lake.run("read")
        assert lake.rows("t") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_a_commit_whose_answer_is_lost_is_found_and_not_made_twice(
    jvm: object,  # noqa: ARG001 - the JVM must be up
    tmp_path: Path,
    server: S3Server,
) -> None:
    with proxy_before(server.port) as proxy:
        lake = lake_behind(proxy, tmp_path, server, "mortal-answer")
        job(lake, "delta")
        lost: list[str] = []

        def lose(verb: str, path: str) -> None:
            if verb == "PUT" and re.search(MOMENTS["commit"][1], path) and not lost:
                lost.append(path)
                proxy.swallow = True

        proxy.on_request = lose
        told = lake.cli("run", "p", "--json")
        assert lost
        if told.code != 0:
            lake.run("p")
        assert lake.rows("t") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
        proxy.delay_seconds = 0.02
        lake.put("in/b.csv", "id,name\n3,c\n")
        lake.run("p")
        assert len(lake.rows("t")) == 5  # both files again: this append is not incremental
