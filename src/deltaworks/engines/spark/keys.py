"""The merge keys of a batch: none NULL, none twice, unless the pipeline says which wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from deltaworks.engines.spark.columns import column, exact_json, quoted
from deltaworks.engines.spark.samples import sample_rows
from deltaworks.errors import BatchKeyError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ORDER = "__deltaworks_order"
_TIE = "__deltaworks_tie"
_TIE_HINT = "choose a column for `duplicates.by` that tells them apart"


def refuse_null_keys(frame: DataFrame, keys: Sequence[str], *, what: str = "merge key") -> None:
    """Raise when a key is NULL: such a row would be inserted again at every run."""
    from pyspark.sql import functions as F

    nulls = frame.filter(" OR ".join(f"{quoted(key)} IS NULL" for key in keys))
    samples = sample_rows(nulls)
    if not samples:
        return
    count = nulls.agg(F.count(F.lit(1))).collect()[0][0]
    raise BatchKeyError(
        f"{count:,} row{' has' if count == 1 else 's have'} NULL in {what} "
        f"{_named(keys)}, for example {samples[0]}",
        hint="set such rows aside with a not_null check and `on_fail: quarantine`",
        context={"samples": samples},
    )


def refuse_duplicate_keys(frame: DataFrame, keys: Sequence[str]) -> int:
    """Raise when two rows have the same key; answers the number of rows."""
    from pyspark.sql import functions as F

    counted = frame.groupBy(*[column(frame, key) for key in keys]).agg(
        F.count(F.lit(1)).alias(_ORDER)
    )
    row = counted.agg(F.coalesce(F.sum(_ORDER), F.lit(0)), F.count_if(F.col(_ORDER) > 1)).collect()[
        0
    ]
    rows, repeated = int(row[0]), int(row[1])
    if repeated:
        samples = sample_rows(counted.filter(F.col(_ORDER) > 1).drop(_ORDER))
        raise BatchKeyError(
            f"{repeated:,} merge key{'' if repeated == 1 else 's'} {_named(keys)} "
            f"stand{'s' if repeated == 1 else ''} in the batch more than once: "
            f"{', '.join(samples)}",
            hint="say which row wins, such as `duplicates: {keep: newest, by: updated_at}`",
            context={"samples": samples},
        )
    return rows


def keep_one(
    frame: DataFrame, keys: Sequence[str], *, keep: Literal["newest", "oldest"], by: str
) -> DataFrame:
    """One row per key, with a mark where different rows tie for the place."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    key_columns = [column(frame, key) for key in keys]
    by_column = column(frame, by)
    print_of_row = fingerprint(frame)
    order = by_column.desc_nulls_last() if keep == "newest" else by_column.asc_nulls_last()
    ranked = Window.partitionBy(*key_columns).orderBy(order, print_of_row)
    equals = Window.partitionBy(*key_columns, by_column)
    tie = F.min(print_of_row).over(equals) != F.max(print_of_row).over(equals)
    return (
        frame.withColumns({_ORDER: F.row_number().over(ranked), _TIE: tie})
        .filter(F.col(_ORDER) == 1)
        .drop(_ORDER)
    )


def refuse_ties(
    frame: DataFrame, keys: Sequence[str], by: str, *, hint: str = _TIE_HINT
) -> tuple[DataFrame, int]:
    """Raise when nothing tells which row wins; answers the rows without the mark, and how many."""
    from pyspark.sql import functions as F

    row = frame.agg(F.count(F.lit(1)), F.count_if(_TIE)).collect()[0]
    rows, ties = int(row[0]), int(row[1])
    if ties:
        columns = [column(frame, key) for key in keys]
        samples = sample_rows(frame.filter(_TIE).select(*columns))
        raise BatchKeyError(
            f"{ties:,} merge key{'' if ties == 1 else 's'} {_named(keys)} have different rows "
            f'with the same "{by}": {", ".join(samples)}',
            hint=hint,
            context={"samples": samples},
        )
    return frame.drop(_TIE), rows


def fingerprint(frame: DataFrame) -> Column:
    """A hash of the whole row. Spark's hash skips NULLs, so where they are goes in as well."""
    from pyspark.sql import functions as F

    parts = []
    for field in frame.schema.fields:
        value = column(frame, field.name)
        is_nested = "<" in field.dataType.simpleString()
        parts.append(value.isNull())
        parts.append(F.expr(exact_json(quoted(field.name))) if is_nested else value)
    return F.xxhash64(*parts)


def _named(keys: Sequence[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
