"""Tables of databases, read whole, in parts, and by drivers that users bring."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.config.cache import cache_dir
from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.jars.connectors import connector_jars
from deltaworks.engines.spark.jars.resolve import jar_files
from tests.services.databases import Database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark


def test_parts_hold_every_row_once(database: Database, context: RunContext) -> None:
    database.numbers("parts_t", 5000)
    expected = (5000, 5000 * 5001 // 2)
    ways: list[dict[str, Any]] = [
        {"table": "parts_t", "partitions": 3},
        {"table": "parts_t", "partitions": 3, "partition_column": "id"},
        {"query": "SELECT id, name FROM parts_t", "partitions": 3, "partition_column": "id"},
        {"table": "parts_t"},
    ]
    for way in ways:
        frame = database.read(context, **way)
        assert frame.columns == ["id", "name"]
        assert frame.rdd.getNumPartitions() == way.get("partitions", 1)
        assert tuple(frame.selectExpr("count(DISTINCT id)", "sum(id)").collect()[0]) == expected


def test_a_table_of_tables_is_cut_by_its_key(database: Database, context: RunContext) -> None:
    if database.kind != "postgres":
        pytest.skip("only PostgreSQL has blocks to read by, which such tables lack")
    database.sql(
        "DROP TABLE IF EXISTS split_t",
        "CREATE TABLE split_t (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE split_1 PARTITION OF split_t FOR VALUES FROM (0) TO (1000)",
        "INSERT INTO split_t SELECT generate_series(1, 99)",
        "CREATE OR REPLACE VIEW seen_v AS SELECT * FROM split_t",
    )
    frame = database.read(context, table="split_t", partitions=3)
    assert (frame.rdd.getNumPartitions(), frame.count()) == (3, 99)
    assert database.read(context, table="seen_v", partitions=3).rdd.getNumPartitions() == 1


def test_rows_without_a_part_are_read_too(database: Database, context: RunContext) -> None:
    database.numbers("nulls_t", 10)
    database.sql(
        "ALTER TABLE nulls_t ADD bucket int", "UPDATE nulls_t SET bucket = id WHERE id > 4"
    )
    frame = database.read(context, table="nulls_t", partitions=4, partition_column="bucket")
    assert frame.count() == 10


def test_columns_and_conditions_stay_with_the_server(
    database: Database, context: RunContext
) -> None:
    database.numbers("pushed_t", 100)
    frame = database.read(
        context, table="pushed_t", columns=["name"], where="id > 98", partitions=2
    )
    assert frame.columns == ["name"]
    assert sorted(row.name for row in frame.collect()) == ["row 100", "row 99"]


def test_all_parts_see_one_moment(database: Database, context: RunContext) -> None:
    if database.kind != "postgres":
        pytest.skip("MySQL cannot share what one connection sees with others")
    database.numbers("moment_t", 2000)
    frame = database.read(context, table="moment_t", partitions=2)
    loose = database.read(context, table="moment_t", partitions=2, consistent=False)
    database.sql("DELETE FROM moment_t WHERE id > 10")
    assert (frame.count(), frame.count(), loose.count()) == (2000, 2000, 10)


def test_any_database_is_read_by_the_driver_its_user_brings(
    database: Database, context: RunContext
) -> None:
    from deltaworks.errors import ConfigError
    from deltaworks.sources.jdbc import JdbcSource

    database.numbers("any_t", 50)
    (jar,) = connector_jars([database.kind])
    (file,) = jar_files([jar], cache=cache_dir(os.environ))
    given: dict[str, Any] = {
        "system": {"postgres": "postgresql", "mysql": "mariadb"}[database.kind],
        "driver_jar": str(file),
        "driver_sha256": jar.sha256,
        "credential": "shop",
        "table": "any_t",
    }

    def rows(**more: Any) -> DataFrame:
        source = JdbcSource.model_validate({**given, **more})
        assert source.problems() == ()
        frame: DataFrame = source.read(context, source.bounds(context.project_ctx, None))
        return frame

    cut = rows(columns=["id"], where="id > 10", partition_column="id", partitions=3)
    assert (cut.columns, cut.count(), cut.rdd.getNumPartitions()) == (["id"], 40, 3)
    asked = rows(table="", query="SELECT id, name FROM any_t WHERE id < 0;", partition_column="id")
    assert (asked.columns, asked.count()) == (["id", "name"], 0)
    for wrong, says in (
        ({"driver_sha256": "00"}, "SHA-256"),
        ({"driver_jar": "none.jar"}, "no driver"),
        ({"database": "a;b=c"}, "name of a database"),
        ({"columns": ['a"b']}, "quoted safely"),
    ):
        with pytest.raises(ConfigError, match=says):
            rows(**wrong)
    source = JdbcSource.model_validate(
        {**given, "query": "SELECT 1", "options": {"autoDeserialize": "x"}}
    )
    assert len(source.problems()) == 2
    bounds = source.bounds(context.project_ctx, None)
    assert "cannot be asked" in source.still_there(context.project_ctx, bounds)
    assert source.changed_while_read(context.project_ctx, bounds) == ""
    nowhere = JdbcSource.model_validate({**given, "credential": ""})
    with pytest.raises(ConfigError, match="host"):
        nowhere.bounds(context.project_ctx, None)
