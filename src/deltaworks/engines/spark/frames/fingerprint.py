"""A hash of a whole row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.engines.spark.frames.columns import column, exact_json, quoted
from deltaworks.engines.spark.frames.comparable import form

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def fingerprint(frame: DataFrame) -> Column:
    """A hash of the whole row. Spark's hash skips NULLs, so where they are goes in as well."""
    from pyspark.sql import functions as F

    parts = []
    for field in frame.schema.fields:
        value = column(frame, field.name)
        name, kind = quoted(field.name), field.jsonValue()["type"]
        parts.append(value.isNull())
        if not isinstance(kind, str):
            parts.append(F.expr(exact_json(name)))  # a NULL within leaves its trace here
        parts.append(F.expr(form(name, kind)))
    return F.xxhash64(*parts)
