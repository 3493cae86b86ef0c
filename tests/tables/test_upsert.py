"""P3: an upsert updates what matches, inserts what does not, and does what its conditions say."""

from __future__ import annotations

from deltaworks.contracts.context import BatchWrite
from deltaworks.model.commit import Txn
from tests.tables.loader import Loader
from tests.workbench import Workbench

THREE = "(1, 'a', 10), (2, 'b', 10), (3, 'c', 10) AS t(id, v, ts)"


def test_upsert_by_one_key_updates_inserts_and_leaves_the_rest(loader: Loader) -> None:
    loader.upsert(THREE)
    batch = "(2, 'B', 10), (3, 'c', 10), (4, 'd', 10) AS t(id, v, ts)"
    plan = loader.plan(batch, mode="upsert", merge_keys="id")
    info = loader.upsert(batch)
    assert loader.rows() == [(1, "a", 10), (2, "B", 10), (3, "c", 10), (4, "d", 10)]
    counts = (info.rows_inserted, info.rows_updated, info.rows_deleted, info.rows_unchanged)
    assert counts == (1, 1, 0, 1)
    planned = (plan.rows_to_insert, plan.rows_to_update, plan.rows_to_delete, plan.rows_unchanged)
    assert planned == counts
    assert "MERGE INTO" in plan.sql


def test_upsert_by_several_keys_matches_all_of_them(loader: Loader) -> None:
    loader.upsert("('nl', 1, 'x'), ('de', 1, 'x') AS t(c, id, v)", merge_keys=["c", "id"])
    loader.upsert("('de', 1, 'y'), ('de', 2, 'y') AS t(C, ID, v)", merge_keys=["C", "Id"])
    assert loader.rows() == [("de", 1, "y"), ("de", 2, "y"), ("nl", 1, "x")]


def test_a_row_whose_update_condition_is_false_or_null_counts_as_unchanged(loader: Loader) -> None:
    loader.upsert(THREE)
    info = loader.upsert(
        "(1, 'old', 9), (2, 'new', 11), (3, 'unknown', null) AS t(id, v, ts)",
        update_condition="source.ts > target.ts",
    )
    assert loader.rows() == [(1, "a", 10), (2, "new", 11), (3, "c", 10)]
    assert (info.rows_updated, info.rows_unchanged) == (1, 2)


def test_conditions_may_name_nested_fields(loader: Loader) -> None:
    loader.upsert("SELECT 1 AS id, named_struct('ts', 5) AS meta")
    conditions = {
        "update_condition": "source.meta.ts > target.meta.ts",
        "delete_condition": "target.meta.ts > 6 AND source.id > 0",
    }
    loader.upsert(
        "SELECT 1 AS id, named_struct('ts', 7) AS meta UNION ALL SELECT 2, named_struct('ts', 1)",
        **conditions,
    )
    assert [tuple(row[1]) for row in loader.rows()] == [(7,), (1,)]
    loader.upsert("SELECT 1 AS id, named_struct('ts', 8) AS meta", **conditions)
    assert [row[0] for row in loader.rows()] == [2]


def test_a_delete_condition_deletes_matches_and_ignores_the_rest(loader: Loader) -> None:
    loader.upsert(THREE)
    info = loader.upsert(
        "(1, 'gone', 0), (2, 'B', 12), (9, 'gone', 0) AS t(id, v, ts)",
        delete_condition="source.v = 'gone' AND coalesce(target.ts, 0) < 99",
    )
    assert loader.rows() == [(2, "B", 12), (3, "c", 10)]
    assert (info.rows_deleted, info.rows_updated, info.rows_inserted) == (1, 1, 0)
    assert info.rows_dropped == {"delete_condition without a match": 1}


def test_a_batch_of_deletes_without_a_match_changes_nothing(loader: Loader) -> None:
    loader.upsert(THREE)
    info = loader.upsert("(9, 'gone', 0) AS t(id, v, ts)", delete_condition="source.v = 'gone'")
    assert (info.committed, loader.version()) == (False, 0)
    assert info.rows_dropped == {"delete_condition without a match": 1}


def test_the_first_batch_leaves_out_rows_that_only_delete_and_accounts_for_them(
    bench: Workbench,
) -> None:
    bench.write("in.csv", "id,op\n1,U\n2,D\n3,D\n")
    sink = "type: delta, table: t, mode: upsert, merge_keys: id"
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\n"
        f"load: {{{sink}, delete_condition: \"source.op = 'D'\"}}\n",
    )
    planned = bench.cli("plan", "p", "--json").json["outputs"][0]
    assert (planned["rows_to_insert"], planned["rows_to_delete"]) == (1, 0)
    batch = bench.run("p")["batches"][0]
    assert (batch["rows_read"], batch["rows_dropped"]) == (3, 2)
    assert batch["outputs"][0]["rows_inserted"] == 1
    assert bench.rows("t") == [{"id": "1", "op": "U"}]


def test_update_columns_limits_what_an_update_sets(loader: Loader) -> None:
    loader.upsert(THREE)
    info = loader.upsert(
        "(1, 'A', 20), (2, 'b', 20), (4, 'd', 20) AS t(id, v, ts)", update_columns="v"
    )
    assert loader.rows() == [(1, "A", 10), (2, "b", 10), (3, "c", 10), (4, "d", 20)]
    assert (info.rows_updated, info.rows_unchanged) == (1, 1)


def test_insert_columns_limits_what_an_insert_fills_from_the_first_batch_on(
    loader: Loader,
) -> None:
    loader.upsert(THREE, insert_columns="v")
    assert loader.rows() == [(1, "a", None), (2, "b", None), (3, "c", None)]
    loader.upsert("(3, 'c', 5), (4, 'd', 5) AS t(id, v, ts)", insert_columns="v")
    assert loader.rows()[2:] == [(3, "c", 5), (4, "d", None)]


def test_a_column_that_only_a_condition_reads_does_not_reach_the_table(loader: Loader) -> None:
    columns = {"update_columns": ["v"], "insert_columns": ["v"]}
    for op, version in (("U", 0), ("D", 1)):
        batch = f"SELECT 1 AS id, 'a' AS v, '{op}' AS op"
        loader.upsert(batch, delete_condition="source.op = 'D'", **columns)
        assert (list(loader.types()), loader.version()) == (["id", "v"], version)
    assert loader.rows() == []


def test_keys_alone_are_inserted_once(loader: Loader) -> None:
    loader.upsert("(1), (2) AS t(id)")
    info = loader.upsert("(2), (3) AS t(id)")
    assert loader.rows() == [(1,), (2,), (3,)]
    assert (info.rows_inserted, info.rows_unchanged) == (1, 1)


def test_rows_the_batch_does_not_have_can_be_deleted(loader: Loader) -> None:
    loader.upsert(THREE)
    batch = "(2, 'b', 10), (4, 'd', 10) AS t(id, v, ts)"
    options = {"not_matched_by_source": "delete"}
    planned = loader.plan(batch, mode="upsert", merge_keys="id", **options)
    info = loader.upsert(batch, **options)
    assert loader.rows() == [(2, "b", 10), (4, "d", 10)]
    assert (info.rows_inserted, info.rows_deleted, info.rows_unchanged) == (1, 2, 1)
    assert (planned.rows_to_insert, planned.rows_to_delete) == (1, 2)
    assert loader.upsert(batch, **options).committed is False


def test_rows_equal_to_the_tables_make_no_commit(loader: Loader) -> None:
    loader.upsert("(1, 'a'), (2, null) AS t(id, v)")
    info = loader.upsert("(1, 'a'), (2, null) AS t(id, v)")
    assert (info.committed, info.rows_unchanged, loader.version()) == (False, 2, 0)


def test_maps_arrays_and_structs_are_compared_by_value(loader: Loader) -> None:
    def batch(n: int, micros: str = "000001") -> str:
        return (
            f"SELECT 1 AS id, map('k', timestamp'2026-01-01 00:00:00.{micros}') AS m, "
            f"array(named_struct('x', {n})) AS a, named_struct('y', {n}) AS s"
        )

    loader.upsert(batch(1))
    assert loader.upsert(batch(1)).committed is False
    assert loader.upsert(batch(2)).rows_updated == 1
    # a microsecond inside a map is a difference too
    assert loader.upsert(batch(2, "000002")).rows_updated == 1
    row = loader.frame().collect()[0]
    assert (row["a"][0]["x"], row["s"]["y"], row["m"]["k"].microsecond) == (2, 2, 2)


def test_odd_column_names_are_taken_as_they_are(loader: Loader) -> None:
    mapped = {"properties": {"delta.columnMapping.mode": "name"}}
    names = "AS t(`order id`, `a.b`, `tick``s`, `größe`)"
    keys = {"merge_keys": ["order id", "a.b"]}
    loader.upsert(f"(1, 'x', 1, 1), (2, 'x', 1, 1) {names}", **keys, **mapped)
    info = loader.upsert(
        f"(1, 'x', 2, 1), (1, 'y', 1, 1) {names}",
        update_condition="source.`tick``s` > target.`tick``s`",
        **keys,
        **mapped,
    )
    assert (info.rows_updated, info.rows_inserted) == (1, 1)
    assert loader.rows() == [(1, "x", 2, 1), (1, "y", 1, 1), (2, "x", 1, 1)]


def test_a_table_with_the_key_twice_is_updated_in_both_places(loader: Loader) -> None:
    loader.load("(1, 'a'), (1, 'b'), (2, 'c') AS t(id, v)")
    info = loader.upsert("(1, 'new'), (3, 'd') AS t(id, v)")
    assert loader.rows() == [(1, "new"), (1, "new"), (2, "c"), (3, "d")]
    assert (info.rows_updated, info.rows_inserted) == (2, 1)


def test_a_plan_of_a_first_upsert_counts_what_it_would_insert(loader: Loader) -> None:
    planned = loader.plan(THREE, mode="upsert", merge_keys="id", delete_condition="source.id = 1")
    assert (planned.exists, planned.rows_to_insert, planned.rows_to_drop) == (False, 2, 1)


def test_the_offline_plan_shows_the_merge_without_an_engine(loader: Loader) -> None:
    sink = loader.sink(mode="upsert", merge_keys=["id"], delete_condition="target.v = source.v")
    sql = sink.plan_offline(loader.context.project_ctx).sql
    assert "ON target.`id` = source.`id`" in sql
    assert "WHEN MATCHED AND (target.v = source.v\n) THEN DELETE" in sql
    assert "WHEN NOT MATCHED AND NOT coalesce(NULL = source.v, false)" in sql


def test_loaded_anew_rows_that_only_delete_are_left_out(loader: Loader) -> None:
    loader.upsert("(1, 'a'), (2, 'b') AS t(id, v)")
    sink = loader.sink(mode="upsert", merge_keys="id", delete_condition="source.v = 'gone'")
    write = BatchWrite(n=9, txn=Txn("anew", 9), user_metadata="{}", replace=True)
    frame = loader.spark.sql("SELECT * FROM VALUES (1, 'c'), (3, 'gone') AS t(id, v)")
    info = sink.write(loader.context, frame, write)
    assert loader.rows() == [(1, "c")]
    assert (info.rows_inserted, info.rows_dropped) == (1, {"delete_condition without a match": 1})
