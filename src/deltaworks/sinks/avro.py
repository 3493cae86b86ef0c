"""Write Avro files."""

from __future__ import annotations

from typing import ClassVar, Literal

from deltaworks.contracts.plugin import Example
from deltaworks.engines.folder_sink import FolderSink

_CODECS = {"zstd": "zstandard", "none": "uncompressed"}
"""What Avro calls them."""


class AvroSink(FolderSink):
    """A folder of Avro files, staged and then moved into place."""

    example: ClassVar[Example] = {"path": "out", "partition_by": ["name"]}

    compression: Literal["snappy", "zstd", "deflate", "bzip2", "none"] = "snappy"
    """How the files are compressed."""

    def writer_options(self) -> dict[str, str]:
        return {"compression": _CODECS.get(self.compression, self.compression)}
