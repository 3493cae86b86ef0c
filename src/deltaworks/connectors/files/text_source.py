"""What sources of text records have in common: columns, and records that do not fit them."""

from __future__ import annotations

from abc import abstractmethod
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Literal

from deltaworks.config.object_stores import Stores
from deltaworks.connectors.files.source import DriftingSource
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import REJECTED
from deltaworks.contracts.tolerance import MaxFailed
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.storage.encodings import Encoding, is_wide

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, Row
    from pyspark.sql.types import StructType

    from deltaworks.engines.spark.read.drifting_files import Part
    from deltaworks.engines.spark.read.files import FileRows
    from deltaworks.engines.spark.read.text import TextFiles

CORRUPT = "__deltaworks_corrupt"
FILE = "__deltaworks_file"
_REST = "__deltaworks_rest"
_APART = "deltaworks.apart"
"""Marks the columns of a refused row that are not in its text: its folders, its file, its time."""
_LOOK_LINES = 10
PERMISSIVE = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}


class RecordSource(DriftingSource):
    """Text records at a path, folder or glob."""

    rule: ClassVar[str]
    """What a quarantined record has broken."""
    max_failed: MaxFailed = None
    """How many records may go into quarantine, as `10` or `0.1%` of those read; more stop it."""

    encoding: Encoding = "UTF-8"
    """The files' character encoding."""
    multiline: bool = False
    """Whether a record may stretch over several lines."""
    on_error: Literal["fail", "quarantine"] = "fail"
    """What happens to a record that does not fit the columns."""

    def problems(self) -> tuple[str, ...]:
        found = super().problems()
        if is_wide(self.encoding) and not self.multiline:
            return (*found, f'"encoding: {self.encoding}" needs "multiline: true"')
        if {"encoding", "charset"} & {name.lower() for name in self.options}:
            return (*found, '"encoding" has a place of its own, outside "options"')
        return found

    @abstractmethod
    def text_files(self, stores: Stores) -> TextFiles:
        """How the files are written."""

    @abstractmethod
    def look_over(self, files: FileRows) -> None:
        """Refuse files that Spark would read wrongly and say nothing."""

    @abstractmethod
    def laid_out(
        self, files: FileRows, warn: Callable[[str], None]
    ) -> tuple[list[Part], StructType]:
        """The files in parts of the same columns, as their texts have them; and those of all rows.

        A difference that the source's policy does not allow is refused.
        """

    @abstractmethod
    def text_columns(
        self, ctx: RunContext, kept: DataFrame, left: StructType, declared: StructType
    ) -> StructType:
        """What is read of quarantined texts, which left with some columns, in the order of these.

        A difference that the source's policy does not allow is refused.
        """

    @abstractmethod
    def why(self, frame: DataFrame, columns: StructType) -> Column:
        """Why the `CORRUPT` text of a row does not fit the columns."""

    @abstractmethod
    def reparsed(self, rows: DataFrame, columns: StructType) -> DataFrame:
        """Rows of `raw` text with the columns that are read of it, and `CORRUPT`."""

    def strict(self, files: FileRows, columns: StructType) -> DataFrame:
        """The records; one that does not fit the columns stops the run."""
        return files.frame(columns, mode="FAILFAST")

    def lenient(self, files: FileRows, columns: StructType) -> DataFrame:
        """The records, with the text of those that do not fit as `CORRUPT`, and their `FILE`."""
        from deltaworks.engines.spark.read.files import file_address

        frame = files.frame(with_corrupt(columns), **PERMISSIVE)
        return frame.select("*", file_address(frame).alias(FILE))

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.read.drifting_files import conformed, together

        files = self.files(ctx, bounds)
        self.look_over(files)
        parts, wanted = self.laid_out(files, ctx.warn)
        frames = [self._rows(part) for part in parts]
        names = wanted.fieldNames()
        in_place = [name for name in frames[0].columns if name in names] == names
        if len(parts) == 1 and in_place and set(parts[0].columns.fieldNames()) <= set(names):
            return frames[0]
        return together([conformed(frame, wanted, files.added) for frame in frames])

    def reread(self, ctx: RunContext, kept: DataFrame, columns: StructType) -> DataFrame:
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        from deltaworks.engines.spark.frames.columns import EXACT_TIMES
        from deltaworks.engines.spark.read.drifting_files import conformed
        from deltaworks.engines.spark.read.files import INGESTED_AT, moment

        apart = StructType([field for field in columns.fields if _APART in field.metadata])
        names = tuple(apart.fieldNames())
        left = StructType([field for field in columns.fields if field.name not in names])
        declared = self._declared(names)
        own = left if declared is None else self.text_columns(ctx, kept, left, declared)
        rest = F.from_json("row", apart, EXACT_TIMES)
        rows = self.reparsed(kept.select("raw", rest.alias(_REST)), own)
        rows = rows.select("*", f"{_REST}.*").drop(_REST)
        if INGESTED_AT in apart.fieldNames():
            rows = rows.withColumn(INGESTED_AT, moment(ctx.now))
        marked = self._marked(rows, own, "read once more", names)
        wanted = own if declared is None else self._wanted(own, declared)
        return conformed(marked, wanted, names)

    def holds_rows(self, project_ctx: ProjectContext, bounds: Bounds) -> bool:
        if self.multiline or self.options:
            return False
        files = self.text_files(project_ctx.stores)
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

    def _rows(self, part: Part) -> DataFrame:
        """The rows of a part, with its own columns and those that are not in the files."""
        from pyspark.sql.types import StructType

        from deltaworks.engines.spark.frames.columns import declared_columns

        declared = declared_columns(self.schema_).fields if self.schema_ is not None else []
        added = {name.lower() for name in part.files.added}
        folders = [field for field in declared if field.name.lower() in added]
        columns = StructType([*part.columns.fields, *folders])
        if self.on_error == "fail":
            return self.strict(part.files, columns)
        frame = self.lenient(part.files, columns)
        return self._marked(frame, part.columns, "", part.files.added)

    def _declared(self, apart: Sequence[str]) -> StructType | None:
        """The columns of `schema` that are in the text; None without a schema."""
        from deltaworks.engines.spark.frames.columns import declared_columns
        from deltaworks.engines.spark.read.drifting_files import without

        return None if self.schema_ is None else without(declared_columns(self.schema_), apart)

    def _wanted(self, own: StructType, declared: StructType) -> StructType:
        """The columns that rows of a text have in the end."""
        from pyspark.sql.types import StructType

        if self.unknown_columns != "keep":
            return declared
        rest = {field.name.lower(): field for field in own.fields}
        named = [rest.pop(field.name.lower(), field) for field in declared.fields]
        return StructType([*named, *rest.values()])

    def _marked(
        self, frame: DataFrame, columns: StructType, where: str, apart: tuple[str, ...]
    ) -> DataFrame:
        """Records that do not fit are refused with their text; `where` is empty for their file."""
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.frames.rejects import rejection
        from deltaworks.engines.spark.read.files import as_path

        raw = F.col(CORRUPT)
        place = F.lit(where) if where else F.concat(F.lit("in "), as_path(F.col(FILE)))
        reason = F.concat(place, F.lit(": "), self.why(frame, columns))
        kept = frame.drop(CORRUPT, FILE)
        for name in apart:
            kept = kept.withMetadata(name, {_APART: True})
        mark = rejection(raw.isNotNull(), kept, rule=self.rule, reason=reason, raw=raw)
        return frame.select("*", mark.alias(REJECTED)).drop(CORRUPT, FILE)

    def located(self, ctx: RunContext, bounds: Bounds, refused: DataFrame) -> DataFrame:
        from deltaworks.engines.spark.read.line_numbers import with_lines

        return with_lines(refused, self.text_files(ctx.project_ctx.stores), bounds)

    def explain_failure(
        self, ctx: RunContext, bounds: Bounds, error: DeltaworksError
    ) -> DeltaworksError:
        from deltaworks.engines.spark.read.text import find_other_text, find_value

        if "encoding" in error.context:
            return find_other_text(error, bounds, self.encoding, ctx.project_ctx.stores)
        if not {"value", "record", "path"} & set(error.context) or not bounds.files:
            return error
        texts = self.text_files(ctx.project_ctx.stores)
        parts, _ = self.laid_out(self.files(ctx, bounds), lambda _: None)
        for part in parts:
            if "value" in error.context:
                names = part.columns.fieldNames()
                found = find_value(error, part.files.bounds, texts, columns=names)
            else:
                found = self._first_misfit(ctx, part) or error
            if found is not error:
                return found
        return error

    def _first_misfit(self, ctx: RunContext, part: Part) -> DeltaworksError | None:
        """The error for the first record of a part that does not fit; None when all do."""
        from pyspark.sql import functions as F

        from deltaworks.engines.spark.read.files import as_path
        from deltaworks.engines.spark.read.text import record_error

        # Spark refuses to read the corrupt column alone, so the others are asked for as well
        wrong = self.lenient(part.files, part.columns).filter(F.col(CORRUPT).isNotNull())
        rows = wrong.withColumn(FILE, as_path(F.col(FILE))).head(1)
        if not rows:
            return None
        texts, own = self.text_files(ctx.project_ctx.stores), part.columns
        return record_error(
            texts,
            rows[0][FILE],
            raw=rows[0][CORRUPT],
            parsed=self.taken(ctx, rows[0], own),
            columns=own,
        )

    def taken(self, ctx: RunContext, row: Row, columns: StructType) -> Sequence[Row]:
        """What could be read of a text that does not fit: a row for each of its records."""
        return (row,)


def with_corrupt(columns: StructType) -> StructType:
    """The columns, and one for the text of records that do not fit them."""
    from pyspark.sql.types import StringType, StructField, StructType

    return StructType([*columns.fields, StructField(CORRUPT, StringType())])
