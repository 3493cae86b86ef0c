"""P5: what a pipeline asks of a table is what the table has afterwards, new or not."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from deltaworks.errors import DeltaworksError, EngineError, SpecError
from deltaworks.sinks.delta import DeltaSink
from tests.tables.loader import Loader
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "(1, 'nl', 10), (2, 'de', 20) AS t(id, country, n)"
ASKED: dict[str, Any] = {
    "change_feed": True,
    "optimize_write": True,
    "auto_compact": False,
    "stats_columns": ["id", "n"],
    "properties": {
        "mine": "x",
        "delta.appendonly": False,
        "delta.feature.timestampNtz": "supported",
    },
}
EXPECTED = {
    "delta.enableChangeDataFeed": "true",
    "delta.autoOptimize.optimizeWrite": "true",
    "delta.autoOptimize.autoCompact": "false",
    "delta.dataSkippingStatsColumns": "id,n",
    "mine": "x",
    "delta.appendOnly": "false",
}


@pytest.mark.parametrize("exists", [False, True])
def test_every_property_asked_for_is_on_the_table(loader: Loader, exists: bool) -> None:
    if exists:
        loader.load(ROWS)
    info = loader.load(ROWS, **ASKED)
    detail = loader.detail()
    assert {key: detail["properties"].get(key) for key in EXPECTED} == EXPECTED
    assert "timestampNtz" in detail["tableFeatures"]
    version = loader.version()
    assert info.version == (version if exists else 0)
    # asked again, nothing is left to set: the next commit is the next batch's
    assert loader.load(ROWS, **ASKED).version == version + 1


def test_properties_are_set_even_when_no_row_changes(loader: Loader) -> None:
    loader.upsert(ROWS)
    info = loader.upsert(ROWS, change_feed=True)
    assert (info.committed, info.version) == (False, 1)
    assert loader.detail()["properties"]["delta.enableChangeDataFeed"] == "true"


def test_partitions_are_folders_and_the_table_knows_them(loader: Loader) -> None:
    loader.load(ROWS, partition_by=["country"])
    assert loader.detail()["partitionColumns"] == ["country"]
    assert {name.partition("/")[0] for name in loader.files()} == {"country=nl", "country=de"}


@pytest.mark.parametrize("exists", [False, True])
def test_clustering_is_set_and_may_be_changed(loader: Loader, exists: bool) -> None:
    if exists:
        loader.load(ROWS, cluster_by="id")
    loader.load(ROWS, cluster_by=["country", "n"])
    assert loader.detail()["clusteringColumns"] == ["country", "n"]
    version = loader.version()
    loader.load(ROWS, cluster_by=["Country", "N"])
    assert loader.version() == version + 1


def test_protocol_versions_may_be_asked_for(loader: Loader) -> None:
    asked = {"delta.minReaderVersion": "1", "delta.minWriterVersion": "4"}
    loader.load(ROWS, properties=asked)
    assert loader.detail()["minWriterVersion"] == 4
    loader.load(ROWS, properties=asked)
    assert loader.version() == 1


@pytest.mark.parametrize("option", ["partition_by", "cluster_by"])
def test_a_layout_column_that_does_not_exist_is_named(loader: Loader, option: str) -> None:
    with pytest.raises(SpecError, match=f'{option} names column "contry"') as caught:
        loader.load(ROWS, **{option: ["contry"]})
    assert 'did you mean "country"' in caught.value.hint
    with pytest.raises(SpecError):
        loader.plan(ROWS, **{option: ["contry"]})


def test_an_unknown_delta_property_is_refused_and_nothing_is_written(bench: Workbench) -> None:
    bench.write("in.csv", "id\n1\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        "load: {type: delta, table: t, properties: {delta.nonsense: 1}}\n",
    )
    assert "delta.nonsense" in bench.fail("p").stderr
    assert bench.version("t") is None


def test_what_delta_silently_does_not_take_is_an_error(loader: Loader) -> None:
    from deltaworks.engines.deltars.tables import DeltaRsEngine
    from deltaworks.engines.spark.delta.layout import verify_layout
    from deltaworks.model.write import Layout

    loader.load(ROWS)
    table = DeltaRsEngine().info(str(loader.path))
    assert table is not None
    asked = Layout(partition_by=("id",), cluster_by=("n",), properties={"mine": "x"})
    with pytest.raises(EngineError, match='property "mine", partition_by, cluster_by'):
        verify_layout(loader.spark, table, asked)


def big(spark: SparkSession) -> Any:
    random = Random(7)  # noqa: S311 - text that does not compress
    rows = [(i, random.randbytes(60).hex()) for i in range(40_000)]
    return spark.createDataFrame(rows, "id int, v string").repartition(4)


def test_a_smaller_target_size_makes_more_files_and_leaves_the_session_as_it_was(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows, counts = big(spark), {}
    bin_size = "spark.databricks.delta.optimizeWrite.binSize"
    spark.conf.set(bin_size, "77m")
    for size in ("1mb", "1gb"):
        loader = Loader(spark, tmp_path / size)
        loader.load(rows, optimize_write=True, target_file_size=size)
        counts[size] = len(loader.files())
    assert counts["1mb"] > counts["1gb"] == 1
    assert spark.conf.get(bin_size) == "77m"
    assert spark.conf.get("spark.databricks.delta.autoCompact.maxFileSize", None) is None


def test_automatic_compaction_is_not_taken_for_the_batch(loader: Loader) -> None:
    loader.spark.conf.set("spark.databricks.delta.autoCompact.minNumFiles", "2")
    loader.upsert(ROWS, auto_compact=True)
    info = loader.upsert(
        "(3, 'fr', 30) AS t(id, country, n)",
        auto_compact=True,
        target_file_size="8mb",
    )
    operations = {row["version"]: row["operation"] for row in loader.sql("DESCRIBE HISTORY THIS")}
    assert info.version is not None
    assert (operations[info.version], operations[info.version + 1]) == ("WRITE", "OPTIMIZE")
    assert (info.rows_inserted, len(loader.files()), len(loader.rows())) == (1, 1, 3)


@pytest.mark.parametrize(
    ("size", "problem"),
    [("128 parrots", "is not a size"), ("", "is not a size"), ("10kb", "1mb is the least")],
)
def test_a_target_size_that_is_none_is_refused(size: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        DeltaSink.model_validate({"table": "t", "target_file_size": size})


@pytest.mark.parametrize(
    ("size", "expected"), [("128mb", 128 << 20), (134217728, 128 << 20), ("1.5 GB", 3 << 29)]
)
def test_sizes_are_written_as_people_write_them(size: str | int, expected: int) -> None:
    sink = DeltaSink.model_validate({"table": "t", "target_file_size": size})
    assert sink._layout(()).target_file_bytes == expected


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"path": "also"}, 'say either "table" or "path"'),
        ({"table": "a b"}, "is not a table name"),
        ({"partition_by": "a", "cluster_by": "b"}, "exclude each other"),
        ({"properties": {"delta.isolationLevel": "WriteSerializable"}}, "knows only Serializable"),
        ({"mode": "upsert"}, 'needs "merge_keys"'),
        ({"merge_keys": "id"}, 'belongs to mode "upsert", not "append"'),
        ({"replace_where": "id > 1"}, 'belongs to mode "overwrite", not "append"'),
        (
            {"mode": "overwrite", "replace_where": "a > 1", "overwrite_schema": True},
            "exclude each other",
        ),
        (
            {"mode": "upsert", "merge_keys": "id", "update_condition": "ts > target.ts"},
            'write "source.ts" or "target.ts"',
        ),
    ],
)
def test_options_that_contradict_each_other_are_named(
    options: dict[str, Any], problem: str
) -> None:
    sink = DeltaSink.model_validate({"table": "t", **options})
    assert any(problem in found for found in sink.problems())


def test_a_failed_write_leaves_no_half_made_table_in_the_way(loader: Loader) -> None:
    with pytest.raises((DeltaworksError, Exception), match="DIVIDE_BY_ZERO"):
        loader.load("SELECT 1 / (id - id) AS x FROM range(3)")
    assert loader.load("SELECT 1 AS x").version == 0
