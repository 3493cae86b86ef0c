"""A million rows from a database and back, in a JVM too small to hold them (P8)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.services.databases import Database
from tests.services.mariadb_server import installation, mariadb_server
from tests.services.postgres_server import postgres_server

pytestmark = [pytest.mark.prove, pytest.mark.timeout(0)]

ROWS = 1_000_000
HEAP = "512m"
FILL = {
    "postgres": "INSERT INTO wide SELECT i, repeat(md5(i::text), 20) "
    f"FROM generate_series(1, {ROWS}) i",
    "mysql": f"INSERT INTO wide SELECT seq, repeat(md5(seq), 20) FROM seq_1_to_{ROWS}",
}
"""640 bytes in each row: more in all than the JVM may take."""
PROJECT = f"""project: shop
warehouse: ./warehouse
engine: {{master: "local[2]", conf: {{spark.driver.memory: {HEAP}}}}}
"""
IN = (
    "extract: {{type: {kind}, credential: shop, table: wide}}\nload: {{type: delta, table: wide}}\n"
)
OUT = (
    "extract: {{type: delta, table: wide}}\nload: {{type: {kind}, credential: shop, table: back}}\n"
)


def deltaworks(root: Path, database: Database, *arguments: str) -> dict[str, Any]:
    """Run a command in a process of its own; its JSON document."""
    done = subprocess.run(
        [sys.executable, "-m", "deltaworks", *arguments, "--json", "--project", str(root)],
        env={**os.environ, **database.environment()},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_a_million_rows_pass_a_jvm_too_small_for_them(kind: str, tmp_path: Path) -> None:
    is_postgres = kind == "postgres"
    with (
        postgres_server(tmp_path) if is_postgres else mariadb_server(installation(), tmp_path)
    ) as server:
        database = Database(kind, server)
        database.sql("CREATE TABLE wide (id int PRIMARY KEY, text varchar(700))", FILL[kind])
        (tmp_path / "deltaworks.yaml").write_text(PROJECT)
        (tmp_path / "pipelines").mkdir()
        for name, text in (("into", IN), ("back", OUT)):
            file = tmp_path / "pipelines" / f"{name}.yaml"
            file.write_text(f"pipeline: {name}\n{text.format(kind=kind)}")
        read = deltaworks(tmp_path, database, "run", "into")
        assert read["batches"][0]["rows_read"] == ROWS
        written = deltaworks(tmp_path, database, "run", "back")
        assert written["batches"][0]["outputs"][0]["rows_inserted"] == ROWS
        same = "SELECT count(*) FROM wide JOIN back USING (id) WHERE wide.text = back.text"
        assert database.sql(same) == [(ROWS,)]
        assert database.sql("SELECT count(*) FROM back") == [(ROWS,)]
