"""Read delimited text files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.config.object_stores import Stores
from deltaworks.connectors.files.text_source import CORRUPT, RecordSource, with_corrupt
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.read.csv import CsvFiles
    from deltaworks.engines.spark.read.drifting_files import Part
    from deltaworks.engines.spark.read.files import FileRows

_DECIDE_HEADER = {
    "comment",
    "delimiter",
    "escape",
    "header",
    "ignoreleadingwhitespace",
    "ignoretrailingwhitespace",
    "linesep",
    "quote",
    "sep",
}
"""Options of Spark's by which the header is another line, or cut in another way."""


class CsvSource(RecordSource):
    """Delimited text at a path, folder or glob; columns are text unless a schema says otherwise."""

    example: ClassVar[Example] = {"path": "orders.csv"}
    rule: ClassVar[str] = "csv: cells fit the columns"

    header: bool = True
    """Whether the first line names the columns; without it, `schema` names them by position."""
    columns_by: Literal["name", "position"] = "name"
    """Whether cells find the columns of `schema` by the names in the header or by position."""
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
        if self.columns_by == "position" and self.schema_ is None:
            found = (*found, '"columns_by: position" needs "schema", which names the columns')
        return found

    def text_files(self, stores: Stores) -> CsvFiles:
        from deltaworks.engines.spark.read.csv import CsvFiles

        return CsvFiles(
            delimiter=self.delimiter,
            quote=self.quote,
            escape=self.escape,
            multiline=self.multiline,
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
        from deltaworks.engines.spark.read.text import refuse_other_bytes, refuse_other_text

        refuse_other_text(files.bounds, self.encoding, files.stores)
        refuse_other_bytes(files, self.encoding)

    def strict(self, files: FileRows, columns: StructType) -> DataFrame:
        from deltaworks.engines.spark.read.csv_decimals import as_text, strict_decimals
        from deltaworks.engines.spark.read.drifting_files import without_folders

        if self._other_numbers():
            return super().strict(files, columns)
        own = without_folders(columns, files)
        return strict_decimals(super().strict(files, as_text(columns, own)), own)

    def lenient(self, files: FileRows, columns: StructType) -> DataFrame:
        from deltaworks.engines.spark.read.csv_decimals import as_text
        from deltaworks.engines.spark.read.drifting_files import without_folders

        if self._other_numbers():
            return super().lenient(files, columns)
        own = without_folders(columns, files)
        return self._decimals(super().lenient(files, as_text(columns, own)), own)

    def _decimals(self, frame: DataFrame, columns: StructType) -> DataFrame:
        from deltaworks.engines.spark.read.csv_decimals import lenient_decimals

        return lenient_decimals(frame, columns, corrupt=CORRUPT, options=self.parse_options())

    def _other_numbers(self) -> bool:
        """Whether Spark is told to read numbers of another country, which it does by itself."""
        return "locale" in {name.lower() for name in self.options}

    def laid_out(
        self, files: FileRows, warn: Callable[[str], None]
    ) -> tuple[list[Part], StructType]:
        from deltaworks.engines.spark.frames.columns import declared_columns
        from deltaworks.engines.spark.read.csv_headers import by_header, typed
        from deltaworks.engines.spark.read.drifting_files import Part, settled, without_folders

        declared = declared_columns(self.schema_) if self.schema_ is not None else None
        parts = []
        if self._by_name():
            texts = self.text_files(files.stores)
            parts = by_header(files, texts, asks_spark=self._odd_lines())
        if parts:
            known = [typed(part, declared, infer=self.infer_schema) for part in parts]
            return known, settled(known, declared, self.drift(), warn=warn)
        if declared is None:
            declared = files.own_columns(inferSchema=str(self.infer_schema).lower())
        return [Part(files=files, columns=without_folders(declared, files))], declared

    def _by_name(self) -> bool:
        return self.header and self.columns_by == "name"

    def _odd_lines(self) -> bool:
        """Whether an option of Spark's decides what the header is."""
        return bool(_DECIDE_HEADER & {name.lower() for name in self.options})

    def text_columns(
        self, ctx: RunContext, kept: DataFrame, left: StructType, declared: StructType
    ) -> StructType:
        from deltaworks.engines.spark.read.drifting_files import differences, retyped
        from deltaworks.storage.drift import FileDrift

        if not self._by_name():
            return declared
        unknown, missing = differences(declared, left)
        drift = FileDrift(path="rows in quarantine", unknown=unknown, missing=missing)
        self.drift().judge([drift], ctx.warn)
        return retyped(left, declared)

    def why(self, frame: DataFrame, columns: StructType) -> Column:
        from deltaworks.engines.spark.read.csv_headers import misfit

        quote = "" if self.multiline else self.quote
        return misfit(CORRUPT, columns, self.parse_options(), quote=quote)

    def reparsed(self, rows: DataFrame, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.read.csv_decimals import as_text

        kinds = columns if self._other_numbers() else as_text(columns, columns)
        text = F.from_csv("raw", with_corrupt(kinds).json(), self.parse_options())
        parsed = rows.select("*", text.alias("text")).select("text.*", "*").drop("raw", "text")
        return parsed if self._other_numbers() else self._decimals(parsed, columns)
