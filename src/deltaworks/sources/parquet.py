"""Read Parquet files."""

from __future__ import annotations

from dataclasses import replace
from typing import IO, ClassVar

from deltaworks.connectors.files.columnar_source import ColumnSource
from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.plugin import Example
from deltaworks.model.batch import Bounds
from deltaworks.storage.drift import Drift
from deltaworks.storage.parquet_footers import Footer, parquet_footer


class ParquetSource(ColumnSource):
    """Parquet files at a path, folder or glob."""

    example: ClassVar[Example] = {"path": "orders"}
    file_kind: ClassVar[str] = "a Parquet"

    merge_schema: bool = False
    """Read NULL where a file lacks a column that others have, like `missing_columns: fill`."""

    @staticmethod
    def look(file: str | IO[bytes]) -> Footer:
        return parquet_footer(file)

    def rows(self, project_ctx: ProjectContext, bounds: Bounds) -> int | None:
        return self.rows_in_footers(project_ctx, bounds)

    def drift(self) -> Drift:
        told = super().drift()
        return replace(told, missing="fill") if self.merge_schema else told
