"""Both writers give the same table: rows, counts, transactions, notes."""

from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, Transaction, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deltaworks.engines.deltars.write.batches import BatchTable
from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.engines.spark.delta.merge import small_batches as hybrid
from deltaworks.errors import CommitConflict, EngineError, UnsupportedOperation
from deltaworks.model.merge_facts import FilesUsed
from deltaworks.sinks.delta import DeltaSink
from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "id bigint, name string, x double, price decimal(20,2), day date, at timestamp, ok boolean"
NEAR = (datetime(1700, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 0, 123456, tzinfo=UTC), None)
FAR = (datetime(200, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))


def batches(*moments: datetime | None) -> st.SearchStrategy[list[tuple[Any, ...]]]:
    row = st.tuples(
        st.integers(0, 9),
        st.sampled_from(["a", "it's", "ß\U0001f600", "", None]),
        st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), None]),
        st.sampled_from([Decimal("1.10"), Decimal("123456789012345678.99"), None]),
        st.sampled_from([date(1, 1, 1), date(9999, 12, 31), None]),
        st.sampled_from(moments),
        st.booleans(),
    )
    return st.lists(row, max_size=8, unique_by=lambda found: found[0])


OPTIONS = st.sampled_from(
    [
        {},
        {"update_condition": "source.at > target.at"},
        {"update_condition": "target.name IS NULL OR source.name >= target.name"},
        {"delete_condition": "source.ok = true"},
        {"update_columns": ["name"], "insert_columns": ["name", "x"]},
    ]
)


def committed_by(loader: Loader, version: int) -> str:
    """Who made a commit."""
    info = [a["commitInfo"] for a in loader.commits()[version] if "commitInfo" in a]
    return "deltars" if "delta-rs" in info[0]["engineInfo"] else "spark"


def marks(loader: Loader, version: int) -> tuple[Any, Any]:
    """What a commit carries for the ledger."""
    actions = loader.commits()[version]
    info = [action["commitInfo"] for action in actions if "commitInfo" in action]
    txns = [action["txn"] for action in actions if "txn" in action]
    return json.loads(info[0]["userMetadata"]), [(t["appId"], t["version"]) for t in txns]


SET = "ALTER TABLE THIS SET TBLPROPERTIES"
ROWS = "(1, 'a', 1.5D), (2, 'b', CAST('NaN' AS DOUBLE)) AS t(id, name, x)"
MORE = "(2, 'c', 2D), (3, 'd', 3D) AS t(id, name, x)"


@pytest.mark.parametrize("partition_by", [[], ["name"]])
def test_small_batches_are_committed_by_delta_rs_with_the_same_marks(
    loader: Loader, partition_by: list[str]
) -> None:
    asked = {"partition_by": partition_by, "writer": "auto"}
    loader.upsert(ROWS, **asked)
    assert loader.upsert(MORE, **asked).version == 1
    assert loader.load(MORE, **asked).version == 2
    assert [committed_by(loader, n) for n in range(3)] == ["spark", "deltars", "deltars"]
    assert [marks(loader, n) for n in range(3)] == [
        ({"batch": n}, [("loader", n)]) for n in (1, 2, 3)
    ]
    assert loader.frame().filter("x > 100").count() == 0
    assert loader.frame().count() == 5


def test_spark_finds_what_statistics_of_delta_rs_leave_out(loader: Loader) -> None:
    """NaN is greater than everything to Spark, and delta-rs would not count it."""
    loader.upsert(ROWS)
    loader.upsert("(1, 'z', 1.5D) AS t(id, name, x)", writer="deltars")
    assert loader.frame().filter("x > 100").count() == 1


def test_a_table_can_be_made_by_delta_rs_and_written_on_by_spark(loader: Loader) -> None:
    info = loader.upsert(ROWS, writer="deltars", partition_by=["name"])
    assert (info.version, info.rows_inserted, committed_by(loader, 0)) == (0, 2, "deltars")
    assert loader.upsert(MORE, writer="spark").rows_updated == 1
    assert loader.detail()["partitionColumns"] == ["name"]
    nothing = "SELECT 1 AS id WHERE false"
    other = Loader(loader.spark, loader.path.parents[1] / "other")
    assert other.load(nothing, writer="deltars").note == "no rows, so no table was made"


def test_plan_and_summary_say_that_delta_rs_merges_and_which_files(loader: Loader) -> None:
    loader.load("SELECT id, 'a' AS name FROM range(0, 100, 1, 4)")
    more = "SELECT id, 'b' AS name FROM range(95, 105)"
    planned = loader.plan(more, mode="upsert", merge_keys="id", writer="auto")
    done = loader.upsert(more, writer="auto")
    assert planned.strategy == done.strategy == "merge by delta-rs"
    assert planned.files is not None
    assert planned.files == done.files == FilesUsed(scanned=1, skipped=3, rewritten=1)
    again = loader.plan(more, mode="upsert", merge_keys="id", writer="auto")
    assert again.strategy == "no commit: nothing changes"


def test_files_of_a_table_in_partitions_are_told_as_well(loader: Loader) -> None:
    loader.load("SELECT id, 'a' AS name, id % 2 AS p FROM range(0, 100, 1, 4)", partition_by=["p"])
    more = "SELECT id, 'b' AS name, id % 2 AS p FROM range(95, 105)"
    planned = loader.plan(more, mode="upsert", merge_keys="id", writer="auto")
    done = loader.upsert(more, writer="auto")
    assert planned.files == done.files == FilesUsed(scanned=2, skipped=6, rewritten=2)


def test_a_strategy_of_sparks_is_followed_by_spark(loader: Loader) -> None:
    loader.upsert(ROWS)
    with pytest.raises(UnsupportedOperation, match="`strategy: merge` is Spark's"):
        loader.upsert(MORE, writer="deltars", strategy="merge")
    loader.upsert(MORE, writer="auto", strategy="merge")
    assert committed_by(loader, loader.version()) == "spark"


def test_what_changes_nothing_makes_no_commit(loader: Loader) -> None:
    loader.upsert(ROWS)
    for info in (
        loader.upsert(ROWS, writer="deltars"),
        loader.load("SELECT * FROM (SELECT 1 AS id) WHERE id > 1", writer="deltars"),
    ):
        assert (info.committed, info.version, "no commit" in info.note) == (False, 0, True)
    assert loader.version() == 0


def test_the_rows_that_the_last_commit_merged_are_not_merged_again(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    merges: list[int] = []
    merge = EpochTable.merge

    def counted(self: EpochTable, rows: Any, *rest: Any) -> Any:
        merges.append(rows.num_rows)
        return merge(self, rows, *rest)

    monkeypatch.setattr(EpochTable, "merge", counted)
    loader.upsert(ROWS)
    loader.upsert(MORE, writer="auto")
    again = loader.upsert(MORE, writer="auto")
    assert (again.committed, again.rows_unchanged, merges) == (False, 2, [2])
    assert again.files == FilesUsed(scanned=0, skipped=len(loader.files()), rewritten=0)
    other = loader.upsert(MORE, writer="auto", update_condition="source.id >= target.id")
    assert (other.committed, merges) == (False, [2, 2])  # another merge of the same rows
    loader.upsert("(2, 'z', 9D) AS t(id, name, x)", writer="spark")
    assert loader.upsert(MORE, writer="auto").rows_updated == 1  # upon another version
    assert merges == [2, 2, 2]


def test_rows_that_may_differ_the_next_time_are_known(loader: Loader) -> None:
    spark = loader.spark
    assert hybrid.is_repeatable(spark.sql("SELECT id, current_date() AS day FROM range(3)"))
    assert not hybrid.is_repeatable(spark.range(3).filter("rand() < 0.5"))
    assert not hybrid.is_repeatable(spark.sql("SELECT uuid() AS id").select("id"))


def test_rows_that_were_not_inserted_whole_are_merged_again(loader: Loader) -> None:
    asked = {"writer": "auto", "insert_columns": ["id"]}
    loader.upsert(ROWS)
    assert loader.upsert(MORE, **asked).rows_inserted == 1
    assert loader.upsert(MORE, **asked).rows_updated == 1
    assert loader.upsert(MORE, **asked).committed is False
    assert (3, "d", 3.0) in loader.rows()


def test_rows_that_delete_find_nothing_the_second_time(loader: Loader) -> None:
    asked = {"writer": "auto", "delete_condition": "source.name = 'c'"}
    loader.upsert(ROWS)
    first, again = (loader.upsert(MORE, **asked) for _ in range(2))
    assert (first.rows_deleted, first.rows_inserted) == (1, 1)
    assert (again.committed, again.rows_unchanged) == (False, 1)
    assert again.rows_dropped == {"delete_condition without a match": 1}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"update_condition": "lower(source.name) > target.name"}, "update_condition"),
        ({"delete_condition": "source.name = target.name"}, "delete_condition"),
        ({"not_matched_by_source": "delete"}, "lacks"),
        ({"change_feed": True}, "properties"),
        ({"merge_keys": "x"}, "key"),
    ],
)
def test_what_delta_rs_cannot_do_alike_is_refused_when_forced_and_done_by_spark_else(
    loader: Loader, options: dict[str, Any], reason: str
) -> None:
    loader.upsert("(1, 'a', 1.5D) AS t(id, name, x)")
    with pytest.raises(UnsupportedOperation, match=reason):
        loader.upsert(MORE, writer="deltars", **options)
    loader.upsert(MORE, writer="auto", **options)
    assert committed_by(loader, loader.version()) == "spark"


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (f"{SET} (delta.enableDeletionVectors = true)", "feature"),
        ("ALTER TABLE THIS ADD CONSTRAINT positive CHECK (id > 0)", "constraint"),
        ("ALTER TABLE THIS ADD COLUMN place STRUCT<city: STRING>", "type"),
        (
            "ALTER TABLE THIS SET TBLPROPERTIES (delta.autoOptimize.autoCompact = true)",
            "autoCompact",
        ),
        ("ALTER TABLE THIS SET TBLPROPERTIES (`parquet.block.size` = 1000000)", "Parquet"),
        ("ALTER TABLE THIS ADD COLUMN short VARCHAR(3)", "length"),
    ],
)
def test_a_table_that_delta_rs_would_not_keep_as_it_is_is_written_by_spark(
    loader: Loader, statement: str, reason: str
) -> None:
    loader.upsert(ROWS)
    loader.sql(statement)
    with pytest.raises(UnsupportedOperation, match=reason):
        loader.upsert(MORE, writer="deltars")
    loader.upsert(MORE, writer="auto")
    assert committed_by(loader, loader.version()) == "spark"


def test_large_batches_and_large_tables_are_sparks(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader.upsert(ROWS)
    monkeypatch.setattr(hybrid, "MAX_TOUCHED_BYTES", 1)
    loader.upsert(MORE, writer="auto")
    monkeypatch.setattr(hybrid, "MAX_TOUCHED_BYTES", 10**9)
    monkeypatch.setattr(hybrid, "MAX_BATCH_BYTES", 1)
    loader.load("(4, 'e', 4D) AS t(id, name, x)", writer="auto")
    assert [committed_by(loader, n) for n in (1, 2)] == ["spark", "spark"]


def made_by_another(loader: Loader, rows: str, **options: str) -> None:
    """A table whose moments are in the form that Spark writes unless it is told otherwise."""
    other = loader.spark.newSession()
    other.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    writer = other.sql(f"SELECT * FROM VALUES {rows}").write.format("delta").options(**options)
    writer.save(str(loader.path))


@pytest.mark.parametrize("year", ["0200", "9999"])
def test_moments_that_delta_rs_would_read_wrongly_are_left_to_spark(
    loader: Loader, year: str
) -> None:
    """Spark's INT96 becomes nanoseconds, which end in 2262: a rewritten row would change."""
    made_by_another(loader, f"(1, TIMESTAMP'{year}-01-01 00:00:00Z'), (2, NULL) AS t(id, at)")
    with pytest.raises(UnsupportedOperation, match="cannot represent"):
        loader.upsert("(2, TIMESTAMP'2026-01-01 00:00:00Z') AS t(id, at)", writer="deltars")
    loader.upsert("(2, TIMESTAMP'2026-01-01 00:00:00Z') AS t(id, at)", writer="auto")
    assert [row[1].year for row in loader.rows()] == [int(year), 2026]
    added = loader.load("(3, TIMESTAMP'2026-01-01 00:00:00Z') AS t(id, at)", writer="deltars")
    assert committed_by(loader, added.version or 0) == "deltars"  # nothing is rewritten by it


@pytest.mark.parametrize("year", ["0200", "9999"])
def test_moments_that_we_wrote_are_read_by_delta_rs_as_they_are(loader: Loader, year: str) -> None:
    """Our sessions write microseconds, so the old form is not met in tables of ours."""
    loader.upsert(f"(1, TIMESTAMP'{year}-01-01 00:00:00Z'), (2, NULL) AS t(id, at)")
    loader.upsert("(2, TIMESTAMP'2026-01-01 00:00:00Z') AS t(id, at)", writer="deltars")
    assert [row[1].year for row in loader.rows()] == [int(year), 2026]


def test_moments_without_statistics_are_left_to_spark(loader: Loader) -> None:
    rows = "(1, TIMESTAMP'2026-01-01 00:00:00Z') AS t(id, at)"
    made_by_another(loader, rows, **{"delta.dataSkippingNumIndexedCols": "1"})
    with pytest.raises(UnsupportedOperation, match="cannot represent"):
        loader.upsert("(1, NULL) AS t(id, at)", writer="deltars")


def test_a_batch_that_may_grow_on_its_way_is_not_collected(loader: Loader) -> None:
    many = "SELECT id, name, x FROM (SELECT 5L AS id, 'f' AS name, 5D AS x, explode(array(1)) AS n)"
    assert hybrid.bounded_bytes(loader.spark.sql(many)) is None
    assert hybrid.bounded_bytes(loader.spark.range(10)) == 80


@pytest.mark.parametrize("lands", [True, False])
def test_an_outcome_that_is_not_known_is_looked_up(
    loader: Loader, monkeypatch: pytest.MonkeyPatch, lands: bool
) -> None:
    loader.upsert(ROWS)
    merge = BatchTable.merge

    def cut_off(self: BatchTable, *arguments: Any) -> Any:
        if lands:
            merge(self, *arguments)
        raise CommitConflict("the answer was lost")

    monkeypatch.setattr(BatchTable, "merge", cut_off)
    if lands:
        info = loader.upsert(MORE, writer="deltars")
        assert (info.committed, info.version, info.rows_updated) == (True, 1, None)
    else:
        with pytest.raises(CommitConflict):
            loader.upsert(MORE, writer="deltars")
    assert loader.version() == int(lands)


@pytest.mark.parametrize("options", [{"mode": "upsert", "merge_keys": "id"}, {}])
def test_a_number_that_another_run_took_meanwhile_stops_the_batch(
    loader: Loader, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    """The batch of that number is another one, so this one's rows are not in the table."""
    loader.upsert(ROWS)
    made = BatchTable.__init__

    def overtaken(self: BatchTable, location: str) -> None:
        monkeypatch.setattr(BatchTable, "__init__", made)
        note = {"userMetadata": '{"batch": "of another run"}'}
        properties = CommitProperties(
            custom_metadata=note, app_transactions=[Transaction("loader", 2)]
        )
        rows = pa.table({"id": pa.array([7], pa.int32())})
        write_deltalake(
            location, rows, mode="append", schema_mode="merge", commit_properties=properties
        )
        made(self, location)

    monkeypatch.setattr(BatchTable, "__init__", overtaken)
    with pytest.raises(CommitConflict, match="is not the batch 2"):
        loader.load(MORE, writer="deltars", **options)
    assert sorted(row[0] for row in loader.rows()) == [1, 2, 7]


def test_what_delta_rs_stumbles_over_is_sparks(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader.upsert(ROWS)

    def stumbles(*_: Any) -> Any:
        raise EngineError("delta-rs could not do this")

    monkeypatch.setattr(BatchTable, "merge", stumbles)
    monkeypatch.setattr(BatchTable, "add", stumbles)
    assert loader.upsert(MORE, writer="auto").rows_updated == 1
    assert loader.load(MORE, writer="auto").rows_inserted == 2
    with pytest.raises(EngineError, match="could not do this"):
        loader.load(MORE, writer="deltars")


def test_delta_rs_writes_neither_to_a_cluster_nor_to_an_object_store(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader.upsert(ROWS)
    monkeypatch.setattr(hybrid, "is_url", lambda _: True)
    with pytest.raises(UnsupportedOperation, match="object store"):
        loader.upsert(MORE, writer="deltars")
    loader.load(MORE, writer="auto")
    monkeypatch.setattr(hybrid, "is_url", lambda _: False)
    monkeypatch.setattr(hybrid, "is_local", lambda _: False)
    with pytest.raises(UnsupportedOperation, match="cluster"):
        loader.load(MORE, writer="deltars")
    loader.load(MORE, writer="auto")
    assert [committed_by(loader, n) for n in (1, 2)] == ["spark", "spark"]


def test_rows_that_delete_are_told_by_spark_and_deleted_by_delta_rs(loader: Loader) -> None:
    loader.upsert(ROWS)
    gone = {"delete_condition": "source.name = 'c'", "writer": "deltars"}
    info = loader.upsert("(2, 'c', 2D), (3, 'c', 3D), (4, 'd', 4D) AS t(id, name, x)", **gone)
    assert (info.rows_inserted, info.rows_deleted, committed_by(loader, 1)) == (1, 1, "deltars")
    assert sum(info.rows_dropped.values()) == 1
    assert [row[0] for row in loader.rows()] == [1, 4]


def test_files_of_a_certain_size_are_sparks(loader: Loader) -> None:
    loader.upsert(ROWS)
    loader.upsert(MORE, writer="auto", target_file_size="8mb")
    assert committed_by(loader, loader.version()) == "spark"


def test_overwriting_is_sparks() -> None:
    asked = {"table": "t", "mode": "overwrite", "writer": "deltars"}
    assert any("writer" in problem for problem in DeltaSink.model_validate(asked).problems())


def test_a_disk_that_is_nearly_full_is_left_to_spark(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark says what is wrong; delta-rs would break off in the middle."""
    loader.upsert(ROWS)
    monkeypatch.setattr(hybrid, "has_room", lambda *_: False)
    first, second = loader.upsert(MORE, writer="auto"), loader.load(MORE, writer="auto")
    assert (first.version, second.version) == (1, 2)
    assert [committed_by(loader, n) for n in (1, 2)] == ["spark", "spark"]
    with pytest.raises(UnsupportedOperation, match="nearly full"):
        Loader(loader.spark, loader.path.parents[1] / "other").load(ROWS, writer="deltars")


@given(first=batches(*NEAR).filter(bool), second=batches(*NEAR, *FAR), options=OPTIONS)
@settings(
    max_examples=int(os.environ.get("DELTAWORKS_EXAMPLES", "3")),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_both_writers_merge_alike(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    first: Any,
    second: Any,
    options: Any,
) -> None:
    """Against a model of every case without Spark: test_batches.py."""
    ours, theirs = (Loader(spark, tmp_path_factory.mktemp(name)) for name in ("ours", "theirs"))
    ours.upsert(spark.createDataFrame(first, SCHEMA))
    shutil.copytree(ours.path, theirs.path)
    theirs.batch = ours.batch
    seen = []
    for loader, writer in ((theirs, "spark"), (ours, "deltars")):
        info = loader.upsert(spark.createDataFrame(second, SCHEMA), writer=writer, **options)
        counts = (info.rows_inserted, info.rows_updated, info.rows_deleted, info.rows_unchanged)
        seen.append((info.committed, counts, info.rows_dropped, loader.version(), loader.rows()))
    assert repr(seen[0]) == repr(seen[1])  # NaN is not equal to itself
