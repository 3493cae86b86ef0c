"""Write Parquet files."""

from __future__ import annotations

from typing import ClassVar, Literal

from deltaworks.connectors.files.sink import FolderSink
from deltaworks.contracts.plugin import Example


class ParquetSink(FolderSink):
    """A folder of Parquet files, staged and then moved into place."""

    example: ClassVar[Example] = {"path": "out", "partition_by": ["name"]}

    compression: Literal["snappy", "zstd", "gzip", "lz4", "none"] = "zstd"
    """How the files are compressed."""

    def writer_options(self) -> dict[str, str]:
        return {"compression": self.compression}
