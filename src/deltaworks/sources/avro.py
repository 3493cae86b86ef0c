"""Read Avro files."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, ClassVar

from deltaworks.connectors.files.columnar_source import ColumnSource
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.model.batch import Bounds
from deltaworks.storage.listing import refuse_other_files
from deltaworks.storage.parquet_footers import Footer, avro_header

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BEGINNING = b"Obj\x01"


class AvroSource(ColumnSource):
    """Avro files at a path, folder or glob."""

    example: ClassVar[Example] = {"path": "orders"}
    file_kind: ClassVar[str] = "an Avro"

    @staticmethod
    def look(file: str | IO[bytes]) -> Footer:
        return avro_header(file)

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        refuse_other_files(bounds, _BEGINNING, kind=self.file_kind, stores=ctx.project_ctx.stores)
        return super().read(ctx, bounds)
