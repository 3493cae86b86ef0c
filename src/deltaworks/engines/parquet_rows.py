"""Parquet files read as they are, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deltaworks.engines.files import damaged_file, unreadable_file

if TYPE_CHECKING:
    import pyarrow as pa


def parquet_schema(path: str) -> pa.Schema:
    """The columns of a file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_schema(path)
    except pa.ArrowInvalid as problem:
        raise damaged_file(path, "is not a Parquet file") from problem
    except OSError as problem:
        raise unreadable_file(path, problem) from problem


def parquet_batches(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a part at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches()
    except pa.ArrowInvalid as problem:
        raise damaged_file(path, "is not a Parquet file") from problem
    except OSError as problem:
        raise unreadable_file(path, problem) from problem
