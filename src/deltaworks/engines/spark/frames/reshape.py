"""Values of one type as values of another that holds them all; nested fields go by name.

Spark's own cast of a struct goes by position, and would put values under the wrong names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.model.schema import fits

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType


def shaped(value: Column, has: DataType, wants: DataType) -> Column:
    """The value in the wanted type; what only a wider table could hold stays as it is."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(has, StructType) and isinstance(wants, StructType):
        return F.when(value.isNotNull(), F.struct(*_fields(value, has, wants)))
    if isinstance(has, ArrayType) and isinstance(wants, ArrayType):
        return F.transform(value, lambda item: shaped(item, has.elementType, wants.elementType))
    if isinstance(has, MapType) and isinstance(wants, MapType):
        keyed = F.transform_keys(value, lambda key, _: shaped(key, has.keyType, wants.keyType))
        return F.transform_values(
            keyed, lambda _, item: shaped(item, has.valueType, wants.valueType)
        )
    return value.cast(wants) if fits(_name(has), into=_name(wants)) else value


def _fields(value: Column, has: StructType, wants: StructType) -> list[Column]:
    """The wanted fields in their order, NULL where there is none, then those that are new."""
    from pyspark.sql import functions as F

    own = {field.name.lower(): field for field in has.fields}
    found = []
    for field in wants.fields:
        given = own.pop(field.name.lower(), None)
        if given is None:
            found.append(F.lit(None).cast(field.dataType).alias(field.name))
        else:
            inner = shaped(value.getField(given.name), given.dataType, field.dataType)
            found.append(inner.alias(field.name))
    return [*found, *[value.getField(field.name).alias(field.name) for field in own.values()]]


def _name(kind: DataType) -> str:
    return str(kind.jsonValue())
