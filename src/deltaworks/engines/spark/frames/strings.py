"""Strings as Delta tables have them, whichever way Spark is spoken to.

PySpark 4.2 sends every string type to a Connect server with the name of its collation, also the
one that strings have anyway. Delta keeps that name in the table, and other readers refuse it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.session.connect import has_jvm

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def plain_strings(frame: DataFrame) -> DataFrame:
    """The frame with strings that name no collation, except those that have another one."""
    from pyspark.sql import functions as F

    if has_jvm(frame.sparkSession):
        return frame
    columns = []
    for field in frame.schema.fields:
        value, kind = F.col(quoted(field.name)), plain(field.dataType)
        if kind != field.dataType:
            value = value.cast(kind).alias(field.name, metadata=field.metadata)
        columns.append(value)
    return frame.select(*columns)


def plain(kind: DataType) -> DataType:
    """The type with nameless collations, which a server takes for its own."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if isinstance(kind, StringType) and kind == StringType():
        return StringType("")
    if isinstance(kind, ArrayType):
        return ArrayType(plain(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(plain(kind.keyType), plain(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return StructType(
            [StructField(f.name, plain(f.dataType), f.nullable, f.metadata) for f in kind.fields]
        )
    return kind
