"""Read delimited text files."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.plugin import REJECTED, Example
from deltaworks.engines.file_source import FileSource
from deltaworks.engines.files import spark_paths
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.csv_files import Dialect

_CORRUPT = "__deltaworks_corrupt"
_FILE = "__deltaworks_file"
_LOOK_LINES = 10


class CsvSource(FileSource):
    """Delimited text at a path, folder or glob; columns are text unless a schema says otherwise."""

    example: ClassVar[Example] = {"path": "orders.csv"}

    header: bool = True
    """Whether the first line names the columns."""
    delimiter: str = ","
    """What separates cells."""
    quote: str = '"'
    """What encloses a cell that holds a delimiter."""
    escape: str = '"'
    """What stands before a quote inside a quoted cell."""
    encoding: str = "UTF-8"
    """The files' character encoding."""
    null_value: str = ""
    """The text that stands for NULL."""
    multiline: bool = False
    """Whether a quoted cell may hold line breaks."""
    schema_: str | None = Field(default=None, alias="schema")
    """Columns and types as SQL spells them, such as `id bigint, amount double`."""
    on_error: Literal["fail", "quarantine"] = "fail"
    """What happens to a row that has too few or too many cells, or a value of the wrong type."""

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.csv_files import check_headers

        if self.header and not self.multiline:
            check_headers(bounds, self._dialect())
        schema = self._columns(ctx, bounds)
        if self.on_error == "fail":
            reader = ctx.spark.read.options(**self._options(), mode="FAILFAST").schema(schema)
            return reader.csv(spark_paths(bounds))
        place = F.concat(F.lit("in "), F.col("_metadata.file_path"))
        return self._marked(self._permissive(ctx, schema).csv(spark_paths(bounds)), place)

    def reread(self, ctx: RunContext, raw: DataFrame, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F

        reader = self._permissive(ctx, columns).option("header", "false")
        return self._marked(reader.csv(raw), F.lit("read once more"))

    def holds_rows(self, site: Site, bounds: Bounds) -> bool:
        if self.multiline or self.options:
            return False
        first = 2 if self.header else 1
        return any(
            number >= first and line.strip()
            for stamp in bounds.files
            for number, line in islice(self._dialect().lines(stamp.path), _LOOK_LINES)
        )

    def _columns(self, ctx: RunContext, bounds: Bounds) -> StructType:
        """The declared columns, or the header's, all text."""
        from deltaworks.engines.spark.columns import declared_columns

        if self.schema_ is not None:
            return declared_columns(self.schema_)
        files = zip(bounds.files, spark_paths(bounds), strict=True)
        holding = next((path for stamp, path in files if stamp.size_bytes), spark_paths(bounds)[0])
        return ctx.spark.read.options(**self._options()).csv(holding).schema

    def _dialect(self) -> Dialect:
        from deltaworks.engines.spark.csv_files import Dialect

        return Dialect(
            delimiter=self.delimiter,
            quote=self.quote,
            encoding=self.encoding,
            header=self.header,
            null_value=self.null_value,
        )

    def _options(self) -> dict[str, str]:
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
            **self.options,
        }

    def _permissive(self, ctx: RunContext, schema: StructType) -> DataFrameReader:
        """Gives every row, those that do not fit with their raw text beside them."""
        from pyspark.sql.types import StringType, StructField, StructType

        wide = StructType([*schema.fields, StructField(_CORRUPT, StringType())])
        options = {**self._options(), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        return ctx.spark.read.options(**options).schema(wide)

    def _marked(self, frame: DataFrame, reason: Column) -> DataFrame:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.rejects import rejection

        raw = F.col(_CORRUPT)
        parsed = frame.drop(_CORRUPT)
        mark = rejection(
            raw.isNotNull(), parsed, rule="csv: cells fit the columns", reason=reason, raw=raw
        )
        return frame.select("*", mark.alias(REJECTED)).drop(_CORRUPT)

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.csv_files import bad_row_error, find_value

        if not {"value", "record", "path"} & set(error.context) or not bounds.files:
            return error
        schema = self._columns(ctx, bounds)
        if "value" in error.context:
            return find_value(error, bounds, self._dialect(), columns=schema.fieldNames())
        frame = self._permissive(ctx, schema).csv(spark_paths(bounds))
        wrong = frame.filter(F.col(_CORRUPT).isNotNull())
        # Spark refuses to read the corrupt column alone, so the others are asked for as well
        found = wrong.select("*", F.col("_metadata.file_path").alias(_FILE)).head(1)
        if not found:
            return error
        return bad_row_error(
            found[0],
            file=found[0][_FILE],
            raw=found[0][_CORRUPT],
            schema=schema,
            dialect=self._dialect(),
        )
