"""What a pipeline on S3 does when the server dies, answers slowly, or its answer is lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services.lakes import QUICK, Lake
from tests.services.proxy import Proxy, proxy_before
from tests.services.s3_server import ACCESS_KEY, SECRET_KEY, S3Server, s3_server, server_program

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
    with proxy_before(server.port) as proxy:
        lake = lake_behind(proxy, tmp_path, server, f"mortal-{moment}")
        job(lake, kind)
        proxy.kill_at(where, server.process.pid)
        told = lake.cli("run", "p")
        assert proxy.struck()
        server.kill()
        server.start()
        assert told.code == 4, told.stderr
        assert "Traceback" not in told.stderr
        if kind == "delta":
            assert lake.cli("table", "show", "t").code == 1  # no table, not half of one
        else:
            said = lake.fail("read").stderr  # what is staged is no file of the folder
            assert "not finished" in said or "there is no file" in said
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
        proxy.lose_answer(MOMENTS["commit"][1])
        told = lake.cli("run", "p", "--json")
        assert proxy.struck()
        if told.code != 0:
            lake.run("p")
        assert lake.rows("t") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
        proxy.slow_down(0.02)
        lake.put("in/b.csv", "id,name\n3,c\n")
        lake.run("p")
        assert len(lake.rows("t")) == 5  # both files again: this append is not incremental


@pytest.mark.parametrize("kind", ["delta", "csv"])
def test_who_may_not_delete_loses_and_doubles_nothing(
    jvm: object,  # noqa: ARG001 - the JVM must be up
    tmp_path: Path,
    server: S3Server,
    kind: str,
) -> None:
    """Locks stay where they are then and are not in the way; folders of files are refused."""
    with proxy_before(server.port) as proxy:
        lake = lake_behind(proxy, tmp_path, server, f"keeps-{kind}")
        job(lake, kind)
        proxy.forbid_deletes()
        told = lake.cli("run", "p")
        assert "Traceback" not in told.stderr
        if kind == "csv":  # Spark stages by deleting, and so it cannot
            assert (told.code, "Access Denied" in told.stderr) == (4, True)
            assert "there is no file" in lake.fail("read").stderr
            return
        assert told.code == 0, told.stderr
        assert lake.rows("t") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]
        again = lake.cli("run", "p")
        assert again.code == 0, again.stderr
        assert "--again" in again.stderr + again.stdout  # the same files, so it was skipped
        assert lake.rows("t") == [{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]


def test_a_run_with_a_wrong_key_or_without_its_bucket_says_so_and_writes_nothing(
    jvm: object,  # noqa: ARG001 - the JVM must be up
    tmp_path: Path,
    server: S3Server,
) -> None:
    with proxy_before(server.port) as proxy:
        lake = lake_behind(proxy, tmp_path, server, "mortal-key")
        job(lake, "delta")
        key = {"access_key": ACCESS_KEY, "region": "us-east-1"}
        lake.keep("lake", **key, secret_key="not-the-one-1")  # noqa: S106 - it opens nothing
        told = lake.cli("run", "p")
        assert (told.code, "Traceback" in told.stderr) == (4, False)
        assert "not-the-one-1" not in told.stderr
        lake.keep("lake", **key, secret_key=SECRET_KEY)
        assert lake.names("wh") == []
        storage = (lake.root / "deltaworks.yaml").read_text()
        lake.write("deltaworks.yaml", storage.replace("mortal-key", "mortal-gone"))
        lake.pipeline(
            "p", JOB.format(source="s3://mortal-gone/in", kind="delta", target="table: t")
        )
        gone = lake.cli("run", "p")
        assert (gone.code in (1, 4), "Traceback" in gone.stderr) == (True, False)
        assert "mortal-gone" in gone.stderr
