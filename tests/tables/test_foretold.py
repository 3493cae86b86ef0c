"""A plan refuses what the run would refuse, and shows all that it would change in the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from deltaworks.engines.deltars.write.batches import BatchTable
from deltaworks.errors import DeltaworksError, EngineError
from tests.tables.loader import Loader

OVERWRITE: dict[str, Any] = {"mode": "overwrite"}
UPSERT: dict[str, Any] = {"mode": "upsert", "merge_keys": "id"}
ROWS = "(1, 'b') AS t(id, v)"


def made(loader: Loader, **properties: str) -> None:
    """A table with one row, made without Spark."""
    rows = pa.table({"id": pa.array([1], pa.int32()), "v": ["a"]})
    write_deltalake(str(loader.path), rows, configuration=properties)


def shown(loader: Loader, rows: str, **options: Any) -> list[str]:
    return [change.text() for change in loader.plan(rows, **options).schema_changes]


def refused(loader: Loader, rows: str, **options: Any) -> str:
    """How plan and run refuse a batch: in the same words."""
    told = []
    for verb in (loader.plan, loader.load):
        with pytest.raises(DeltaworksError) as caught:
            verb(rows, **options)
        told.append(f"{caught.value.code} {caught.value.message}")
    assert told[0] == told[1]
    return told[0]


@pytest.mark.parametrize("options", [OVERWRITE, UPSERT])
def test_rows_of_an_append_only_table_stay(loader: Loader, options: dict[str, Any]) -> None:
    made(loader, **{"delta.appendOnly": "true"})
    assert "is append-only" in refused(loader, ROWS, **options)
    assert loader.version() == 0
    if options is UPSERT:
        assert loader.load("(2, 'b') AS t(id, v)", **options).rows_inserted == 1


def test_a_place_with_files_of_others_is_refused_by_the_plan(loader: Loader) -> None:
    loader.path.mkdir(parents=True)
    (loader.path / "notes.txt").write_text("mine")
    for options in ({}, UPSERT):
        assert "holds files and is not a Delta table" in refused(loader, ROWS, **options)


def test_what_only_spark_can_write_is_refused_by_the_plan_where_delta_rs_is_asked_for(
    loader: Loader,
) -> None:
    nested = "SELECT 1 AS id, array(1) AS v"
    for options in ({}, UPSERT):
        assert "delta-rs cannot write" in refused(loader, nested, writer="deltars", **options)
    loader.load(nested)
    assert "delta-rs cannot write" in refused(loader, nested, writer="deltars")


def test_a_plan_shows_what_the_run_would_set(loader: Loader) -> None:
    made(loader, **{"delta.logRetentionDuration": "interval 3 days"})
    asked: dict[str, Any] = {
        "properties": {"delta.logRetentionDuration": "interval 9 days"},
        "change_feed": True,
        "cluster_by": ["id"],
    }
    lines = shown(loader, "(2) AS t(id)", **asked)
    assert lines == [
        '- "v" string (not in the rows: becomes NULL)',
        '~ property "delta.enableChangeDataFeed" was not set, will be true',
        '~ property "delta.logRetentionDuration" was interval 3 days, will be interval 9 days',
        "~ clustered by (), then by (id)",
    ]
    loader.load("(2) AS t(id)", **asked)
    assert shown(loader, "(2, 'x') AS t(id, v)", **asked) == []
    missing = '- "v" string (not in the rows: stays as it is, and NULL in new rows)'
    assert shown(loader, "(2) AS t(id)", **UPSERT) == [missing]


def test_a_plan_shows_what_an_overwrite_of_the_schema_would_change(loader: Loader) -> None:
    text, number = PrimitiveType("string"), PrimitiveType("integer")
    key = Field("id", number, nullable=False, metadata={"comment": "the key"})
    schema = Schema([key, Field("v", text), Field("w", text)])
    DeltaTable.create(str(loader.path), schema)
    asked: dict[str, Any] = {**OVERWRITE, "overwrite_schema": True, "partition_by": ["v"]}
    assert shown(loader, "('x', 1L) AS t(v, id)", **asked) == [
        '~ "id" table int, rows bigint (changed)',
        '- "w" string (not in the rows: taken out of the table)',
        '~ "id" was NOT NULL, will be NULL allowed',
        '~ "id" loses its comment: "the key"',
        "~ columns in another order: id, v; then v, id",
        "~ partitioned by (), then by (v)",
    ]
    loader.load("('x', 1L) AS t(v, id)", **asked)
    stands = loader.frame().schema.jsonValue()["fields"]
    assert [(one["name"], one["nullable"], one["metadata"]) for one in stands] == [
        ("v", True, {}),
        ("id", True, {}),
    ]


def test_a_plan_leaves_to_spark_what_delta_rs_stumbles_over(
    loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(loader)

    def stumbles(*_: Any, **__: Any) -> str:
        raise EngineError("delta-rs could not do this")

    monkeypatch.setattr(BatchTable, "problem", stumbles)
    for options in ({}, UPSERT):
        assert loader.plan(ROWS, writer="auto", **options).exists
        with pytest.raises(EngineError, match="could not do this"):
            loader.plan(ROWS, writer="deltars", **options)
