"""Parquet files read as they are, without Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.files import damaged_file, unreadable_file
from deltaworks.engines.locations import open_bytes
from deltaworks.model.table_ref import is_url

if TYPE_CHECKING:
    import pyarrow as pa


def parquet_schema(path: str, stores: Stores = NO_STORES) -> pa.Schema:
    """The columns of a file."""
    import pyarrow.parquet as pq

    with _reading(path), open_bytes(path, stores) as handle:
        return pq.read_schema(handle)


def parquet_batches(path: str, stores: Stores = NO_STORES) -> Iterator[pa.RecordBatch]:
    """The rows of a file, a part at a time."""
    import pyarrow.parquet as pq

    source = open_bytes(path, stores) if is_url(path) else path
    with _reading(path), pq.ParquetFile(source) as file:
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
