"""What sources of files have in common that carry their columns with them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import IO, TYPE_CHECKING, ClassVar

from deltaworks.connectors.files.source import DriftingSource
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.model.batch import Bounds
from deltaworks.storage.parquet_footers import Footer, alike, rows_in_footers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ColumnSource(DriftingSource):
    """Files that know their columns, at a path, folder or glob."""

    file_kind: ClassVar[str]
    """What a file of the format is called, with its article."""

    @staticmethod
    @abstractmethod
    def look(file: str | IO[bytes]) -> Footer:
        """What a file says of itself."""

    def rows_in_footers(self, project_ctx: ProjectContext, bounds: Bounds) -> int | None:
        """How many rows the footers tell of."""
        return rows_in_footers(bounds, self.look, kind=self.file_kind, stores=project_ctx.stores)

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.frames.columns import declared_columns
        from deltaworks.engines.spark.read.drifting_files import (
            Part,
            conformed,
            settled,
            together,
            without,
        )

        files = self.files(ctx, bounds)
        groups = alike(bounds, self.look, kind=self.file_kind, stores=files.stores)
        some = [replace(files, bounds=group) for group in groups]
        frames = [part.frame() for part in some]
        if self.schema_ is None and len(frames) == 1:
            return frames[0]
        declared = None if self.schema_ is None else declared_columns(self.schema_)
        parts = [
            Part(files=part, columns=without(frame.schema, files.added))
            for part, frame in zip(some, frames, strict=True)
        ]
        wanted = settled(parts, declared, self.drift(), warn=ctx.warn)
        return together([conformed(frame, wanted, files.added) for frame in frames])
