"""Parquet files read as they are, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltaworks.engines.files import damaged_file, unreadable_file

if TYPE_CHECKING:
    import pyarrow as pa


def parquet_schema(path: str) -> pa.Schema:
    """The columns of a file."""
    import pyarrow.parquet as pq

    with _reading(path):
        return pq.read_schema(path)


def parquet_batches(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a part at a time."""
    import pyarrow.parquet as pq

    with _reading(path), pq.ParquetFile(path) as file:
        yield from file.iter_batches()


@contextmanager
def _reading(path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except pa.ArrowInvalid as problem:
        raise damaged_file(path, "is not a Parquet file") from problem
    except OSError as problem:
        raise unreadable_file(path, problem) from problem
