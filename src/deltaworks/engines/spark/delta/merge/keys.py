"""The merge keys of a batch: none NULL, none twice, unless the pipeline says which wins."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from deltaworks.engines.spark.delta.merge.key_ranges import found_range, has_range
from deltaworks.engines.spark.frames.columns import column, quoted, require_columns
from deltaworks.engines.spark.frames.comparisons import column_type
from deltaworks.engines.spark.frames.fingerprint import fingerprint
from deltaworks.engines.spark.frames.json_rows import sample_rows
from deltaworks.engines.spark.frames.sizing import estimated_bytes, fitted
from deltaworks.errors import BatchKeyError
from deltaworks.model.merge_facts import BatchFacts
from deltaworks.model.write import Upsert

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ORDER = "__deltaworks_order"
_TIE = "__deltaworks_tie"
_ROWS = "__deltaworks_rows"


def require_named(frame: DataFrame, write: Upsert) -> None:
    """Raise when the batch lacks a column that the merge names."""
    named = {
        "merge_keys": write.keys,
        "update_columns": write.update_columns,
        "insert_columns": write.insert_columns,
    }
    for option, columns in named.items():
        require_columns(frame, columns, where=option, nested=False)
    if write.duplicates is not None:
        require_columns(frame, [write.duplicates.by], where="duplicates.by")


def refuse_null_keys(
    frame: DataFrame,
    keys: Sequence[str],
    *,
    what: str = "merge key",
    folders: Collection[str] = (),
) -> None:
    """Raise when a key is NULL: such a row would be inserted again at every run."""
    from pyspark.sql import functions as F

    nulls = frame.filter(_has_null(keys))
    samples = sample_rows(nulls)
    if not samples:
        return
    count = nulls.agg(F.count(F.lit(1))).collect()[0][0]
    named = next((key for key in keys if key.lower() in folders), "")
    empty = f'; an empty "{named}" is NULL too: the table is partitioned by it' if named else ""
    raise BatchKeyError(
        f"{count:,} row{' has' if count == 1 else 's have'} NULL in {what} "
        f"{_named(keys)}, for example {samples[0]}",
        hint="quarantine such rows with a not_null check and `on_fail: quarantine`" + empty,
        context={"samples": samples},
    )


def measured_keys(
    frame: DataFrame, keys: Sequence[str], *, folders: Collection[str] = ()
) -> BatchFacts:
    """What one pass finds of a batch by its keys; raises when one is NULL or there twice.

    `folders` are the columns that the table's folders are named by.
    """
    facts = counted_keys(frame, keys, folders=folders)
    if facts.keys_repeated:
        many, samples = facts.keys_repeated, sample_rows(repeated_keys(frame, keys))
        raise BatchKeyError(
            f"{many:,} merge key{'' if many == 1 else 's'} {_named(keys)} "
            f"occur{'s' if many == 1 else ''} in the batch more than once: "
            f"{', '.join(samples)}",
            hint="say which row wins, such as `duplicates: {keep: newest, by: updated_at}`",
            context={"samples": samples},
        )
    return facts


def counted_keys(
    frame: DataFrame, keys: Sequence[str], *, folders: Collection[str] = ()
) -> BatchFacts:
    """What one pass over nothing but the keys finds; raises when one is NULL."""
    from pyspark.sql import functions as F

    with fitted(frame.sparkSession, estimated_bytes(frame)):
        repeated = F.count_if(F.col(_ROWS) > 1)
        facts = _measured(_counted(frame, keys), frame, keys, repeated=repeated, folders=folders)
    if facts.rows_null_key:
        refuse_null_keys(frame, keys, folders=folders)
    return facts


def repeated_keys(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The keys that stand in a batch more than once."""
    from pyspark.sql import functions as F

    return _counted(frame, keys).filter(F.col(_ROWS) > 1).drop(_ROWS)


def _counted(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    from pyspark.sql import functions as F

    rows = F.count(F.lit(1)).alias(_ROWS)
    return frame.groupBy(*[column(frame, key) for key in keys]).agg(rows)


def measured_winners(
    ranked: DataFrame, keys: Sequence[str], *, folders: Collection[str] = ()
) -> BatchFacts:
    """What one pass finds of the rows that `keep_one` kept."""
    from pyspark.sql import functions as F

    with fitted(ranked.sparkSession, estimated_bytes(ranked)):
        return _measured(ranked, ranked, keys, repeated=F.count_if(_TIE), folders=folders)


def without_marks(ranked: DataFrame) -> DataFrame:
    """The rows that `keep_one` kept, as they came."""
    return ranked.drop(_TIE, _ROWS)


def refuse_ties(ranked: DataFrame, keys: Sequence[str], by: str, *, ties: int, hint: str) -> None:
    """Raise when nothing tells which row wins."""
    if not ties:
        return
    columns = [column(ranked, key) for key in keys]
    samples = sample_rows(ranked.filter(_TIE).select(*columns))
    raise BatchKeyError(
        f"{ties:,} merge key{'' if ties == 1 else 's'} {_named(keys)} have different rows "
        f'with the same "{by}": {", ".join(samples)}',
        hint=hint,
        context={"samples": samples},
    )


def _measured(
    counted: DataFrame,
    kept: DataFrame,
    keys: Sequence[str],
    *,
    repeated: Column,
    folders: Collection[str],
) -> BatchFacts:
    """The figures of rows that know for how many of the batch each of them stands."""
    from pyspark.sql import functions as F

    kinds = {key: column_type(counted, key).simpleString() for key in keys}
    bounded = [key for key in keys if has_range(kinds[key])]
    figures = {
        "rows": F.coalesce(F.sum(_ROWS), F.lit(0)),
        "keys": F.count(F.lit(1)),
        "null": F.coalesce(F.sum(F.when(F.expr(_has_null(keys)), F.col(_ROWS))), F.lit(0)),
        "repeated": repeated,
    }
    for i, key in enumerate(bounded):
        value = column(counted, key)
        figures[f"low_{i}"] = F.min(value).cast("string")
        figures[f"high_{i}"] = F.max(value).cast("string")
        if key.lower() in folders:
            figures[f"values_{i}"] = F.collect_set(value.cast("string"))
    found = counted.agg(*[figure.alias(name) for name, figure in figures.items()]).collect()[0]
    row = found.asDict()
    ranges = [
        found_range(key, kinds[key], row[f"low_{i}"], row[f"high_{i}"], row.get(f"values_{i}"))
        for i, key in enumerate(bounded)
    ]
    return BatchFacts(
        rows=int(row["keys"]),
        bytes=estimated_bytes(kept),
        rows_null_key=int(row["null"]),
        keys_repeated=int(row["repeated"]),
        rows_dropped=int(row["rows"]) - int(row["keys"]),
        ranges=tuple(known for known in ranges if known is not None),
    )


def keep_one(
    frame: DataFrame, keys: Sequence[str], *, keep: Literal["newest", "oldest"], by: str
) -> DataFrame:
    """One row per key: for how many it stands, and a mark where different rows tie for it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    key_columns = [column(frame, key) for key in keys]
    by_column = column(frame, by)
    print_of_row = fingerprint(frame)
    order = by_column.desc_nulls_last() if keep == "newest" else by_column.asc_nulls_last()
    alike = Window.partitionBy(*key_columns)
    ranked = alike.orderBy(order, print_of_row)
    equals = alike.orderBy(order).rangeBetween(Window.currentRow, Window.currentRow)
    tie = F.min(print_of_row).over(equals) != F.max(print_of_row).over(equals)
    rows = F.count(F.lit(1)).over(alike)
    return (
        frame.withColumns({_ORDER: F.row_number().over(ranked), _TIE: tie, _ROWS: rows})
        .filter(F.col(_ORDER) == 1)
        .drop(_ORDER)
    )


def parted(frame: DataFrame, few: DataFrame, keys: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """The rows whose keys are not among a few, and those whose keys are."""
    from functools import reduce

    from pyspark.sql import functions as F

    names = [f"__deltaworks_key_{i}" for i in range(len(keys))]
    sought = F.broadcast(few.toDF(*names))
    pairs = zip(keys, names, strict=True)
    same = reduce(lambda a, b: a & b, [column(frame, key) == F.col(name) for key, name in pairs])
    return frame.join(sought, same, "left_anti"), frame.join(sought, same, "left_semi")


def count_ties(ranked: DataFrame) -> int:
    """How many of the rows that `keep_one` kept are tied with others."""
    return ranked.filter(_TIE).count()


def _has_null(keys: Sequence[str]) -> str:
    return " OR ".join(f"{quoted(key)} IS NULL" for key in keys)


def _named(keys: Sequence[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
