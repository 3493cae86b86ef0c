"""P2: overwrite replaces the table, or what a predicate covers; the rest of the table survives."""

from __future__ import annotations

import pytest

from deltaworks.errors import InputError, SchemaMismatch
from tests.tables.loader import Loader
from tests.workbench import Workbench

DAYS = "('mon', 1), ('mon', 2), ('tue', 3) AS t(day, n)"


def test_overwrite_replaces_every_row_and_keeps_history_properties_and_rules(
    loader: Loader,
) -> None:
    loader.load(DAYS, properties={"mine": "kept", "delta.logRetentionDuration": "interval 9 days"})
    loader.sql("ALTER TABLE THIS ADD CONSTRAINT positive CHECK (n > 0)")
    info = loader.load("('wed', 9) AS t(day, n)", mode="overwrite")
    assert loader.rows() == [("wed", 9)]
    assert (info.rows_inserted, info.rows_deleted) == (1, 3)
    assert len(loader.rows(version=0)) == 3
    properties = loader.detail()["properties"]
    assert properties["mine"] == "kept"
    assert properties["delta.logRetentionDuration"] == "interval 9 days"
    assert properties["delta.constraints.positive"] == "n > 0"


def test_overwrite_keeps_the_schema_unless_told_otherwise(loader: Loader) -> None:
    loader.load(DAYS, properties={"mine": "kept"})
    with pytest.raises(SchemaMismatch, match=r'~ "n" table int, rows string'):
        loader.load("('wed', 'nine') AS t(day, n)", mode="overwrite")
    assert loader.version() == 1  # the property, which came after the rows
    loader.load("('nine', true) AS t(n, extra)", mode="overwrite", overwrite_schema=True)
    assert loader.types() == {"n": "string", "extra": "boolean"}
    assert loader.detail()["properties"]["mine"] == "kept"
    assert [len(row) for row in loader.rows(version=0)] == [2, 2, 2]


def test_partitions_are_changed_by_a_rewrite_that_keeps_history(loader: Loader) -> None:
    loader.load(DAYS)
    with pytest.raises(SchemaMismatch, match=r"partitioned by \(\), the pipeline asks for \(day\)"):
        loader.load(DAYS, partition_by="day")
    loader.load(DAYS, mode="overwrite", overwrite_schema=True, partition_by="day")
    assert loader.detail()["partitionColumns"] == ["day"]
    assert len(loader.rows(version=0)) == 3
    # said nothing, the next rewrite keeps them
    loader.load(DAYS, mode="overwrite", overwrite_schema=True)
    assert loader.detail()["partitionColumns"] == ["day"]


@pytest.mark.parametrize("partition_by", [(), ("day",)])
def test_replace_where_replaces_only_what_it_covers(
    loader: Loader, partition_by: tuple[str, ...]
) -> None:
    options = {"partition_by": partition_by, "mode": "overwrite", "replace_where": "day = 'mon'"}
    loader.load(DAYS, partition_by=partition_by)
    info = loader.load("('mon', 7) AS t(day, n)", **options)
    assert loader.rows() == [("mon", 7), ("tue", 3)]
    assert (info.rows_inserted, info.rows_deleted) == (1, 2)


def test_an_empty_batch_clears_what_replace_where_covers_and_then_nothing(loader: Loader) -> None:
    loader.load(DAYS)
    nothing = "SELECT 'mon' AS day, 1 AS n WHERE false"
    cleared = loader.load(nothing, mode="overwrite", replace_where="day = 'mon'")
    assert (cleared.committed, cleared.rows_inserted) == (True, 0)
    assert loader.rows() == [("tue", 3)]
    again = loader.load(nothing, mode="overwrite", replace_where="day = 'mon'")
    assert (again.committed, loader.version()) == (False, 1)
    assert loader.load(nothing, mode="overwrite").rows_deleted == 1
    assert loader.load(nothing, mode="overwrite").committed is False


def test_a_row_outside_replace_where_is_refused_whether_or_not_there_is_a_table(
    bench: Workbench,
) -> None:
    bench.write("in.csv", "day,n\nmon,1\ntue,2\n")
    load = "load: {type: delta, table: t, mode: overwrite, replace_where: \"day = 'mon'\"}\n"
    bench.pipeline("p", f"extract: {{type: csv, path: in.csv}}\n{load}")
    for version in (None, 0):
        failed = bench.fail("p")
        assert failed.code == 1
        assert "outside replace_where (day = 'mon')" in failed.stderr
        assert "tue" in failed.stderr
        assert bench.version("t") == version
        if version is None:
            bench.write("in.csv", "day,n\nmon,1\n")
            bench.run("p")
            bench.write("in.csv", "day,n\nmon,1\ntue,2\n")


def test_ignore_leaves_a_table_alone_and_makes_one_where_none_is(loader: Loader) -> None:
    assert loader.load(DAYS, mode="ignore").rows_inserted == 3
    info = loader.load("('wed', 9) AS t(day, n)", mode="ignore")
    assert (info.committed, info.rows_inserted) == (False, 0)
    assert "mode ignore" in info.note
    assert loader.plan(DAYS, mode="ignore").note == info.note
    assert (len(loader.rows()), loader.version()) == (3, 0)


def test_error_refuses_a_table_that_exists(loader: Loader) -> None:
    loader.load(DAYS, mode="error")
    with pytest.raises(InputError, match='table "t" exists already') as caught:
        loader.load(DAYS, mode="error")
    assert "append, overwrite or upsert" in caught.value.hint
    assert loader.version() == 0


def test_a_plan_tells_what_an_overwrite_would_do(loader: Loader) -> None:
    new = loader.plan(DAYS, mode="overwrite")
    assert (new.exists, new.rows_to_insert, new.rows_to_delete) == (False, 3, 0)
    loader.load(DAYS)
    whole = loader.plan("('wed', 9) AS t(day, n)", mode="overwrite")
    assert (whole.exists, whole.rows_to_insert, whole.rows_to_delete) == (True, 1, 3)
    part = loader.plan("('mon', 9) AS t(day, n)", mode="overwrite", replace_where="day = 'mon'")
    assert (part.rows_to_insert, part.rows_to_delete) == (1, None)
    schema = loader.plan("(true) AS t(n)", mode="overwrite", overwrite_schema=True)
    assert {change.column for change in schema.schema_changes} == {"n", "day"}
    assert loader.version() == 0
