"""What sources of text records have in common: columns, and records that do not fit them."""

from __future__ import annotations

from abc import abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.config.storage import Stores
from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.encodings import Encoding, is_wide
from deltaworks.engines.file_source import FileSource
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.file_rows import FileRows
    from deltaworks.engines.spark.text_files import TextFiles

CORRUPT = "__deltaworks_corrupt"
FILE = "__deltaworks_file"
_REST = "__deltaworks_rest"
_APART = "deltaworks.apart"
"""Marks the columns of a refused row that are not in its text: its folders, its file, its time."""
_LOOK_LINES = 10
PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


class RecordSource(FileSource):
    """Text records at a path, folder or glob."""

    rule: ClassVar[str]
    """What a record that is set aside has broken."""

    encoding: Encoding = "UTF-8"
    """The files' character encoding."""
    multiline: bool = False
    """Whether a record may stretch over several lines."""
    schema_: str | None = Field(default=None, alias="schema")
    """Columns and types as SQL spells them, such as `id bigint, amount double`."""
    on_error: Literal["fail", "quarantine"] = "fail"
    """What happens to a record that does not fit the columns."""

    def problems(self) -> tuple[str, ...]:
        if is_wide(self.encoding) and not self.multiline:
            return (f'"encoding: {self.encoding}" needs "multiline: true"',)
        if {"encoding", "charset"} & {name.lower() for name in self.options}:
            return ('"encoding" has a place of its own, outside "options"',)
        return ()

    @abstractmethod
    def text_files(self, stores: Stores) -> TextFiles:
        """How the files are written."""

    @abstractmethod
    def look_over(self, files: FileRows) -> None:
        """Refuse files that Spark would read wrongly and say nothing."""

    @abstractmethod
    def found_columns(self, files: FileRows) -> StructType:
        """The columns that the files themselves tell of."""

    @abstractmethod
    def reparsed(self, rows: DataFrame, columns: StructType) -> DataFrame:
        """Rows of `raw` text with the columns that are read of it, and `CORRUPT`."""

    def strict(self, files: FileRows, columns: StructType) -> DataFrame:
        """The records; one that does not fit the columns stops the run."""
        return files.frame(columns, mode="FAILFAST")

    def lenient(self, files: FileRows, columns: StructType) -> DataFrame:
        """The records, with the text of those that do not fit as `CORRUPT`, and their `FILE`."""
        from deltaworks.engines.spark.file_rows import file_address

        frame = files.frame(with_corrupt(columns), **PERMISSIVE)
        return frame.select("*", file_address(frame).alias(FILE))

    def finds_columns(self) -> bool:
        return self.schema_ is None

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.file_rows import as_path

        files = self.files(ctx, bounds)
        self.look_over(files)
        columns = self._columns(files)
        if self.on_error == "fail":
            return self.strict(files, columns)
        frame = self.lenient(files, columns)
        return self._marked(frame, F.concat(F.lit("in "), as_path(F.col(FILE))), files.added)

    def reread(self, ctx: RunContext, kept: DataFrame, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        from deltaworks.engines.spark.columns import EXACT_TIMES, declared_columns
        from deltaworks.engines.spark.file_rows import INGESTED_AT, moment

        apart = StructType([field for field in columns.fields if _APART in field.metadata])
        named = declared_columns(self.schema_) if self.schema_ is not None else columns
        own = StructType([f for f in named.fields if f.name not in apart.fieldNames()])
        rest = F.from_json("row", apart, EXACT_TIMES)
        rows = self.reparsed(kept.select("raw", rest.alias(_REST)), own)
        rows = rows.select("*", f"{_REST}.*").drop(_REST)
        if INGESTED_AT in apart.fieldNames():
            rows = rows.withColumn(INGESTED_AT, moment(ctx.now))
        return self._marked(rows, F.lit("read once more"), tuple(apart.fieldNames()))

    def holds_rows(self, site: Site, bounds: Bounds) -> bool:
        if self.multiline or self.options:
            return False
        files = self.text_files(site.stores)
        return any(
            files.surely_row(line)
            for stamp in bounds.files
            for _, line in islice(files.records(stamp.path), _LOOK_LINES)
        )

    def parse_options(self) -> dict[str, str]:
        """What is told to Spark when it parses text that was read before."""
        apart = ("encoding", "multiLine", "header")
        options = {**self.reader_options(), **self.options, **PERMISSIVE}
        return {key: value for key, value in options.items() if key not in apart}

    def _columns(self, files: FileRows) -> StructType:
        from deltaworks.engines.spark.columns import declared_columns

        if self.schema_ is not None:
            return declared_columns(self.schema_)
        return self.found_columns(files)

    def _marked(self, frame: DataFrame, reason: Column, apart: tuple[str, ...]) -> DataFrame:
        """Records that do not fit are refused with their text."""
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.rejects import rejection

        raw = F.col(CORRUPT)
        kept = frame.drop(CORRUPT, FILE)
        for name in apart:
            kept = kept.withMetadata(name, {_APART: True})
        mark = rejection(raw.isNotNull(), kept, rule=self.rule, reason=reason, raw=raw)
        return frame.select("*", mark.alias(REJECTED)).drop(CORRUPT, FILE)

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        from deltaworks.engines.spark.file_rows import as_path
        from deltaworks.engines.spark.text_files import (
            find_other_text,
            find_value,
            record_error,
        )

        if "encoding" in error.context:
            return find_other_text(error, bounds, self.encoding, ctx.site.stores)
        if not {"value", "record", "path"} & set(error.context) or not bounds.files:
            return error
        files = self.files(ctx, bounds)
        columns = self._columns(files)
        own = StructType([field for field in columns.fields if field.name not in files.added])
        if "value" in error.context:
            return find_value(
                error, bounds, self.text_files(ctx.site.stores), columns=own.fieldNames()
            )
        # Spark refuses to read the corrupt column alone, so the others are asked for as well
        wrong = self.lenient(files, columns).filter(F.col(CORRUPT).isNotNull())
        found = wrong.withColumn(FILE, as_path(F.col(FILE))).head(1)
        if not found:
            return error
        path, raw = found[0][FILE], found[0][CORRUPT]
        parsed = self.taken(ctx, found[0], own)
        return record_error(
            self.text_files(ctx.site.stores), path, raw=raw, parsed=parsed, columns=own
        )

    def taken(self, ctx: RunContext, row: Row, columns: StructType) -> Sequence[Row]:
        """What could be read of a text that does not fit: a row for each of its records."""
        return (row,)


def with_corrupt(columns: StructType) -> StructType:
    """The columns, and one for the text of records that do not fit them."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*columns.fields, StructField(CORRUPT, StringType())])
