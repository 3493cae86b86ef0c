"""Read text files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.connectors.files.source import FileSource
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.storage.encodings import Encoding, is_wide

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class TextSource(FileSource):
    """Text at a path, folder or glob as column `value`, a row for each line or each file."""

    example: ClassVar[Example] = {"path": "orders.txt"}

    encoding: Encoding = "UTF-8"
    """The files' character encoding."""
    whole_files: bool = False
    """Whether a row is a whole file, not a line."""

    def problems(self) -> tuple[str, ...]:
        if is_wide(self.encoding) and not self.whole_files:
            return (f'"encoding: {self.encoding}" needs "whole_files: true"',)
        return ()

    def reader_options(self) -> dict[str, str]:
        return {"wholetext": str(self.whole_files).lower()}

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.read.text import decoded

        frame = self.files(ctx, bounds).frame()
        return frame.withColumn("value", decoded(F.col("value"), self.encoding))

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        from deltaworks.engines.spark.read.text import find_other_text

        if "encoding" not in error.context:
            return error
        return find_other_text(error, bounds, self.encoding, ctx.project_ctx.stores)
