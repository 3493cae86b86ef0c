"""What sources of text records have in common: columns, and records that do not fit them."""

from __future__ import annotations

from abc import abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.plugin import REJECTED
from deltaworks.engines.encodings import Encoding, is_wide
from deltaworks.engines.file_source import FileSource
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.file_rows import FileRows
    from deltaworks.engines.spark.text_files import TextFiles

_CORRUPT = "__deltaworks_corrupt"
_FILE = "__deltaworks_file"
_APART = "deltaworks.apart"
"""Marks the columns of a refused row that are not in its text: its folders, its file, its time."""
_LOOK_LINES = 10
_MOST_ROWS = 1_000
_PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}


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
        return ()

    @abstractmethod
    def text_files(self) -> TextFiles:
        """How the files are written."""

    @abstractmethod
    def look_over(self, bounds: Bounds) -> None:
        """Refuse files that Spark would read wrongly and say nothing."""

    @abstractmethod
    def found_columns(self, files: FileRows) -> StructType:
        """The columns that the files themselves tell of."""

    @abstractmethod
    def parsed(self, text: Column, columns: StructType) -> Column:
        """A record's text as a struct of columns."""

    def finds_columns(self) -> bool:
        return self.schema_ is None

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.file_rows import file_path

        self.look_over(bounds)
        files = self.files(ctx, bounds)
        columns = self._columns(files)
        if self.on_error == "fail":
            return files.frame(columns, mode="FAILFAST")
        frame = files.frame(_with_corrupt(columns), **_PERMISSIVE)
        return self._marked(frame, F.concat(F.lit("in "), file_path(frame)), files.added)

    def reread(self, ctx: RunContext, kept: DataFrame, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        from deltaworks.engines.spark.columns import EXACT_TIMES, declared_columns
        from deltaworks.engines.spark.file_rows import INGESTED_AT, moment

        apart = StructType([field for field in columns.fields if _APART in field.metadata])
        named = declared_columns(self.schema_) if self.schema_ is not None else columns
        own = StructType([f for f in named.fields if f.name not in apart.fieldNames()])
        text = self.parsed(F.col("raw"), _with_corrupt(own))
        rest = F.from_json("row", apart, EXACT_TIMES)
        rows = kept.select(text.alias("text"), rest.alias("rest")).select("text.*", "rest.*")
        if INGESTED_AT in apart.fieldNames():
            rows = rows.withColumn(INGESTED_AT, moment(ctx.now))
        return self._marked(rows, F.lit("read once more"), tuple(apart.fieldNames()))

    def holds_rows(self, site: Site, bounds: Bounds) -> bool:
        if self.multiline or self.options:
            return False
        files = self.text_files()
        return any(
            files.surely_row(line)
            for stamp in bounds.files
            for _, line in islice(files.records(stamp.path), _LOOK_LINES)
        )

    def parse_options(self) -> dict[str, str]:
        """What is told to Spark when it parses text that was read before."""
        apart = ("encoding", "multiLine", "header")
        options = {**self.reader_options(), **self.options, **_PERMISSIVE}
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

        raw = F.col(_CORRUPT)
        kept = frame.drop(_CORRUPT)
        for name in apart:
            kept = kept.withMetadata(name, {_APART: True})
        mark = rejection(raw.isNotNull(), kept, rule=self.rule, reason=reason, raw=raw)
        return frame.select("*", mark.alias(REJECTED)).drop(_CORRUPT)

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        from deltaworks.engines.spark.file_rows import file_path
        from deltaworks.engines.spark.text_files import find_value, record_error

        if not {"value", "record", "path"} & set(error.context) or not bounds.files:
            return error
        files = self.files(ctx, bounds)
        columns = self._columns(files)
        own = StructType([field for field in columns.fields if field.name not in files.added])
        if "value" in error.context:
            return find_value(error, bounds, self.text_files(), columns=own.fieldNames())
        frame = files.frame(_with_corrupt(columns), **_PERMISSIVE)
        # Spark refuses to read the corrupt column alone, so the others are asked for as well
        wrong = frame.select("*", file_path(frame).alias(_FILE)).filter(F.col(_CORRUPT).isNotNull())
        found = wrong.head(1)
        if not found:
            return error
        path, raw = found[0][_FILE], found[0][_CORRUPT]
        same = F.col(_FILE) == path if self.multiline else F.col(_CORRUPT) == raw
        parsed = wrong.filter(same).drop(_CORRUPT).head(_MOST_ROWS)
        return record_error(self.text_files(), path, raw=raw, parsed=parsed, columns=own)


def _with_corrupt(columns: StructType) -> StructType:
    """The columns, and one for the text of records that do not fit them."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*columns.fields, StructField(_CORRUPT, StringType())])
