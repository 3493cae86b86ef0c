"""A9: rules of the table itself stop a batch before it is seen, and say which rows broke them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "id,amount,country\n1,5,NL\n2,-5,DE\n3,-6,\n"
EXTRACT = 'extract: {type: csv, path: new.csv, schema: "id int, amount int, country string"}\n'


@pytest.fixture
def ruled(bench: Workbench, spark: SparkSession) -> Workbench:
    """A table with two rules of its own."""
    place = f"delta.`{bench.table('orders')}`"
    spark.sql(f"CREATE TABLE {place} (id INT, amount INT, country STRING NOT NULL) USING delta")
    spark.sql(f"ALTER TABLE {place} ADD CONSTRAINT positive CHECK (amount > 0)")
    bench.write("new.csv", ROWS)
    return bench


@pytest.mark.parametrize(
    "load",
    [
        "{type: delta, table: orders}",
        "{type: delta, table: orders, mode: upsert, merge_keys: [id]}",
    ],
)
def test_violations_are_kept_with_the_run_and_nothing_is_seen(ruled: Workbench, load: str) -> None:
    ruled.pipeline("orders", f"{EXTRACT}load: {load}\n")
    before = ruled.version("orders")
    planned = ruled.cli("plan", "orders", "--json").json
    failed = ruled.cli("run", "orders", "--json", "--quiet")
    assert (failed.code, failed.json["error"]["code"]) == (1, "constraint_violated")
    checks = failed.json["batches"][0]["checks"]
    found = {check["name"]: (check["type"], check["rows_failed"]) for check in checks}
    assert found == {"positive": ("constraint", 2), "country is not null": ("constraint", 1)}
    assert '"id":3' in next(c for c in checks if c["rows_failed"] == 1)["samples"][0]
    assert [check["name"] for check in planned["checks"]] == [check["name"] for check in checks]
    assert len(planned["notes"]) == 2
    shown = ruled.cli("runs", "show", failed.json["run_id"], "--json").json
    assert shown["batches"][0]["checks"] == checks
    assert (ruled.version("orders"), ruled.rows("orders")) == (before, [])
    ruled.write("new.csv", "id,amount,country\n1,5,NL\n")
    assert ruled.run("orders")["batches"][-1]["outputs"][0]["rows_inserted"] == 1
