"""Read JSON files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from deltaworks.config.object_stores import Stores
from deltaworks.connectors.files.text_source import CORRUPT, FILE, RecordSource
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.errors import InputError
from deltaworks.storage.listing import MissingColumns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.read.drifting_files import Part
    from deltaworks.engines.spark.read.files import FileRows
    from deltaworks.engines.spark.read.json import JsonFiles


class JsonSource(RecordSource):
    """JSON records at a path, folder or glob, one on each line or in documents."""

    example: ClassVar[Example] = {
        "path": "orders.json",
        "schema": "id bigint, name string, amount double",
    }
    rule: ClassVar[str] = "json: the record fits the columns"

    multiline: bool = False
    """Whether each file is one document: a record, or an array of records."""
    missing_columns: MissingColumns = "fill"
    """Columns of `schema` that no record of the batch has: stop, or read NULL."""

    def problems(self) -> tuple[str, ...]:
        found = super().problems()
        if self.multiline and self.on_error == "quarantine":
            found = (*found, '"on_error: quarantine" needs a record on each line, not "multiline"')
        return found

    def text_files(self, stores: Stores) -> JsonFiles:
        from deltaworks.engines.spark.read.json import JsonFiles

        return JsonFiles(encoding=self.encoding, multiline=self.multiline, stores=stores)

    def reader_options(self) -> dict[str, str]:
        options = {"multiLine": str(self.multiline).lower()}
        # Spark finds UTF-8 by itself, and only so does it know a mark at the beginning of a file
        return (
            options if self.encoding.lower() == "utf-8" else {**options, "encoding": self.encoding}
        )

    def look_over(self, files: FileRows) -> None:
        from deltaworks.engines.spark.read.json import refuse_lines

        if self.multiline:
            refuse_lines(files.bounds, self.text_files(files.stores))

    def strict(self, files: FileRows, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.errors.row_notes import stop
        from deltaworks.engines.spark.read.text import SET_ASIDE

        rows = self.lenient(files, columns)
        reason = F.concat(F.lit("a record cannot be read: "), F.col(CORRUPT))
        halt = stop(kind="record", step="", message=reason, hint=SET_ASIDE)
        fits = F.when(F.col(CORRUPT).isNull(), F.lit(1) == 1).otherwise(halt)
        return rows.filter(fits).drop(CORRUPT, FILE)

    def lenient(self, files: FileRows, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.columns import quoted
        from deltaworks.engines.spark.read import json_records as json_rows
        from deltaworks.engines.spark.read.text import decoded

        frame, own = files.texts(columns, json_rows.TEXT, FILE, whole=self.multiline)
        text = decoded(F.col(json_rows.TEXT), self.encoding)
        texts = frame.withColumn(json_rows.TEXT, text)
        parsed = json_rows.parsed(texts, own, self.parse_options())
        rows = json_rows.records(parsed, own, corrupt=CORRUPT)
        named = columns.fieldNames()
        names = (*named, *(name for name in rows.columns if name not in named))
        return rows.select(*[F.col(quoted(name)) for name in names])

    def reparsed(self, rows: DataFrame, columns: StructType) -> DataFrame:
        from deltaworks.engines.spark.read import json_records as json_rows

        texts = rows.withColumnRenamed("raw", json_rows.TEXT)
        parsed = json_rows.parsed(texts, columns, self.parse_options())
        return json_rows.records(parsed, columns, corrupt=CORRUPT)

    def taken(self, ctx: RunContext, row: Row, columns: StructType) -> Sequence[Row]:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.read import json_records as json_rows

        text = ctx.spark.range(1).select(F.lit(row[CORRUPT]).alias(json_rows.TEXT))
        found = json_rows.parsed(text, columns, self.parse_options()).head(1)
        return (found[0][json_rows.PARSED]["records"] or ()) if found else ()

    def laid_out(
        self, files: FileRows, warn: Callable[[str], None]
    ) -> tuple[list[Part], StructType]:
        from deltaworks.engines.spark.frames.columns import declared_columns
        from deltaworks.engines.spark.read.drifting_files import Part, without_folders

        if self.schema_ is None:
            wanted = self._told(files)
        else:
            wanted = self._compared(files, declared_columns(self.schema_), warn)
        return [Part(files=files, columns=without_folders(wanted, files))], wanted

    def _told(self, files: FileRows) -> StructType:
        """What the records of all files have; each type takes in every value."""
        from deltaworks.engines.spark.read.json import first_fault
        from deltaworks.engines.spark.read.text import refuse_other_text

        columns = self._inferred(files)
        if not columns.fields:
            refuse_other_text(files.bounds, self.encoding, files.stores)
            fault = first_fault(files.bounds, self.text_files(files.stores))
            raise fault or InputError(
                f'the files at "{self.path}" hold no record that would tell their columns',
                hint="name them: schema: id bigint, amount double",
            )
        return columns

    def _compared(
        self, files: FileRows, declared: StructType, warn: Callable[[str], None]
    ) -> StructType:
        """The declared columns, and others if they are kept; all records are looked at for that."""
        from deltaworks.engines.spark.read.drifting_files import Part, extended, without_folders
        from deltaworks.engines.spark.read.json import first_with
        from deltaworks.engines.spark.read.json_fields import judge_fields

        if self.unknown_columns == "ignore" and self.missing_columns == "fill":
            return declared
        part = Part(files=files, columns=self._inferred(files))
        if part.columns.fields:
            texts, asked = self.text_files(files.stores), without_folders(declared, files)
            first = partial(first_with, files.bounds, texts)
            judge_fields(asked, part.columns, self.drift(), warn, first=first)
        return extended(declared, [part]) if self.unknown_columns == "keep" else declared

    def _inferred(self, files: FileRows) -> StructType:
        from deltaworks.engines.spark.read.json_fields import FIELDS, without_text

        told = FIELDS
        if "encoding" in files.options and not self.multiline:
            told = {**FIELDS, "lineSep": "\n"}  # or Spark reads no lines of such an encoding
        return without_text(files.own_columns(**told))

    def text_columns(
        self, ctx: RunContext, kept: DataFrame, left: StructType, declared: StructType
    ) -> StructType:
        from deltaworks.engines.spark.read.json_fields import kept_columns

        texts = kept.select("raw")
        return kept_columns(
            texts, left, declared, self.unknown_columns, options=self.parse_options(), warn=ctx.warn
        )

    def why(self, frame: DataFrame, columns: StructType) -> Column:
        from deltaworks.engines.spark.read.json_records import misfit

        return misfit(CORRUPT, columns)
