"""Casts that keep the value: what would be rounded or cut does not fit.

These pairs can lose, and are looked at:

- a number with a fraction to a whole number or to a decimal of fewer places, and a text to such a
  decimal: what lies behind the last place must be zeros;
- a whole number to float or double: it must be one that the type can tell from its neighbours;
- a number to boolean: it must be 0 or 1;
- a timestamp to a number: it must be a whole second.

These are not, because losing is what they are for: anything with a fraction to float or double,
which round by their nature, and a timestamp to a date.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from deltaworks.engines.spark.errors.row_notes import stop
from deltaworks.model.schema import fits

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, DecimalType

_WHOLE = ("tinyint", "smallint", "int", "bigint")
_BINARY = ("float", "double")


def exactly(value: Column, has: DataType, wants: DataType, *, hint: str) -> Column:
    """The value in another type; one that does not fit, or not as it is, stops the run."""
    from pyspark.sql import functions as F

    loses, cast = lossy(value, has, wants), value.cast(wants)
    if loses is None:
        return cast
    return F.when(loses, stopped(value, has, wants, hint=hint)).otherwise(cast)


def stopped(value: Column, has: DataType, wants: DataType, *, hint: str, step: str = "") -> Column:
    """A column that stops the run with a value that would lose, and what would become of it."""
    from pyspark.sql import functions as F

    shown = value.cast("string") if _is_plain(has) else F.to_json(F.struct(value.alias("v")))
    said = unlike(value, has, wants)
    message = F.concat(F.lit("the value "), shown, F.lit(" is not "), said)
    return stop(kind="value", step=step, message=message, hint=hint, about=(shown, said))


def unlike(value: Column, has: DataType, wants: DataType) -> Column:
    """The name of a type, and what would become of a value that loses in it."""
    from pyspark.sql import functions as F

    name = wants.simpleString()
    if not (_is_plain(has) and _is_plain(wants)):
        return F.lit(name)
    return F.concat(F.lit(f"{name}: it would become "), value.try_cast(wants).cast("string"))


def lossy(value: Column, has: DataType, wants: DataType) -> Column | None:
    """Whether a value that can be cast would not stay what it is; None where all values do."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, DecimalType, MapType, StructType

    if isinstance(has, ArrayType) and isinstance(wants, ArrayType):
        return _any_item(value, has.elementType, wants.elementType)
    if isinstance(has, MapType) and isinstance(wants, MapType):
        return _any_item(F.map_values(value), has.valueType, wants.valueType)
    if isinstance(has, StructType) and isinstance(wants, StructType):
        pairs = zip(has.fields, wants.fields, strict=False)  # as Spark casts them: in order
        parts = [lossy(value.getField(a.name), a.dataType, b.dataType) for a, b in pairs]
        found = [part for part in parts if part is not None]
        return reduce(lambda left, right: left | right, found) if found else None
    if has.simpleString() == "string" and isinstance(wants, DecimalType):
        return _text_loses(value, wants)
    if not _may_lose(has, wants):
        return None
    return value.try_cast(wants).try_cast(has) != value


def _any_item(value: Column, has: DataType, wants: DataType) -> Column | None:
    from pyspark.sql import functions as F

    if lossy(F.lit(None).cast(has), has, wants) is None:
        return None
    no = F.lit(0).cast("boolean")

    def loses(item: Column) -> Column:
        found = lossy(item, has, wants)
        return no if found is None else F.coalesce(found, no)

    return F.exists(value, loses)


def _may_lose(has: DataType, wants: DataType) -> bool:
    """Whether casting there and back tells of a loss."""
    from pyspark.sql.types import DecimalType

    came, goes = has.simpleString(), wants.simpleString()
    if fits(str(has.jsonValue()), into=str(wants.jsonValue())):
        return False
    is_number = came in (*_WHOLE, *_BINARY) or isinstance(has, DecimalType)
    if goes == "boolean":
        return is_number
    if came in _WHOLE:
        return goes in _BINARY
    if is_number:
        return goes in _WHOLE or isinstance(wants, DecimalType)
    return came == "timestamp" and goes in _WHOLE


def _text_loses(text: Column, wants: DecimalType) -> Column:
    """Whether a text has more places than a decimal: a digit but 0 behind the last one."""
    from pyspark.sql import functions as F

    power = text.rlike("[eE]")
    rounded = text.try_cast(wants)
    by_power = text.try_cast("double") != rounded.cast("double")
    by_digits = text.rlike(rf"\.[0-9]{{{wants.scale}}}[0-9]*[1-9]")
    return rounded.isNotNull() & F.when(power, by_power).otherwise(by_digits)


def _is_plain(kind: DataType) -> bool:
    from pyspark.sql.types import AtomicType

    return isinstance(kind, AtomicType)
