"""Both engines that can inspect a table say the same about it (P7, P11)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deltaworks.contracts.engine import CanInspect
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.tables import SparkEngine
from deltaworks.errors import DamagedTable, TableNotFound, VersionNotFound
from deltaworks.model.table_info import TableInfo

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES: dict[str, Callable[[SparkSession], CanInspect]] = {
    "deltars": lambda _: DeltaRsEngine(),
    "spark": SparkEngine,
}
TABLES = {
    "plain": "",
    "partitioned": "PARTITIONED BY (country)",
    "vectors": "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "mapped": "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "clustered": "CLUSTER BY (id)",
}
NOTE = '{"run_id": "r1", "pipeline": "p"}'


CHANGED = ("plain", "vectors")
"""Tables that had four rows in version 0 and lost one in version 1."""


@pytest.fixture(scope="module")
def tables(jvm: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables above, of four rows each."""
    root = tmp_path_factory.mktemp("inspected")
    spark = jvm.newSession()
    for name, layout in TABLES.items():
        spark.sql(
            f"CREATE TABLE delta.`{root / name}` USING delta {layout} AS SELECT id, "
            "if(id < 2, 'NL', 'DE') AS country, named_struct('zip', id) AS place FROM range(4)"
        )
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", NOTE)
    for name in CHANGED:
        spark.sql(f"DELETE FROM delta.`{root / name}` WHERE id = 3")
    return root


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, spark: SparkSession) -> CanInspect:
    chosen = ENGINES[request.param](spark)
    assert isinstance(chosen, CanInspect)
    return chosen


def known(found: TableInfo | None) -> TableInfo:
    assert found is not None
    return found


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_described_with_its_columns_and_version(
    engine: CanInspect, tables: Path, name: str
) -> None:
    info = known(engine.info(str(tables / name)))
    assert info.version == (1 if name in CHANGED else 0)
    assert info.schema.columns == ("id", "country", "place")
    assert [field.text for field in info.schema.fields] == [
        "bigint",
        "string",
        "struct<zip: bigint>",
        "bigint",
    ]
    assert info.partition_columns == (("country",) if name == "partitioned" else ())
    assert info.table_id
    assert (info.files or 0) > 0
    assert (info.size_bytes or 0) > 0


@pytest.mark.parametrize("name", TABLES)
def test_rows_are_counted_exactly_or_not_claimed(
    engine: CanInspect, tables: Path, name: str
) -> None:
    location, rows = str(tables / name), 3 if name in CHANGED else 4
    assert known(engine.info(location)).rows in (rows, None)
    assert engine.count(location) == rows


def test_the_cheap_engine_knows_the_rows_of_a_plain_table(tables: Path) -> None:
    assert known(DeltaRsEngine().info(str(tables / "plain"))).rows == 3


@pytest.mark.parametrize(
    ("name", "feature", "value"),
    [
        ("vectors", "deletionVectors", ("delta.enableDeletionVectors", "true")),
        ("mapped", "columnMapping", ("delta.columnMapping.mode", "name")),
        ("clustered", "clustering", None),
    ],
)
def test_features_and_properties_are_told(
    engine: CanInspect, tables: Path, name: str, feature: str, value: tuple[str, str] | None
) -> None:
    info = known(engine.info(str(tables / name)))
    assert feature in info.features or info.writer_version < 7
    assert value is None or info.properties[value[0]] == value[1]
    assert info.writer_version >= 2


def test_clustering_columns_are_told_by_the_engine_that_knows_them(
    spark: SparkSession, tables: Path
) -> None:
    info = known(SparkEngine(spark).info(str(tables / "clustered")))
    assert info.clustering_columns == ("id",)


@pytest.mark.parametrize("name", CHANGED)
def test_history_is_told_newest_first_with_our_notes(
    engine: CanInspect, tables: Path, name: str
) -> None:
    newest, oldest = engine.history(str(tables / name))
    assert (newest.version, newest.operation, oldest.version) == (1, "DELETE", 0)
    assert newest.user_metadata == {"run_id": "r1", "pipeline": "p"}
    assert oldest.user_metadata == {}
    assert str(newest.metrics["numDeletedRows"]) == "1"
    assert newest.timestamp_ms >= oldest.timestamp_ms > 0
    assert engine.history(str(tables / name), limit=1) == (newest,)


def test_a_missing_table_is_nothing_and_has_no_history(engine: CanInspect, tmp_path: Path) -> None:
    assert engine.info(str(tmp_path / "none")) is None
    with pytest.raises(TableNotFound, match="not a Delta table"):
        engine.history(str(tmp_path / "none"))
    with pytest.raises(TableNotFound):
        engine.count(str(tmp_path / "none"))


def test_an_old_version_is_described_as_it_was(tables: Path) -> None:
    info = known(DeltaRsEngine().info(str(tables / "plain"), version=0))
    assert (info.version, info.rows) == (0, 4)


@pytest.mark.parametrize("version", [2, -1])
def test_a_version_out_of_range_is_refused_with_the_range(
    spark: SparkSession, tables: Path, version: int
) -> None:
    location = str(tables / "plain")
    with pytest.raises(VersionNotFound, match=f"no version {version}") as by_deltars:
        DeltaRsEngine().info(location, version=version)
    assert "0 to 1" in by_deltars.value.hint
    with pytest.raises(VersionNotFound, match=f"version {version}"):
        SparkEngine(spark).read(location, version=version)


def test_a_damaged_log_is_refused_not_read_as_fewer_rows(
    engine: CanInspect, spark: SparkSession, tmp_path: Path
) -> None:
    place = tmp_path / "damaged"
    spark.range(2).write.format("delta").save(str(place))
    spark.range(2).write.format("delta").mode("append").save(str(place))
    (place / "_delta_log" / f"{1:020d}.json").write_text("")
    with pytest.raises(DamagedTable, match="commit 1 is an empty file"):
        engine.info(str(place))
