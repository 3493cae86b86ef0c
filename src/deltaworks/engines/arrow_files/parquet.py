"""Parquet and ORC files, which carry their columns with them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deltaworks.engines.arrow_files.reading import reading

if TYPE_CHECKING:
    import pyarrow as pa


class ParquetFiles:
    """Parquet files."""

    def columns(self, path: str) -> pa.Schema:
        import pyarrow.parquet as pq

        with reading(path, "a Parquet"):
            return pq.read_schema(path)

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with reading(path, "a Parquet"), pq.ParquetFile(path) as file:
            yield from file.iter_batches()


class OrcFiles:
    """ORC files."""

    def columns(self, path: str) -> pa.Schema:
        from pyarrow import orc

        with reading(path, "an ORC"):
            return orc.ORCFile(path).schema

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pyarrow import orc

        with reading(path, "an ORC"):
            file = orc.ORCFile(path)
            for stripe in range(file.nstripes):
                yield file.read_stripe(stripe)
