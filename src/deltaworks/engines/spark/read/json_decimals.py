"""Decimals of JSON texts, compared with their digits: Spark's reader rounds them and says nothing.

Only the variant type keeps the digits of a number. A text is parsed as one if it has a number that
might be rounded; most texts have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.frames.exact_casts import lossy
from deltaworks.engines.spark.read.csv_decimals import without_commas

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, DecimalType, StructType

_DIGITS = "__deltaworks_digits"


def only_exact(
    frame: DataFrame, columns: StructType, options: Mapping[str, str], *, parsed: str, text: Column
) -> DataFrame:
    """The frame whose parsed texts hold no rounded decimal: it is NULL, and the text does not fit.

    A text that only Spark's reader takes for JSON does not fit if it might be rounded.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType

    scales = [kind.scale for kind in _decimals(columns)]
    if not scales or "locale" in {name.lower() for name in options}:
        return frame
    listed = F.when(text.startswith("["), text).otherwise(F.concat(F.lit("["), text, F.lit("]")))
    digits = F.try_variant_get(F.try_parse_json(listed), "$", f"array<{_as_texts(columns)}>")
    in_doubt = text.rlike(rf"\.[0-9]{{{min(scales)}}}[0-9]*[1-9]|[0-9][eE]")
    # generated rather than selected, so that no text is parsed twice
    rows = frame.select("*", F.explode_outer(F.array(F.when(in_doubt, digits))).alias(_DIGITS))
    found, known, no = F.col(parsed), F.col(_DIGITS), F.lit(0).cast("boolean")
    loses = in_doubt & F.coalesce(_loses(known, ArrayType(columns)), ~no)
    kept = F.transform(
        found.getField("records"), lambda row, i: _kept(row, F.get(known, i), columns)
    )
    exact = found.withField("records", kept).withField("end", found.getField("end") & ~loses)
    return rows.withColumn(parsed, F.when(loses, exact).otherwise(found)).drop(_DIGITS)


def digits_of(raw: Column, path: str) -> Column:
    """A value of a JSON text with all its digits; NULL where the text is not JSON."""
    from pyspark.sql import functions as F

    return F.try_variant_get(F.try_parse_json(raw), path, "string")


def _decimals(kind: DataType) -> Iterator[DecimalType]:
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(kind, DecimalType):
        yield kind
    elif isinstance(kind, StructType):
        for field in kind.fields:
            yield from _decimals(field.dataType)
    elif isinstance(kind, ArrayType):
        yield from _decimals(kind.elementType)
    elif isinstance(kind, MapType):
        yield from _decimals(kind.valueType)


def _as_texts(kind: DataType) -> str:
    """The type with text for each decimal, as SQL spells it; only what holds a decimal."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(kind, StructType):
        fields = [field for field in kind.fields if any(_decimals(field.dataType))]
        inner = [f"{quoted(field.name)}: {_as_texts(field.dataType)}" for field in fields]
        return f"struct<{', '.join(inner)}>"
    if isinstance(kind, ArrayType):
        return f"array<{_as_texts(kind.elementType)}>"
    return f"map<string, {_as_texts(kind.valueType)}>" if isinstance(kind, MapType) else "string"


def _loses(text: Column, kind: DataType) -> Column:
    """Whether a decimal in a value, given as texts, would be rounded; NULL for no value."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    no = F.lit(0).cast("boolean")
    if isinstance(kind, StructType):
        fields = [field for field in kind.fields if any(_decimals(field.dataType))]
        parts = [_loses(text.getField(field.name), field.dataType) for field in fields]
        return reduce(lambda left, right: left | right, [F.coalesce(part, no) for part in parts])
    if isinstance(kind, ArrayType):
        return F.exists(text, lambda item: F.coalesce(_loses(item, kind.elementType), no))
    if isinstance(kind, MapType):
        return _loses(F.map_values(text), ArrayType(kind.valueType))
    loses = lossy(without_commas(text), StringType(), kind)
    assert loses is not None
    return loses


def _kept(value: Column, text: Column, kind: DataType) -> Column:
    """The value, with NULL for what would be rounded."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if not any(_decimals(kind)):
        return value
    if not isinstance(kind, StructType):
        return F.when(~F.coalesce(_loses(text, kind), F.lit(0).cast("boolean")), value)
    fields = [
        _kept(value.getField(field.name), text.getField(field.name), field.dataType).alias(
            field.name
        )
        for field in kind.fields
    ]
    return F.when(value.isNotNull(), F.struct(*fields))
