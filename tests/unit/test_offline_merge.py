"""`plan --offline` prints the MERGE that runs, as far as it is known without a batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deltaworks.contracts.context import ProjectContext
from deltaworks.engines.spark.delta.merge.merge_sql import merge_sql
from deltaworks.sinks.delta import DeltaSink

BUT_KEYS = "/* all columns of the batch but the keys */"


def sink(**options: Any) -> DeltaSink:
    made = DeltaSink.model_validate(
        {"table": "t", "mode": "upsert", "merge_keys": ["id"], **options}
    )
    assert made.problems() == ()
    return made


def offline(**options: Any) -> str:
    return sink(**options).plan_offline(ProjectContext(root=Path("/p"), warehouse="/w")).sql


def test_what_depends_on_the_batch_is_said_and_not_left_out() -> None:
    assert offline(update_condition="source.ts > target.ts").splitlines() == [
        "MERGE INTO delta.`/w/t` AS target",
        "USING batch AS source",
        "ON target.`id` = source.`id` /* and within the range of the batch's keys */",
        "WHEN MATCHED AND ((source.ts > target.ts",
        f") AND (/* a column differs */)) THEN UPDATE SET {BUT_KEYS}",
        "WHEN NOT MATCHED THEN INSERT /* all columns of the batch */",
    ]


def test_columns_that_the_file_names_are_in_the_statement_as_they_will_be() -> None:
    options: dict[str, Any] = {
        "update_columns": ["v"],
        "insert_columns": ["v", "made"],
        "delete_condition": "source.gone",
        "not_matched_by_source": "delete",
        "merge_schema": True,
    }
    statement = merge_sql(
        sink(**options)._upsert(),
        table="delta.`/w/t`",
        source="batch",
        batch=["id", "v", "made"],
        ways={},
    )
    assert offline(**options) == statement


def test_a_merge_that_updates_no_column_has_no_clause_for_it() -> None:
    assert "UPDATE" not in offline(update_columns=["id"])
    assert "INSERT (`id`) VALUES (source.`id`)" in offline(insert_columns=["ID"])
