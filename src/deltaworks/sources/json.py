"""Read JSON files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.config.storage import Stores
from deltaworks.contracts.context import RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.engines.record_source import CORRUPT, FILE, RecordSource
from deltaworks.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.file_rows import FileRows
    from deltaworks.engines.spark.json_files import JsonFiles

_CORRUPT = "__deltaworks_not_json"


class JsonSource(RecordSource):
    """JSON records at a path, folder or glob, one on each line or in documents."""

    example: ClassVar[Example] = {
        "path": "orders.json",
        "schema": "id bigint, name string, amount double",
    }
    rule: ClassVar[str] = "json: the record fits the columns"

    multiline: bool = False
    """Whether each file is one document: a record, or an array of records."""

    def problems(self) -> tuple[str, ...]:
        found = super().problems()
        if self.multiline and self.on_error == "quarantine":
            found = (*found, '"on_error: quarantine" needs a record on each line, not "multiline"')
        return found

    def text_files(self, stores: Stores) -> JsonFiles:
        from deltaworks.engines.spark.json_files import JsonFiles

        return JsonFiles(encoding=self.encoding, multiline=self.multiline, stores=stores)

    def reader_options(self) -> dict[str, str]:
        options = {"multiLine": str(self.multiline).lower()}
        # Spark finds UTF-8 by itself, and only so does it know a mark at the beginning of a file
        return (
            options if self.encoding.lower() == "utf-8" else {**options, "encoding": self.encoding}
        )

    def look_over(self, files: FileRows) -> None:
        from deltaworks.engines.spark.json_files import refuse_lines

        if self.multiline:
            refuse_lines(files.bounds, self.text_files(files.stores))

    def strict(self, files: FileRows, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.notes import stop
        from deltaworks.engines.spark.text_files import SET_ASIDE

        rows = self.lenient(files, columns)
        reason = F.concat(F.lit("a record cannot be read: "), F.col(CORRUPT))
        halt = stop(kind="record", step="", message=reason, hint=SET_ASIDE)
        fits = F.when(F.col(CORRUPT).isNull(), F.lit(1) == 1).otherwise(halt)
        return rows.filter(fits).drop(CORRUPT, FILE)

    def lenient(self, files: FileRows, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark import json_rows
        from deltaworks.engines.spark.columns import quoted
        from deltaworks.engines.spark.decoding import decoded

        frame, own = files.texts(columns, json_rows.TEXT, FILE, whole=self.multiline)
        text = decoded(F.col(json_rows.TEXT), self.encoding)
        texts = frame.withColumn(json_rows.TEXT, text)
        parsed = json_rows.parsed(texts, own, self.parse_options())
        rows = json_rows.records(parsed, own, corrupt=CORRUPT)
        named = columns.fieldNames()
        names = (*named, *(name for name in rows.columns if name not in named))
        return rows.select(*[F.col(quoted(name)) for name in names])

    def reparsed(self, rows: DataFrame, columns: StructType) -> DataFrame:
        from deltaworks.engines.spark import json_rows

        texts = rows.withColumnRenamed("raw", json_rows.TEXT)
        parsed = json_rows.parsed(texts, columns, self.parse_options())
        return json_rows.records(parsed, columns, corrupt=CORRUPT)

    def taken(self, ctx: RunContext, row: Row, columns: StructType) -> Sequence[Row]:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark import json_rows

        text = ctx.spark.range(1).select(F.lit(row[CORRUPT]).alias(json_rows.TEXT))
        found = json_rows.parsed(text, columns, self.parse_options()).head(1)
        return (found[0][json_rows.PARSED]["records"] or ()) if found else ()

    def found_columns(self, files: FileRows) -> StructType:
        """What the records of all files have; each type takes in every value."""
        from pyspark.sql.types import StructType

        from deltaworks.engines.spark.json_files import first_fault
        from deltaworks.engines.spark.text_files import refuse_other_text

        told = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        if "encoding" in files.options and not self.multiline:
            told["lineSep"] = "\n"  # without which Spark reads no lines of such an encoding
        found = files.own_columns(**told)
        columns = [field for field in found.fields if field.name != _CORRUPT]
        if not columns:
            refuse_other_text(files.bounds, self.encoding, files.stores)
            fault = first_fault(files.bounds, self.text_files(files.stores))
            raise fault or InputError(
                f'the files at "{self.path}" hold no record that would tell their columns',
                hint="name them: schema: id bigint, amount double",
            )
        return StructType(columns)
