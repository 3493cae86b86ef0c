"""Read JSON files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.plugin import Example
from deltaworks.engines.record_source import RecordSource
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import Column
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

    def text_files(self) -> JsonFiles:
        from deltaworks.engines.spark.json_files import JsonFiles

        return JsonFiles(encoding=self.encoding, multiline=self.multiline)

    def reader_options(self) -> dict[str, str]:
        return {"encoding": self.encoding, "multiLine": str(self.multiline).lower()}

    def look_over(self, bounds: Bounds) -> None:
        from deltaworks.engines.spark.json_files import refuse_lines

        if self.multiline:
            refuse_lines(bounds, self.text_files())

    def found_columns(self, files: FileRows) -> StructType:
        """What the records of all files have; each type takes in every value."""
        from pyspark.sql.types import StructType

        found = files.own_columns(mode="PERMISSIVE", columnNameOfCorruptRecord=_CORRUPT)
        columns = [field for field in found.fields if field.name != _CORRUPT]
        if not columns:
            raise InputError(
                f'the files at "{self.path}" hold no record that would tell their columns',
                hint="name them: schema: id bigint, amount double",
            )
        return StructType(columns)

    def parsed(self, text: Column, columns: StructType) -> Column:
        from pyspark.sql import functions as F

        return F.from_json(text, columns, self.parse_options())
