"""Write delimited text files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.connectors.files.sink import EXACT_TEXT_TIMES, FolderSink
from deltaworks.contracts.plugin import Example
from deltaworks.errors import SpecError
from deltaworks.storage.encodings import Encoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class CsvSink(FolderSink):
    """A folder of delimited text, staged and then moved into place."""

    example: ClassVar[Example] = {"path": "out", "partition_by": ["name"]}
    columns_by_place: ClassVar[bool] = True

    header: bool = True
    """Whether the first line of each file names the columns."""
    delimiter: str = ","
    """What separates cells."""
    quote: str = '"'
    """What encloses a cell that holds a delimiter, a quote or a line break."""
    escape: str = '"'
    """What stands before a quote inside a quoted cell."""
    null_value: str = ""
    """The text that stands for NULL; choose one to tell NULL from an empty text."""
    encoding: Encoding = "UTF-8"
    """The files' character encoding."""
    compression: Literal["gzip", "bzip2", "none"] = "none"
    """How the files are compressed."""

    def writer_options(self) -> dict[str, str]:
        return {
            "header": str(self.header).lower(),
            "sep": self.delimiter,
            "quote": self.quote,
            "escape": self.escape,
            "nullValue": self.null_value,
            "encoding": self.encoding,
            "compression": self.compression,
            # or blanks around a value would be lost
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
            **EXACT_TEXT_TIMES,
        }

    def refuse_columns(self, frame: DataFrame) -> None:
        from pyspark.sql.types import BinaryType

        for field in frame.schema.fields:
            if isinstance(field.dataType, BinaryType):
                raise SpecError(
                    f'csv cannot hold column "{field.name}", which is binary',
                    hint=f"make it text in a derive step: {field.name}: base64({field.name})",
                )
