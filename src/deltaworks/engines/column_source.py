"""What sources of files have in common that carry their columns with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from deltaworks.contracts.context import RunContext
from deltaworks.engines.file_source import FileSource
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ColumnSource(FileSource):
    """Files that know their columns, at a path, folder or glob."""

    schema_: str | None = Field(default=None, alias="schema")
    """Columns to take and the types they get, such as `id bigint, amount double`."""

    def finds_columns(self) -> bool:
        return self.schema_ is None

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.columns import column, declared_columns, require_columns
        from deltaworks.engines.spark.shape import forced

        files = self.files(ctx, bounds)
        frame = files.frame()
        if self.schema_ is None:
            return frame
        wanted = declared_columns(self.schema_)
        require_columns(frame, wanted.fieldNames(), where="schema", nested=False)
        named = {name.lower() for name in wanted.fieldNames()}
        added = [name for name in files.added if name.lower() not in named]
        rest = [column(frame, name) for name in added]
        return frame.select(*[forced(frame, field) for field in wanted.fields], *rest)
