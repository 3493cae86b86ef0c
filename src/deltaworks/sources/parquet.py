"""Read Parquet files."""

from __future__ import annotations

from typing import IO, ClassVar

from deltaworks.contracts.context import Site
from deltaworks.contracts.plugin import Example
from deltaworks.engines.column_source import ColumnSource
from deltaworks.engines.footers import rows_in_footers
from deltaworks.model.batch import Bounds


class ParquetSource(ColumnSource):
    """Parquet files at a path, folder or glob."""

    example: ClassVar[Example] = {"path": "orders"}

    merge_schema: bool = False
    """Take the columns of all files, not of one."""

    def reader_options(self) -> dict[str, str]:
        return {"mergeSchema": str(self.merge_schema).lower()}

    def rows(self, site: Site, bounds: Bounds) -> int | None:
        import pyarrow.parquet as pq

        def count(path: str | IO[bytes]) -> int:
            return int(pq.read_metadata(path).num_rows)

        return rows_in_footers(bounds, count, kind="a Parquet", stores=site.stores)
