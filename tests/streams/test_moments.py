"""Moments that delta-rs would read wrongly are never rewritten by a stream (S4)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake.transaction import AddAction

from deltaworks.engines.deltars.query import delete_rows
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.engines.deltars.write.epoch_table import EpochTable, TableLocation
from deltaworks.engines.deltars.write.int96_timestamps import Int96Timestamps
from deltaworks.errors import UnsupportedOperation
from deltaworks.streams.opening import NewTable, stream_into
from tests.streams.tables import opened, rows, table

MOMENT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("id", pa.int64()), ("at", MOMENT)])
NEAR, FAR = datetime(2026, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
KEYED: dict[str, Any] = {"mode": "upsert", "keys": ["id"], "schema": SCHEMA}


def moments(**found: datetime) -> pa.Table:
    ids = [int(name.removeprefix("id")) for name in found]
    return pa.table({"id": ids, "at": list(found.values())}, schema=SCHEMA)


def add_as_spark(folder: Path, name: str, found: pa.Table, statistics: str = "{}") -> None:
    """A file with moments in the old form, added by another writer."""
    place = folder / "t" / name
    pq.write_table(found, place, use_deprecated_int96_timestamps=True)
    size, now = place.stat().st_size, int(time.time() * 1000)
    add = AddAction(name, size, {}, now, True, statistics)
    table(folder).create_write_transaction([add], "append", table(folder).schema())


def test_an_upsert_into_files_with_old_moments_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path, schema=SCHEMA) as sink:
        sink.write(moments(id1=NEAR))
        sink.commit_epoch(1)
    add_as_spark(tmp_path, "part-0.parquet", moments(id2=FAR))
    with pytest.raises(UnsupportedOperation, match='"at" may contain timestamps'):
        opened(tmp_path, "other", **KEYED)


def test_old_moments_that_come_while_a_stream_is_open_stop_its_next_epoch(tmp_path: Path) -> None:
    with opened(tmp_path, **KEYED) as sink:
        sink.write(moments(id1=NEAR))
        sink.commit_epoch(1)
        add_as_spark(tmp_path, "part-0.parquet", moments(id2=FAR))
        sink.write(moments(id1=FAR))
        with pytest.raises(UnsupportedOperation, match="cannot represent"):
            sink.commit_epoch(2)
    assert [row["at"] for row in rows(tmp_path, "id = 1")] == [NEAR]


def test_old_moments_near_today_are_fine_when_statistics_say_so(tmp_path: Path) -> None:
    known = (
        '{"numRecords": 1, "minValues": {"at": "2026-01-01T00:00:00.000Z"}, '
        '"maxValues": {"at": "2026-01-01T00:00:00.000Z"}, "nullCount": {"at": 0}}'
    )
    opened(tmp_path, schema=SCHEMA).close()
    add_as_spark(tmp_path, "part-0.parquet", moments(id1=NEAR), known)
    with opened(tmp_path, **KEYED) as sink:
        sink.write(moments(id1=FAR))
        assert sink.commit_epoch(1).rows_updated == 1
    assert [row["at"] for row in rows(tmp_path)] == [FAR]


def test_far_moments_of_streams_themselves_are_merged(tmp_path: Path) -> None:
    """Their files count microseconds, whatever statistics leave out."""
    with opened(tmp_path, **KEYED) as sink:
        sink.write(moments(id1=datetime(200, 1, 1, tzinfo=UTC), id2=FAR))
        sink.commit_epoch(1)
        sink.write(moments(id1=NEAR))
        assert sink.commit_epoch(2).rows_updated == 1
    assert [row["at"] for row in rows(tmp_path)] == [NEAR, FAR]


def test_files_with_old_moments_are_not_joined(tmp_path: Path) -> None:
    opened(tmp_path, schema=SCHEMA).close()
    for n in range(3):
        add_as_spark(tmp_path, f"part-{n}.parquet", moments(id1=FAR))
    place = TableLocation(str(tmp_path / "t"), {})
    assert EpochTable(place, place.open()).compact({}, small_bytes=10**6) == 0
    assert table(tmp_path).version() == 3


def test_no_row_is_deleted_from_files_with_old_moments(tmp_path: Path) -> None:
    """What a file has beside the deleted row would be rewritten, at another time."""
    opened(tmp_path, schema=SCHEMA).close()
    add_as_spark(tmp_path, "part-0.parquet", moments(id1=FAR, id2=NEAR))
    with pytest.raises(UnsupportedOperation, match="cannot represent"):
        delete_rows(str(tmp_path / "t"), "id = 2", note={})
    assert table(tmp_path).version() == 1


def test_a_file_of_another_folder_counts_as_unknown(tmp_path: Path) -> None:
    folder = DataFolder(str(tmp_path))
    assert folder.has_int96("/elsewhere/a.parquet")
    assert folder.has_int96("s3://elsewhere/a.parquet")


def test_moments_within_columns_are_looked_for_too(tmp_path: Path) -> None:
    inner = pa.schema(
        [
            ("id", pa.int64()),
            ("inside", pa.struct([("at", MOMENT)])),
            ("many", pa.list_(MOMENT)),
        ]
    )
    stream_into(str(tmp_path / "t"), writer_id="w", new_table=NewTable(schema=inner)).close()
    found = pa.table(
        {"id": [1], "inside": [{"at": FAR}], "many": [[FAR]]},
        schema=inner,
    )
    add_as_spark(tmp_path, "part-0.parquet", found)
    problem = Int96Timestamps(DataFolder(str(tmp_path / "t"))).problem(table(tmp_path))
    assert '"inside.at"' in problem
