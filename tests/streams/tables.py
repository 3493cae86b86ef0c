"""Streams into tables of a temporary folder, and what is in them, read by delta-rs itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from deltaworks.model.epochs import Limits
from deltaworks.streams.opening import NewTable, StreamKwargs, stream_into
from deltaworks.streams.sink import EpochSink

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
QUICK = Limits(retry_seconds=0.2)


def opened(
    folder: Path | str,
    writer_id: str = "w",
    *,
    schema: pa.Schema | None = SCHEMA,
    partition_by: tuple[str, ...] = (),
    properties: dict[str, str] | None = None,
    **options: Any,
) -> EpochSink[Any]:
    """A stream into the table `t` of a folder."""
    words: StreamKwargs = {"limits": QUICK, **options}  # type: ignore[typeddict-item]
    new = NewTable(schema=schema, partition_by=partition_by, properties=properties)
    return stream_into(f"{folder}/t", writer_id=writer_id, new_table=new, **words)


def batch(*ids: int, s: str = "x") -> pa.RecordBatch:
    """Rows of the usual schema."""
    return pa.record_batch({"id": list(ids), "s": [s] * len(ids)}, schema=SCHEMA)


def table(folder: Path | str) -> DeltaTable:
    return DeltaTable(f"{folder}/t")


def rows(folder: Path | str, where: str = "true") -> list[dict[str, Any]]:
    """All rows that a condition covers, sorted."""
    sql = f"SELECT * FROM t WHERE {where}"
    found = QueryBuilder().register("t", table(folder)).execute(sql).read_all()
    return sorted(pa.table(found).to_pylist(), key=lambda row: json.dumps(row, default=str))


def ids(folder: Path | str, where: str = "true") -> list[int]:
    return sorted(row["id"] for row in rows(folder, where))


def own_files(folder: Path | str, writer_id: str = "w") -> list[str]:
    return sorted(path.name for path in Path(folder, "t").glob(f"stream.{writer_id}.*"))
