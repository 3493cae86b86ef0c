"""Spark finds by a filter what is there: statistics and dictionaries of our files hide no row."""

from __future__ import annotations

import math
import tempfile
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from deltaworks.engines.deltars.write.statistics import write_parquet
from tests.streams.skipping import (
    CONDITION,
    FILES,
    SCHEMA,
    WAYS,
    Files,
    condition,
    differences,
    written,
)
from tests.streams.tables import opened, rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONG = Decimal("12345678901234567890.500000000000000001")
LEFT_OUT = datetime(1582, 10, 10, 5, tzinfo=UTC)
"""On a day that the old calendar leaves out."""
HARD: Files = [
    [
        {"f32": math.nan, "f64": math.nan, "d38": LONG, "n": {"f64": math.nan, "d38": LONG}},
        {"f32": 1.0, "f64": 1.0, "d38": Decimal(1), "n": {"f64": 1.0, "d38": Decimal(1)}},
    ],
    [{"f32": -0.0, "f64": -0.0, "text": "x" * 70, "n": {"f64": -0.0, "text": "x" * 70}}],
    [{"f64": math.inf, "n": {"f64": -math.inf}}, {"f64": 2.0, "n": {"f64": 2.0}}],
    [{"day": LEFT_OUT.date(), "at": LEFT_OUT, "local": LEFT_OUT.replace(tzinfo=None)}],
]
ASKED = (
    "f64 > 100D",
    "f64 <> 1D",
    "f64 = double('NaN')",
    "f32 > 100F",
    "f64 = 0D",
    "f64 <= -0.0D",
    "n.f64 > 100D",
    "n.f64 = double('NaN')",
    "n.f64 = 0D",
    "n.f64 < -100D",
    "d38 > 12345678901234567890.5BD",
    "n.d38 > 12345678901234567890.5BD",
    f"n.text = '{'x' * 70}'",
    "day = DATE'1582-10-10'",
    "day < DATE'1582-10-11'",
    "at = TIMESTAMP'1582-10-10 05:00:00'",
    "local IN (TIMESTAMP_NTZ'1582-10-10 05:00:00')",
)


@pytest.mark.spark
@pytest.mark.parametrize("way", sorted(WAYS))
def test_no_hard_value_is_hidden(spark: SparkSession, tmp_path: Path, way: str) -> None:
    written(tmp_path, HARD, way)
    assert differences(spark, tmp_path, ASKED) == []


@pytest.mark.spark
@settings(
    max_examples=4,
    deadline=None,
    phases=[Phase.generate],  # to shrink would take Spark minutes, and the condition tells enough
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
@given(
    files=FILES,
    asked=st.lists(CONDITION, min_size=12, max_size=12),
    way=st.sampled_from(sorted(WAYS)),
)
def test_no_value_is_hidden(
    spark: SparkSession, files: Files, asked: list[tuple[str, str, int]], way: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        every = written(Path(folder), files, way)
        assert differences(spark, Path(folder), [condition(*one, every) for one in asked]) == []


@pytest.mark.spark
def test_keys_are_equal_here_as_they_are_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's own MERGE takes any zero for any other, and any NaN."""
    schema = pa.schema([("k", pa.float64()), ("v", pa.string())])
    first = {"k": [0.0, math.nan, 5.5], "v": ["a", "b", "c"]}
    second = {"k": [-0.0, -math.nan, 7.5], "v": ["d", "e", "f"]}
    for folder in ("ours", "theirs"):
        with opened(tmp_path / folder, schema=schema, mode="upsert", keys=["k"]) as sink:
            sink.write(pa.table(first))
            sink.commit_epoch(1)
            if folder == "ours":
                sink.write(pa.table(second))
                sink.commit_epoch(2)
    pq.write_table(pa.table(second), f"{tmp_path}/second.parquet")
    spark.read.parquet(f"{tmp_path}/second.parquet").createOrReplaceTempView("s")
    spark.sql(
        f"MERGE INTO delta.`{tmp_path}/theirs/t` t USING s ON t.k = s.k "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    ours, theirs = (
        sorted(row["v"] for row in rows(tmp_path / folder)) for folder in ("ours", "theirs")
    )
    assert ours == theirs == ["c", "d", "e", "f"]


def footer(data: pa.Table, folder: Path) -> dict[str, bool]:
    """Of each leaf, whether the footer tells its ends."""
    path = folder / "x.parquet"
    with path.open("wb") as handle:
        write_parquet(data, handle)
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(n) for n in range(group.num_columns)]
    return {one.path_in_schema: bool(one.is_stats_set) for one in columns}


def test_a_footer_tells_only_what_is_certain(tmp_path: Path) -> None:
    values: list[dict[str, Any]] = [
        {"i": 1, "f": math.nan, "g": 1.0, "l": [1.0], "s": {"f": math.nan, "g": 1.0}},
        {"i": 2, "f": 1.0, "g": None, "l": None, "s": None},
    ]
    within = pa.struct([("f", pa.float64()), ("g", pa.float64())])
    schema = pa.schema(
        [
            ("i", pa.int64()),
            ("f", pa.float32()),
            ("g", pa.float64()),
            ("l", pa.list_(pa.float64())),
            ("s", within),
        ]
    )
    told = footer(pa.Table.from_pylist(values, schema), tmp_path)
    assert told == {
        "i": True,
        "f": False,
        "g": True,
        "l.list.element": False,
        "s.f": False,
        "s.g": True,
    }


def test_a_name_that_reads_like_a_path_is_told_only_if_both_are_certain(tmp_path: Path) -> None:
    within = pa.array([{"b": math.nan}], pa.struct([("b", pa.float64())]))
    told = footer(pa.table({"a.b": [1], "a": within}), tmp_path)
    assert told == {"a.b": False}


def test_every_kind_of_value_is_written_in_every_way(tmp_path: Path) -> None:
    assert {field.name for field in SCHEMA} >= {"id", "n", "list", "map"}
    for way in WAYS:
        assert len(written(tmp_path / way, HARD, way)) == 6
        assert len(rows(tmp_path / way)) == 6


@pytest.mark.parametrize(
    ("days", "told"),
    [
        ([-141_438], True),
        ([-141_437], False),
        ([-141_428], False),
        ([-141_427, 20_000], True),
        ([-150_000, 0], False),
        ([None], True),
    ],
)
def test_a_footer_tells_no_days_that_the_old_calendar_leaves_out(
    tmp_path: Path, days: list[int | None], *, told: bool
) -> None:
    day = pa.array(days, pa.date32())
    data = pa.table({"day": day, **{unit: day.cast(pa.timestamp(unit)) for unit in ("s", "us")}})
    leaves = footer(data, tmp_path)
    assert leaves == dict.fromkeys(data.column_names, told)
