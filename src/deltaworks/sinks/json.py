"""Write JSON files."""

from __future__ import annotations

from typing import ClassVar, Literal

from deltaworks.connectors.files.sink import EXACT_TEXT_TIMES, FolderSink
from deltaworks.contracts.plugin import Example


class JsonSink(FolderSink):
    """A folder of JSON files, a record on each line, staged and then moved into place."""

    example: ClassVar[Example] = {"path": "out", "partition_by": ["name"]}

    compression: Literal["gzip", "bzip2", "none"] = "none"
    """How the files are compressed."""

    def writer_options(self) -> dict[str, str]:
        # a field that is NULL is written, so that every record has all columns
        return {"compression": self.compression, "ignoreNullFields": "false", **EXACT_TEXT_TIMES}
