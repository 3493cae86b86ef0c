"""Parquet and ORC files, which carry their columns with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.arrow.readers import reading, source

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class ParquetFiles:
    """Parquet files."""

    stores: Stores = NO_STORES

    def columns(self, path: str) -> pa.Schema:
        import pyarrow.parquet as pq

        with reading(path, "a Parquet"):
            return pq.read_schema(source(path, self.stores))

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        import pyarrow.parquet as pq

        with reading(path, "a Parquet"), pq.ParquetFile(source(path, self.stores)) as file:
            yield from file.iter_batches()


@dataclass(frozen=True, kw_only=True)
class OrcFiles:
    """ORC files."""

    stores: Stores = NO_STORES

    def columns(self, path: str) -> pa.Schema:
        from pyarrow import orc

        with reading(path, "an ORC"):
            return orc.ORCFile(source(path, self.stores)).schema

    def batches(self, path: str, *, into: pa.Schema) -> Iterator[pa.RecordBatch]:
        from pyarrow import orc

        with reading(path, "an ORC"):
            file = orc.ORCFile(source(path, self.stores))
            for stripe in range(file.nstripes):
                yield file.read_stripe(stripe)
