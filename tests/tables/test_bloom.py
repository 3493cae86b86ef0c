"""M6: `bloom` makes every file keep a filter of a column's values, and lookups skip by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from deltaworks.errors import SpecError, UnsupportedOperation
from deltaworks.sinks.delta import DeltaSink
from tests.tables.loader import Loader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Emails in no order, so many that Parquet gives up its dictionary of them, which would skip too.
MANY = (
    "SELECT id, concat(sha2(cast(id AS string), 256), '@example.org') AS email "
    "FROM range({start}, {end}, 1, 1)"
)
ROWS = 60_000
ABSENT = "concat(sha2('nobody', 256), '@example.org')"


def scanned(frame: DataFrame) -> int:
    """Rows that came out of the files, after row groups were skipped."""
    frame.collect()
    return sum(_outputs(frame._jdf.queryExecution().executedPlan()))


def _outputs(plan: Any) -> Iterator[int]:
    if "AdaptiveSparkPlan" in plan.nodeName():
        yield from _outputs(plan.executedPlan())
        return
    if plan.nodeName().startswith("Scan"):
        yield plan.metrics().apply("numOutputRows").value()
    children = plan.children()
    for i in range(children.size()):
        yield from _outputs(children.apply(i))


def many(start: int, end: int) -> str:
    return MANY.format(start=start, end=end)


def test_a_lookup_of_a_value_that_is_not_there_reads_no_row(loader: Loader) -> None:
    loader.load(many(0, ROWS), bloom=["email"])
    loader.spark.conf.set("parquet.filter.dictionary.enabled", "false")
    assert scanned(loader.frame().filter(f"email = {ABSENT}")) == 0
    assert loader.frame().filter("id = 7").join(loader.frame(), "email").count() == 1


def test_without_the_word_every_row_is_read(loader: Loader) -> None:
    """Or the test above would prove nothing."""
    loader.load(many(0, ROWS))
    loader.spark.conf.set("parquet.filter.dictionary.enabled", "false")
    assert scanned(loader.frame().filter(f"email = {ABSENT}")) == ROWS


def test_files_of_a_merge_and_of_optimize_keep_filters_too(loader: Loader) -> None:
    loader.upsert(many(0, ROWS), bloom="email")
    loader.upsert(many(ROWS - 10, ROWS + 10), bloom="email", update_condition="source.id > 0")
    loader.sql("OPTIMIZE THIS")
    loader.spark.conf.set("parquet.filter.dictionary.enabled", "false")
    assert scanned(loader.frame().filter(f"email = {ABSENT}")) == 0


def test_a_column_is_named_as_it_is_spelled(loader: Loader) -> None:
    with pytest.raises(SpecError, match="Email"):
        loader.load(many(0, 1), bloom=["Email"])


def test_a_table_that_renames_its_columns_is_refused(loader: Loader) -> None:
    loader.load(many(0, 1), properties={"delta.columnMapping.mode": "name"})
    with pytest.raises(UnsupportedOperation, match="other names"):
        loader.load(many(1, 2), bloom=["email"])


def test_what_excludes_each_other_is_told_before_anything_runs() -> None:
    asked = {"table": "t", "bloom": ["a", "b"], "partition_by": ["a"]}
    mapped = {**asked, "properties": {"delta.columnMapping.mode": "name"}}
    assert any("it makes folders" in p for p in DeltaSink.model_validate(asked).problems())
    assert any("columnMapping" in p for p in DeltaSink.model_validate(mapped).problems())
