"""Which files a batch's keys can be in is told from the log alone."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from deltaworks.engines.deltars.file_pruning import _rows, file_scope
from deltaworks.model.merge_facts import KeyRange


@pytest.fixture
def place(tmp_path: Path) -> str:
    """Three files, a month each."""
    for month in (1, 2, 3):
        rows = pa.table(
            {
                "id": [month * 10, month * 10 + 9],
                "day": [date(2026, month, 1)] * 2,
                "at": pa.array(
                    [datetime(2026, month, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")
                ),
                "c": [f"c{month}"] * 2,
            }
        )
        write_deltalake(str(tmp_path / "t"), rows, mode="append", partition_by=["c"])
    return str(tmp_path / "t")


def files(place: str, *ranges: KeyRange) -> int:
    return file_scope(place, 2, ranges).files


def test_files_out_of_range_are_skipped_and_all_are_counted(place: str) -> None:
    found = file_scope(place, 2, [KeyRange(column="ID", kind="bigint", low="15", high="25")])
    assert (found.files, found.files_skipped, found.files_total, found.rows_total) == (2, 1, 3, 6)
    assert 0 < found.bytes < found.bytes_total
    assert file_scope(place, 2).files == 3
    assert file_scope(place, 0).files_total == 1


def test_dates_moments_and_partitions_narrow_the_files_too(place: str) -> None:
    assert (
        files(place, KeyRange(column="day", kind="date", low="2026-02-01", high="2026-02-01")) == 1
    )
    moment = KeyRange(
        column="at",
        kind="timestamp",
        low="2026-02-01 00:00:00.000900",
        high="2026-03-01 00:00:00",
    )
    assert files(place, moment) == 2  # Spark's statistics stop at milliseconds
    listed = KeyRange(column="c", kind="string", low="c1", high="c3", values=("c1", "c3"))
    assert files(place, listed) == 2


def test_a_column_without_statistics_rules_nothing_out(place: str) -> None:
    assert files(place, KeyRange(column="other", kind="bigint", low="1", high="1")) == 3


def test_rows_that_nobody_counted_are_not_known() -> None:
    assert _rows(pa.table({"size_bytes": [1]})) is None
    assert _rows(pa.table({"num_records": [1, None]})) is None
    assert _rows(pa.table({"num_records": [1, 2]})) == 3
