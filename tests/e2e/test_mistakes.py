"""Every mistake gets a short message, a place, the right word, its exit code, and harms nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.e2e.screens import assert_screen, assert_short_and_clear
from tests.workbench import Answer, Workbench, run_cli

pytestmark = pytest.mark.spark

HEADER = "order_id,country,amount,updated_at\n"
GOOD = HEADER + "3,NL,7.5,2026-01-02 10:00:00\n4,DE,8,2026-01-02 10:00:00\n"
TYPED = """
transform:
  - name: typed
    type: cast
    columns: {order_id: bigint, amount: double, updated_at: timestamp}
"""
CSV = 'extract: {type: csv, path: "data/orders.csv"}\n'
APPEND = "load: {type: delta, table: orders}\n"
ONLY_NL = "load: {type: delta, table: orders, mode: overwrite, replace_where: country = 'NL'}\n"
UPSERT = "load: {type: delta, table: orders, mode: upsert, merge_keys: [order_id]}\n"


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One wrong thing, the code it ends with, and the words the message must hold."""

    pipeline: str
    exit_code: int
    says: tuple[str, ...]
    data: str = GOOD
    prepare: Callable[[Workbench], Any] = field(default=lambda _: None)
    command: str = "run orders --quiet"
    problems: int = 1


def seed(bench: Workbench) -> None:
    """The table `orders` with two rows, made by delta-rs and not by the code under test."""
    import pyarrow as pa

    rows = {
        "order_id": pa.array([1, 2], pa.int64()),
        "country": ["NL", "DE"],
        "amount": [10.5, 3.0],
        "updated_at": pa.array([1_767_261_600_000_000] * 2, pa.timestamp("us", tz="UTC")),
    }
    write_deltalake(str(bench.table("orders")), pa.table(rows))


def tables(bench: Workbench) -> dict[str, tuple[int, tuple[str, ...]]]:
    """Version and files of every table of the user's."""
    found = {}
    for log in sorted((bench.root / "warehouse").rglob("_delta_log")):
        if "_deltaworks" not in log.parts:
            table = DeltaTable(str(log.parent))
            found[log.parent.name] = (table.version(), tuple(sorted(table.file_uris())))
    return found


def made(bench: Workbench, mistake: Mistake) -> Answer:
    bench.write("data/orders.csv", mistake.data)
    bench.pipeline("orders", mistake.pipeline)
    seed(bench)
    mistake.prepare(bench)
    return run_cli(*mistake.command.split())


def add_constraint(bench: Workbench) -> None:
    table = DeltaTable(str(bench.table("orders")))
    table.alter.add_constraint({"amount_is_positive": "amount >= 0"})


def not_a_table(bench: Workbench) -> None:
    bench.write("exports/orders/part-1.csv", GOOD)


# The first line of a file is `pipeline: orders`; what stands here begins on line 2.
MISTAKES = {
    "secret_in_a_file": Mistake(
        pipeline="extract: {type: csv, path: a, options: {password: hunter2}}\n" + APPEND,
        exit_code=2,
        says=("orders.yaml:2", "deltaworks secrets set NAME password", "credential: NAME"),
    ),
    "unknown_credential": Mistake(
        pipeline='extract: {type: csv, path: "s3://lake/orders"}\n' + APPEND,
        exit_code=2,
        says=('there is no credential "lakes"', "deltaworks secrets set lakes"),
        prepare=lambda bench: bench.write(
            "deltaworks.yaml",
            "project: shop\nwarehouse: ./warehouse\nstorage: {s3://lake: {credential: lakes}}\n",
        ),
    ),
    "unknown_credential_to_test": Mistake(
        pipeline=CSV + APPEND,
        exit_code=2,
        says=('there is no credential "crm"', "deltaworks secrets set crm"),
        command="secrets test crm",
    ),
    "unknown_key": Mistake(
        pipeline=CSV + "load: {type: delta, table: orders, mode: upsert, merge_key: [order_id]}\n",
        exit_code=2,
        says=("pipelines/orders.yaml:3", '"merge_key"', '"merge_keys"'),
    ),
    "unknown_type": Mistake(
        pipeline='extract: {type: cvs, path: "data/orders.csv"}\n' + APPEND,
        exit_code=2,
        says=("pipelines/orders.yaml:2", '"cvs"', '"csv"'),
    ),
    "wrong_value_type": Mistake(
        pipeline='extract:\n  type: csv\n  path: "data/orders.csv"\n  header: [yes]\n' + APPEND,
        exit_code=2,
        says=("pipelines/orders.yaml:5", '"header"'),
    ),
    "wrong_choice": Mistake(
        pipeline=CSV + "load: {type: delta, table: orders, mode: upsrt}\n",
        exit_code=2,
        says=("pipelines/orders.yaml:3", '"upsrt"', '"upsert"'),
    ),
    "broken_yaml": Mistake(
        pipeline='extract: {type: csv, path: "data/orders.csv"\n' + APPEND,
        exit_code=2,
        says=("pipelines/orders.yaml:3",),
    ),
    "five_mistakes_in_one_file": Mistake(
        pipeline=(
            'extract: {type: csv, path: "data/orders.csv", heder: true}\n'
            "transform:\n"
            "  - {type: casst, columns: {order_id: bigint}}\n"
            '  - {type: filter, condition: "amount > ${var:least}"}\n'
            "checks:\n"
            "  - {type: not_null, columns: [order_id], on_fail: quarantin}\n"
            "load: {type: delta, table: orders, mode: upsert}\n"
        ),
        exit_code=2,
        problems=5,
        says=(
            "pipelines/orders.yaml:2",
            '"heder"',
            '"header"',
            "pipelines/orders.yaml:4",
            '"casst"',
            '"cast"',
            "pipelines/orders.yaml:5",
            '"least"',
            "pipelines/orders.yaml:7",
            '"quarantin"',
            '"quarantine"',
            "pipelines/orders.yaml:8",
            '"merge_keys"',
        ),
    ),
    "missing_pipeline": Mistake(
        pipeline=CSV + APPEND,
        exit_code=2,
        command="run order --quiet",
        says=('"order"', '"orders"'),
    ),
    "missing_pipeline_file": Mistake(
        pipeline=CSV + APPEND,
        exit_code=2,
        command="run pipelines/order.yaml --quiet",
        says=('"pipelines/order.yaml"', '"orders.yaml"'),
    ),
    "missing_file": Mistake(
        pipeline='extract: {type: csv, path: "data/order.csv"}\n' + APPEND,
        exit_code=1,
        says=("pipelines/orders.yaml:2", '"data/order.csv"', '"orders.csv"'),
    ),
    "empty_glob": Mistake(
        pipeline='extract: {type: csv, path: "data/2026-*.csv"}\n' + APPEND,
        exit_code=1,
        says=("pipelines/orders.yaml:2", '"data/2026-*.csv"'),
    ),
    "malformed_cell_under_a_schema": Mistake(
        pipeline=(
            "extract:\n  type: csv\n  path: data/orders.csv\n"
            "  schema: order_id bigint, country string, amount double, updated_at timestamp\n"
        )
        + APPEND,
        data=GOOD + "5,NL,12..5,2026-01-02 10:00:00\n",
        exit_code=1,
        says=("data/orders.csv:4", '"amount"', '"12..5"', "double"),
    ),
    "malformed_cell_in_a_cast": Mistake(
        pipeline=CSV + TYPED + APPEND,
        data=GOOD + "5,NL,12..5,2026-01-02 10:00:00\n",
        exit_code=1,
        says=("data/orders.csv:4", '"amount"', '"12..5"', "double"),
    ),
    "row_with_too_many_cells": Mistake(
        pipeline=CSV + TYPED + APPEND,
        data=GOOD + "5,NL,12,5,2026-01-02 10:00:00\n",
        exit_code=1,
        says=("data/orders.csv:4", "5 cells", "4"),
    ),
    "missing_column_in_a_filter": Mistake(
        pipeline=CSV + "transform:\n  - {type: filter, condition: contry = 'NL'}\n" + APPEND,
        exit_code=2,
        says=("pipelines/orders.yaml:4", '"contry"', '"country"'),
    ),
    "missing_column_in_a_cast": Mistake(
        pipeline=CSV + "transform:\n  - {type: cast, columns: {amont: double}}\n" + APPEND,
        exit_code=2,
        says=("pipelines/orders.yaml:4", '"amont"', '"amount"'),
    ),
    "missing_column_in_a_query": Mistake(
        pipeline=CSV + "transform:\n  - {type: sql, query: select contry from input}\n" + APPEND,
        exit_code=2,
        says=("pipelines/orders.yaml:4", '"contry"', '"country"'),
    ),
    "missing_merge_key": Mistake(
        pipeline=CSV
        + TYPED
        + "load:\n  type: delta\n  table: orders\n  mode: upsert\n  merge_keys: [oder_id]\n",
        exit_code=2,
        says=("pipelines/orders.yaml:8", '"oder_id"', '"order_id"'),
    ),
    "missing_partition_column": Mistake(
        pipeline=CSV + TYPED + "load: {type: delta, table: by_country, partition_by: [contry]}\n",
        exit_code=2,
        says=("pipelines/orders.yaml:8", '"contry"', '"country"'),
    ),
    "null_merge_keys": Mistake(
        pipeline=CSV + TYPED + UPSERT,
        data=GOOD + ",NL,1,2026-01-02 10:00:00\n",
        exit_code=1,
        says=("pipelines/orders.yaml:8", '"order_id"', "NULL", '"amount":1.0'),
    ),
    "duplicate_merge_keys": Mistake(
        pipeline=CSV + TYPED + UPSERT,
        data=GOOD + "3,NL,9,2026-01-03 10:00:00\n",
        exit_code=1,
        says=("pipelines/orders.yaml:8", '"order_id"', '{"order_id":3}', "duplicates"),
    ),
    "incompatible_type": Mistake(
        pipeline=CSV + APPEND,
        exit_code=1,
        says=('"order_id" table bigint, rows string', '"amount" table double, rows string'),
    ),
    "unknown_columns": Mistake(
        pipeline=CSV
        + TYPED
        + '  - {type: derive, columns: {vat: "amount * 0.21", note: "\'x\'"}}\n'
        + APPEND,
        exit_code=1,
        says=('+ "vat" double', '+ "note" string', "merge_schema: true"),
    ),
    "replace_where_violated": Mistake(
        pipeline=CSV + TYPED + ONLY_NL,
        exit_code=1,
        says=("pipelines/orders.yaml:8", "replace_where", "country = 'NL'", "DE"),
    ),
    "replace_where_violated_by_a_first_batch": Mistake(
        pipeline=CSV + TYPED + ONLY_NL.replace("orders", "new"),
        exit_code=1,
        says=("pipelines/orders.yaml:8", "replace_where", "country = 'NL'", "DE"),
    ),
    "not_a_delta_table": Mistake(
        pipeline="extract: {type: delta, path: exports/orders}\n" + APPEND,
        prepare=not_a_table,
        exit_code=1,
        says=("pipelines/orders.yaml:2", '"exports/orders"', "not a Delta table"),
    ),
    "unknown_table": Mistake(
        pipeline="extract: {type: delta, table: order}\n" + APPEND,
        exit_code=1,
        says=("pipelines/orders.yaml:2", '"order"', "not a Delta table"),
    ),
    "unknown_table_to_show": Mistake(
        pipeline=CSV + APPEND,
        command="table show order",
        exit_code=1,
        says=('"order"', "not a Delta table"),
    ),
    "target_folder_is_not_a_delta_table": Mistake(
        pipeline=CSV + "load: {type: delta, path: exports/orders}\n",
        prepare=not_a_table,
        exit_code=1,
        says=("pipelines/orders.yaml:3", "exports/orders", "not a Delta table"),
    ),
    "version_out_of_range": Mistake(
        pipeline="extract: {type: delta, table: orders, version_as_of: 7}\n"
        "load: {type: delta, table: copy}\n",
        exit_code=1,
        says=("pipelines/orders.yaml:2", "7", "0"),
    ),
    "timestamp_out_of_range": Mistake(
        pipeline='extract: {type: delta, table: orders, timestamp_as_of: "2020-01-01"}\n'
        "load: {type: delta, table: copy}\n",
        exit_code=1,
        says=("pipelines/orders.yaml:2", "2020-01-01"),
    ),
    "constraint_violated": Mistake(
        pipeline=CSV + TYPED + APPEND,
        data=GOOD + "5,NL,-1,2026-01-02 10:00:00\n",
        prepare=add_constraint,
        exit_code=1,
        says=("pipelines/orders.yaml:8", '"amount_is_positive"', "amount >= 0", "-1"),
    ),
    "check_failed": Mistake(
        pipeline=CSV + TYPED + 'checks:\n  - {type: expression, rule: "amount > 7.5"}\n' + APPEND,
        exit_code=3,
        says=("pipelines/orders.yaml:9", '"amount > 7.5"', "1 row", '"order_id":3'),
    ),
    "too_many_rows_set_aside": Mistake(
        pipeline=CSV
        + TYPED
        + "checks:\n  - type: in_range\n    column: amount\n    max: 7.5\n"
        + "    on_fail: quarantine\n    max_failed: 10%\n"
        + APPEND,
        exit_code=3,
        says=("pipelines/orders.yaml:9", '"amount <= 7.5"', "1 of 2 rows, 10% allowed", "order_id"),
    ),
    "wrong_limit_and_pattern_of_a_check": Mistake(
        pipeline=CSV
        + "checks:\n"
        + "  - {type: not_null, columns: [country], max_failed: a few}\n"
        + '  - {type: matches, column: country, pattern: "[A-Z"}\n'
        + APPEND,
        exit_code=2,
        problems=2,
        says=(
            "pipelines/orders.yaml:4",
            '"a few"',
            "0.1%",
            "pipelines/orders.yaml:5",
            '"[A-Z"',
            "unterminated character set",
        ),
    ),
    "missing_column_in_a_referenced_table": Mistake(
        pipeline=CSV
        + TYPED
        + "checks:\n  - {type: references, table: orders, columns: {order_id: oder_id}}\n"
        + APPEND,
        exit_code=2,
        says=("pipelines/orders.yaml:9", '"oder_id"', '"orders"', '"order_id"'),
    ),
    "checks_of_a_missing_pipeline": Mistake(
        pipeline=CSV + APPEND,
        command="checks order",
        exit_code=2,
        says=('"order"', '"orders"'),
    ),
    "bad_variable": Mistake(
        pipeline=CSV + APPEND,
        command="run orders --var day",
        exit_code=2,
        says=("--var day", "NAME=VALUE"),
    ),
    "unknown_option": Mistake(
        pipeline=CSV + APPEND,
        command="run orders --quite",
        exit_code=2,
        says=('"--quite"', '"--quiet"'),
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_a_short_message_and_harms_nothing(
    name: str, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake = MISTAKES[name]
    monkeypatch.chdir(bench.root)
    answer = made(bench, mistake)
    after = tables(bench)
    assert_screen(name, f"deltaworks {mistake.command}", answer, bench.root)
    assert answer.code == mistake.exit_code
    assert_short_and_clear(answer, problems=mistake.problems)
    assert [word for word in mistake.says if word not in answer.stderr] == []
    versions = {"orders": 1 if mistake.prepare is add_constraint else 0}
    assert {table: version for table, (version, _) in after.items()} == versions
