"""Write Avro files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.connectors.files.sink import FolderSink
from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CODECS = {"zstd": "zstandard", "none": "uncompressed"}
"""What Avro calls them."""


class AvroSink(FolderSink):
    """A folder of Avro files, staged and then moved into place."""

    example: ClassVar[Example] = {"path": "out", "partition_by": ["name"]}

    compression: Literal["snappy", "zstd", "deflate", "bzip2", "none"] = "snappy"
    """How the files are compressed."""

    def writer_options(self) -> dict[str, str]:
        return {"compression": _CODECS.get(self.compression, self.compression)}

    def refuse_columns(self, frame: DataFrame) -> None:
        from deltaworks.engines.spark.frames.columns import refuse_spelling

        refuse_spelling(
            frame, "Avro files", lambda name: name.isidentifier(), leave_out=self.partition_by
        )
