"""The change feed of a table as a source: ranges, increments, and what cannot be told (P7)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from deltaworks.engines.spark.read.delta_change_feed import changes_between
from deltaworks.errors import TableNotFound
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = """
extract: {type: csv, path: "in/*.csv", schema: "id int, v string", incremental: true}
load: {type: delta, table: orders, mode: upsert, merge_keys: [id], change_feed: true}
"""
CHANGES = """
extract: {{type: delta_changes, table: orders, {options}}}
load: {{type: delta, table: log}}
"""


@pytest.fixture
def shop(bench: Workbench) -> Workbench:
    """Table `orders`: version 0 inserts 1 and 2, version 1 changes 2 and inserts 3."""
    bench.pipeline("orders", ORDERS)
    bench.write("in/a.csv", "id,v\n1,a\n2,a\n")
    bench.run("orders")
    bench.write("in/b.csv", "id,v\n2,b\n3,b\n")
    bench.run("orders")
    return bench


def changes(bench: Workbench, options: str, *arguments: str) -> Any:
    bench.pipeline("log", CHANGES.format(options=options))
    return bench.run("log", *arguments)


def logged(bench: Workbench) -> list[tuple[Any, ...]]:
    names = ("_commit_version", "id", "v", "_change_type")
    return sorted(tuple(row[name] for name in names) for row in bench.rows("log"))


FIRST = [(0, 1, "a", "insert"), (0, 2, "a", "insert")]
SECOND = [
    (1, 2, "a", "update_preimage"),
    (1, 2, "b", "update_postimage"),
    (1, 3, "b", "insert"),
]


def test_a_range_of_versions_holds_both_its_ends(shop: Workbench) -> None:
    changes(shop, "starting_version: 0, ending_version: 1")
    assert logged(shop) == [*FIRST, *SECOND]
    assert all(isinstance(row["_commit_timestamp"], datetime) for row in shop.rows("log"))


def test_increments_begin_with_the_table_and_go_on_with_its_changes(shop: Workbench) -> None:
    changes(shop, "incremental: true")
    as_inserts = [(1, 1, "a", "insert"), (1, 2, "b", "insert"), (1, 3, "b", "insert")]
    assert logged(shop) == as_inserts
    assert shop.run("log")["status"] == "skipped"
    shop.write("in/c.csv", "id,v\n1,c\n")
    shop.run("orders")
    shop.run("log")
    assert logged(shop) == [
        *as_inserts,
        (2, 1, "a", "update_preimage"),
        (2, 1, "c", "update_postimage"),
    ]


def test_increments_may_begin_at_a_version(shop: Workbench) -> None:
    changes(shop, "incremental: true, starting_version: 1")
    assert logged(shop) == SECOND
    assert shop.run("log")["status"] == "skipped"


def test_a_moment_stands_for_the_first_version_from_it_on(shop: Workbench) -> None:
    commit = shop.table("orders") / "_delta_log" / f"{1:020d}.json"
    made = datetime.fromtimestamp(commit.stat().st_mtime, UTC)
    start = (made - timedelta(milliseconds=5)).isoformat()
    changes(shop, f'starting_timestamp: "{start}"')
    assert logged(shop) == SECOND


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("starting_version: 7", ["starting_version", "no version 7", "0 to 1"]),
        ("starting_version: 0, ending_version: 9", ["ending_version", "no version 9"]),
        ('starting_timestamp: "2999-01-01"', ["no version at 2999", "its history goes from"]),
        (
            'starting_version: 1, ending_timestamp: "2001-01-01"',
            ["no version at 2001", "its history goes from"],
        ),
    ],
)
def test_a_range_that_is_not_there_is_refused_with_the_one_that_is(
    shop: Workbench, options: str, words: list[str]
) -> None:
    shop.pipeline("log", CHANGES.format(options=options))
    answered = shop.fail("log")
    assert all(word in answered.stderr for word in words), answered.stderr
    assert shop.version("log") is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", 'say "starting_version"'),
        ("starting_version: 2, ending_version: 1", "lies after"),
        ('starting_version: 2, starting_timestamp: "2026-01-01"', "exclude each other"),
        ("incremental: true, ending_version: 3", 'leave the "ending_..." out'),
        ('starting_timestamp: "soon"', "soon"),
    ],
)
def test_options_that_contradict_each_other_are_refused_at_once(
    desk: Workbench, options: str, message: str
) -> None:
    path = desk.pipeline("log", CHANGES.format(options=options))
    answered = desk.cli("validate", str(path), "--json")
    assert answered.code == 2
    assert message in json.dumps(answered.json["problems"], ensure_ascii=False).replace('\\"', '"')


def test_a_table_without_a_feed_is_refused_with_the_way_to_switch_it_on(bench: Workbench) -> None:
    bench.pipeline("orders", ORDERS.replace(", change_feed: true", ""))
    bench.write("in/a.csv", "id,v\n1,a\n")
    bench.run("orders")
    bench.pipeline("log", CHANGES.format(options="starting_version: 0"))
    answered = bench.fail("log")
    assert "kept no feed of its changes at version 0" in answered.stderr
    assert "change_feed: true" in answered.stderr


def test_changes_that_were_vacuumed_away_are_an_error_not_fewer_rows(shop: Workbench) -> None:
    for path in Path(shop.table("orders"), "_change_data").glob("*.parquet"):
        path.unlink()
    shop.pipeline("log", CHANGES.format(options="starting_version: 0"))
    answered = shop.fail("log")
    assert "Traceback" not in answered.stderr
    assert shop.version("log") is None


COPIES = """
extract: {type: delta_changes, table: orders, incremental: true}
load:
  - {type: delta, table: by_deltars, mode: changelog, merge_keys: [id], writer: deltars}
  - {type: delta, table: by_spark, mode: changelog, merge_keys: [id], writer: spark}
"""


def happened(place: str) -> Iterator[str]:
    """What happens to a table with a change feed; several commits in the last step."""
    rows = pa.table({"id": [2, 4], "v": ["b", "b"]})
    other = pa.table({"id": [1, 2, 9], "v": ["c", "c", "c"]})

    def upsert() -> None:
        merger = (
            DeltaTable(place)
            .merge(rows, "t.id = s.id", source_alias="s", target_alias="t")
            .when_matched_update_all()
        )
        merger.when_not_matched_insert_all().execute()

    steps: list[tuple[str, Callable[[], object]]] = [
        ("upserted", upsert),
        ("overwritten", lambda: write_deltalake(place, other, mode="overwrite")),
        ("restored", lambda: DeltaTable(place).restore(1)),
        ("deleted", lambda: DeltaTable(place).delete("id = 1")),
        ("keys changed", lambda: DeltaTable(place).update({"id": "id + 1"})),
    ]
    yield "made"
    for name, step in steps[:3]:
        step()
        yield name
    for _, step in reversed(steps):
        step()
    yield "all at once"


def test_a_copy_follows_restores_and_overwrites_of_its_source(bench: Workbench) -> None:
    place = str(bench.table("orders"))
    made = pa.table({"id": [1, 2, 3], "v": ["a", "a", "a"]})
    write_deltalake(place, made, configuration={"delta.enableChangeDataFeed": "true"})
    bench.pipeline("copies", COPIES)
    for what in happened(place):
        bench.run("copies")
        for copy in ("by_deltars", "by_spark"):
            assert bench.rows(copy) == bench.rows("orders"), (copy, what)
    planned = bench.cli("plan", "copies", "--json")
    assert planned.code == 0, planned.stderr
    write_deltalake(place, pa.table({"id": [7, 7], "v": ["x", "y"]}), mode="append")
    failed = bench.fail("copies")
    assert 'different rows with the same "_commit_version"' in failed.stderr
    assert "no two rows of the source table share" in failed.stderr
    assert "__deltaworks" not in failed.stderr


def test_changes_of_no_table_are_told_in_our_words(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        changes_between(spark, str(tmp_path / "none"), first=0, last=1)
