"""Write ORC files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.connectors.files.sink import FolderSink
from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OrcSink(FolderSink):
    """A folder of ORC files, staged and then moved into place."""

    example: ClassVar[Example] = {"path": "out", "partition_by": ["name"]}

    compression: Literal["snappy", "zstd", "zlib", "lz4", "none"] = "zstd"
    """How the files are compressed."""

    def writer_options(self) -> dict[str, str]:
        return {"compression": self.compression}

    def refuse_columns(self, frame: DataFrame) -> None:
        from deltaworks.engines.spark.frames.columns import refuse_spelling

        # Spark writes such a name, and reads another one back
        refuse_spelling(frame, "ORC files", lambda name: "`" not in name)
