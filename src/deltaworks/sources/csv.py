"""Read delimited text files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.config.storage import Stores
from deltaworks.contracts.plugin import Example
from deltaworks.engines.record_source import RecordSource, with_corrupt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.csv_files import CsvFiles
    from deltaworks.engines.spark.file_rows import FileRows


class CsvSource(RecordSource):
    """Delimited text at a path, folder or glob; columns are text unless a schema says otherwise."""

    example: ClassVar[Example] = {"path": "orders.csv"}
    rule: ClassVar[str] = "csv: cells fit the columns"

    header: bool = True
    """Whether the first line names the columns."""
    delimiter: str = ","
    """What separates cells."""
    quote: str = '"'
    """What encloses a cell that holds a delimiter."""
    escape: str = '"'
    """What stands before a quote inside a quoted cell."""
    null_value: str = ""
    """The text that stands for NULL."""
    multiline: bool = False
    """Whether a quoted cell may hold line breaks."""
    infer_schema: bool = False
    """Find out the columns' types by reading all files once more."""
    on_error: Literal["fail", "quarantine"] = "fail"
    """What happens to a row that has too few or too many cells, or a value of the wrong type."""

    def problems(self) -> tuple[str, ...]:
        found = super().problems()
        if self.infer_schema and self.schema_ is not None:
            found = (*found, '"schema" and "infer_schema" exclude each other')
        return found

    def text_files(self, stores: Stores) -> CsvFiles:
        from deltaworks.engines.spark.csv_files import CsvFiles

        return CsvFiles(
            delimiter=self.delimiter,
            quote=self.quote,
            encoding=self.encoding,
            header=self.header,
            null_value=self.null_value,
            stores=stores,
        )

    def reader_options(self) -> dict[str, str]:
        return {
            "header": str(self.header).lower(),
            "sep": self.delimiter,
            "quote": self.quote,
            "escape": self.escape,
            "encoding": self.encoding,
            "nullValue": self.null_value,
            "multiLine": str(self.multiline).lower(),
            "enforceSchema": "true",
            "columnPruning": "false",  # or a row of too few cells goes unseen
        }

    def look_over(self, files: FileRows) -> None:
        from deltaworks.engines.spark.csv_files import check_headers
        from deltaworks.engines.spark.decoding import refuse_other_bytes
        from deltaworks.engines.spark.text_files import refuse_other_text

        refuse_other_text(files.bounds, self.encoding, files.stores)
        refuse_other_bytes(files, self.encoding)
        if self.header and not self.multiline:
            check_headers(files.bounds, self.text_files(files.stores))

    def found_columns(self, files: FileRows) -> StructType:
        """The header's names; text unless types are to be found out."""
        from deltaworks.engines.spark.columns import text_columns

        if self.infer_schema:
            return files.own_columns(inferSchema="true")
        stamps = files.bounds.files
        first = next((stamp for stamp in stamps if stamp.size_bytes), stamps[0])
        if self.header and not self.multiline and not self.options:
            names = self.text_files(files.stores).plain_header(first.path)
            if names is not None:
                return text_columns(names)
        return replace(files, bounds=replace(files.bounds, files=(first,))).own_columns()

    def reparsed(self, rows: DataFrame, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        text = F.from_csv("raw", with_corrupt(columns).json(), self.parse_options())
        return rows.select("*", text.alias("text")).select("text.*", "*").drop("raw", "text")
