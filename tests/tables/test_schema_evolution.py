"""P4: tables grow by columns, nested fields and wider types; any other difference is shown."""

from __future__ import annotations

from typing import Any

import pytest

from deltaworks.errors import SchemaMismatch
from tests.tables.loader import Loader
from tests.workbench import Workbench

BASE = "SELECT 1L AS id, named_struct('a', 1L, 'b', 2L) AS s"
MODES: dict[str, dict[str, Any]] = {"append": {}, "upsert": {"mode": "upsert", "merge_keys": "id"}}
each_mode = pytest.mark.parametrize("mode", MODES)


@each_mode
def test_new_columns_and_nested_fields_are_added_when_asked(loader: Loader, mode: str) -> None:
    loader.load(BASE, **MODES[mode])
    batch = (
        "SELECT 2L AS id, named_struct('c', 9, 'b', 4L, 'a', 3L) AS s, 'new' AS extra, "
        "array(1) AS list"
    )
    with pytest.raises(SchemaMismatch) as caught:
        loader.load(batch, **MODES[mode])
    assert '+ "extra" string (not in the table)' in caught.value.message
    assert '+ "s.c" int' in caught.value.message
    assert "merge_schema: true" in caught.value.hint
    assert loader.version() == 0
    planned = loader.plan(batch, merge_schema=True, **MODES[mode])
    assert {change.column for change in planned.schema_changes} == {"extra", "list", "s.c"}
    loader.load(batch, merge_schema=True, **MODES[mode])
    rows = {row["id"]: row for row in loader.frame().collect()}
    assert rows[2]["s"].asDict() == {"a": 3, "b": 4, "c": 9}
    assert (rows[2]["extra"], rows[2]["list"], rows[1]["extra"]) == ("new", [1], None)
    assert rows[1]["s"].asDict() == {"a": 1, "b": 2, "c": None}


@each_mode
def test_values_that_fit_are_cast_and_nested_fields_go_by_name(loader: Loader, mode: str) -> None:
    loader.load(
        "SELECT 1L AS id, named_struct('a', 1L, 'b', 2L) AS s, "
        "array(named_struct('p', 1L, 'q', 2L)) AS l, map('k', named_struct('p', 1L, 'q', 2L)) AS m",
        **MODES[mode],
    )
    loader.load(
        "SELECT 2 AS id, named_struct('b', 20, 'a', 10) AS s, "
        "array(named_struct('q', 20, 'p', 10)) AS l, map('k', named_struct('q', 20)) AS m",
        **MODES[mode],
    )
    row = loader.frame().filter("id = 2").collect()[0]
    assert row["s"].asDict() == {"a": 10, "b": 20}
    assert row["l"][0].asDict() == {"p": 10, "q": 20}
    assert row["m"]["k"].asDict() == {"p": None, "q": 20}
    assert loader.types()["s"] == "struct<a:bigint,b:bigint>"


def test_a_missing_column_or_nested_field_becomes_null(loader: Loader) -> None:
    loader.load(BASE)
    loader.load("SELECT 2L AS id, named_struct('a', 5) AS s")
    loader.load("SELECT 3L AS id")
    rows = {row["id"]: row["s"] for row in loader.frame().collect()}
    assert (rows[2].asDict(), rows[3]) == ({"a": 5, "b": None}, None)


def test_an_upsert_leaves_columns_the_batch_does_not_have(loader: Loader) -> None:
    loader.upsert("SELECT 1 AS id, 'a' AS v, 'keep' AS w")
    loader.upsert("SELECT 1 AS id, 'b' AS v UNION ALL SELECT 2, 'c'")
    assert loader.rows() == [(1, "b", "keep"), (2, "c", None)]


@each_mode
def test_a_type_that_does_not_fit_is_refused_with_a_diff(loader: Loader, mode: str) -> None:
    loader.load(BASE, **MODES[mode])
    batch = "SELECT 'x' AS id, named_struct('a', 1.5D, 'b', 2L) AS s"
    with pytest.raises(SchemaMismatch) as caught:
        loader.load(batch, merge_schema=True, **MODES[mode])
    assert '~ "id" table bigint, rows string (changed)' in caught.value.message
    assert '~ "s.a" table bigint, rows double (changed)' in caught.value.message
    assert "cast the columns" in caught.value.hint
    assert loader.version() == 0


@each_mode
def test_types_are_widened_only_where_the_table_has_it_switched_on(
    loader: Loader, mode: str
) -> None:
    loader.load("SELECT 1 AS id, 1 AS n", **MODES[mode])
    wider = "SELECT 2 AS id, 3000000000L AS n"
    with pytest.raises(SchemaMismatch, match=r'"n" table int, rows bigint'):
        loader.load(wider, merge_schema=True, **MODES[mode])
    switched_on = {"properties": {"delta.enableTypeWidening": True}}
    with pytest.raises(SchemaMismatch, match=r'"n" table int, rows bigint'):
        loader.load(wider, **switched_on, **MODES[mode])
    assert loader.version() == 0  # refused before the table was touched
    loader.load(wider, merge_schema=True, **switched_on, **MODES[mode])
    assert loader.types()["n"] == "bigint"
    assert loader.rows() == [(1, 1), (2, 3000000000)]


def test_an_overwrite_may_add_columns_too(loader: Loader) -> None:
    loader.load("(1) AS t(id)")
    loader.load("(2, 'x') AS t(id, v)", mode="overwrite", merge_schema=True)
    assert loader.rows() == [(2, "x")]


def test_the_diff_reaches_the_person_who_runs_the_pipeline(bench: Workbench) -> None:
    bench.write("in.csv", "id,v\n1,a\n")
    bench.pipeline(
        "p",
        "extract: {type: csv, path: in.csv}\nload: {type: delta, table: t, change_feed: true}\n",
    )
    bench.run("p")
    bench.write("in.csv", "id,w\n1,a\n")
    failed = bench.fail("p")
    assert failed.code == 1
    assert '+ "w" string (not in the table)' in failed.stderr
    assert len(failed.stderr.strip().splitlines()) <= 6
    assert bench.version("t") == 0
