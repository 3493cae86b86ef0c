"""Files as rows: their own columns, those of their folders, and where each row is from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.spark.frames.columns import declared_columns, quoted
from deltaworks.errors import InputError, SpecError
from deltaworks.model.batch import Bounds
from deltaworks.storage.hive_partitions import partition_base, partition_keys
from deltaworks.storage.listing import spark_paths
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.types import StructType

SOURCE_FILE = "_source_file"
INGESTED_AT = "_ingested_at"


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """Files of one format, and what is to be known of them besides their rows."""

    spark: SparkSession
    file_format: str
    bounds: Bounds
    options: Mapping[str, str]
    partition_types: Mapping[str, str]
    source_file: bool
    ingested_at: datetime | None
    stores: Stores = NO_STORES

    def own_columns(self, **more: str) -> StructType:
        """The columns that Spark finds in the files themselves."""
        return self._reader(more).load(spark_paths(self.bounds)).schema

    def frame(self, columns: StructType | None = None, **more: str) -> DataFrame:
        """The rows, with the files' own columns unless others are named."""
        keys = partition_keys(self.bounds)
        self._require_keys(keys)
        reader = self._reader(more)
        if keys:
            reader = reader.schema(self._with_keys(columns or self.own_columns(**more), keys))
            reader = reader.option("basePath", partition_base(self.bounds))
        elif columns is not None:
            reader = reader.schema(columns)
        return self._with_origin(reader.load(spark_paths(self.bounds)))

    def texts(
        self, columns: StructType, text: str, address: str, *, whole: bool
    ) -> tuple[DataFrame, StructType]:
        """Each line or file as bytes in a column, with the file's address; and its own columns.

        Those of the wanted columns that are folders are in the frame already.
        """
        from pyspark.sql.types import StringType, StructField, StructType

        self._refuse_taken(columns.fieldNames())
        keys = {key.lower() for key in partition_keys(self.bounds)}
        folders = [field for field in columns.fields if field.name.lower() in keys]
        own = [field for field in columns.fields if field not in folders]
        shape = StructType([StructField(text, StringType()), *folders])
        plain = replace(self, file_format="text")
        frame = plain.frame(shape, wholetext=str(whole).lower())
        return frame.select("*", file_address(frame).alias(address)), StructType(own)

    @property
    def added(self) -> tuple[str, ...]:
        """Columns that are not in the files."""
        file = (SOURCE_FILE,) if self.source_file else ()
        moment = (INGESTED_AT,) if self.ingested_at is not None else ()
        return (*partition_keys(self.bounds), *file, *moment)

    def _reader(self, more: Mapping[str, str]) -> DataFrameReader:
        return self.spark.read.format(self.file_format).options(**{**self.options, **more})

    def _with_keys(self, columns: StructType, keys: tuple[str, ...]) -> StructType:
        """Keys are text unless a type is named: one guessed from a few values would change."""
        from pyspark.sql.types import StructType

        named = {field.name.lower() for field in columns.fields}
        missing = [key for key in keys if key.lower() not in named]
        types = [f"{quoted(key)} {self.partition_types.get(key, 'string')}" for key in missing]
        added = declared_columns(", ".join(types)).fields if types else []
        return StructType([*columns.fields, *added])

    def _require_keys(self, keys: tuple[str, ...]) -> None:
        for name in self.partition_types:
            if name not in keys:
                raise SpecError(
                    f'partition_types names "{name}", and no folder is called {name}=...',
                    hint=did_you_mean(name, keys),
                )

    def _origins(self) -> list[str]:
        return [name for name in (SOURCE_FILE, INGESTED_AT) if name in self.added]

    def _refuse_taken(self, columns: Sequence[str]) -> None:
        for name in self._origins():
            if name in columns:
                raise InputError(
                    f'the files have a column "{name}" of their own',
                    hint=f"leave `{name.removeprefix('_')}` out",
                )

    def _with_origin(self, frame: DataFrame) -> DataFrame:
        self._refuse_taken(frame.columns)
        for name in self._origins():
            value = file_path(frame) if name == SOURCE_FILE else moment(self.ingested_at)
            frame = frame.select("*", value.alias(name))
        return frame


def file_path(frame: DataFrame) -> Column:
    """The path of the file that a row is from, as people write it."""
    return as_path(file_address(frame))


def file_address(frame: DataFrame) -> Column:
    """The address that Spark has for the file that a row is from."""
    return frame.metadataColumn("_metadata").getField("file_path")


def as_path(address: Column) -> Column:
    """An address of Spark's as people write paths."""
    from pyspark.sql import functions as F

    plain = F.regexp_replace(address, "^file:/+", "/")
    return F.url_decode(F.replace(plain, F.lit("+"), F.lit("%2B")))  # which it takes for a space


def moment(at: datetime | None) -> Column:
    """A point in time as a value."""
    from pyspark.sql import functions as F

    return F.lit(at).cast("timestamp")
