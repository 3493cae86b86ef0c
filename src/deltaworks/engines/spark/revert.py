"""Taking one commit out of a table again, when nothing later touched what it did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.deltars.log import file_changes
from deltaworks.engines.spark.columns import quoted
from deltaworks.engines.spark.engine import SparkEngine
from deltaworks.engines.spark.keys import fingerprint
from deltaworks.engines.spark.samples import sample_rows
from deltaworks.engines.spark.sizing import estimated_bytes
from deltaworks.errors import GuardError
from deltaworks.model.merge_facts import BatchFacts
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Upsert

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_GONE, _WAS, _BECAME, _IS = (f"__deltaworks_{name}" for name in ("gone", "was", "became", "is"))
_RESTORE = "set the whole table back with `deltaworks table restore`"


@dataclass(frozen=True, kw_only=True)
class Reversal:
    """The rows that undo a commit: a batch to merge, or the whole table to write."""

    frame: DataFrame
    merge: Upsert | None
    rows_removed: int
    rows_put_back: int

    @property
    def facts(self) -> BatchFacts:
        """What is known of the batch to merge."""
        rows = self.rows_removed + self.rows_put_back
        return BatchFacts(rows=rows, bytes=estimated_bytes(self.frame))


def revert_merge(
    spark: SparkSession, table: TableInfo, version: int, keys: Sequence[str]
) -> Reversal:
    """The rows whose merge undoes what a merge by these keys did."""
    from pyspark.sql import functions as F

    engine = SparkEngine(spark)
    now = engine.read(table.location, version=table.version)
    after = engine.read(table.location, version=version)
    before = _widened(_before(engine, table, version, after), now)
    names = [quoted(key) for key in keys]
    was = before.select("*", fingerprint(before).alias(_WAS))
    became = _widened(after, now)
    became = became.select(*names, fingerprint(became).alias(_BECAME))
    stands = now.select(*names, fingerprint(now).alias(_IS))
    changed = was.join(became, list(keys), "full_outer").filter(
        ~F.col(_WAS).eqNullSafe(F.col(_BECAME))
    )
    looked = changed.join(stands, list(keys), "left").persist()
    try:
        _refuse_touched(looked.filter(~F.col(_IS).eqNullSafe(F.col(_BECAME))).select(*names))
        row = looked.agg(
            F.count_if(F.col(_WAS).isNull()), F.count_if(F.col(_WAS).isNotNull())
        ).collect()[0]
    finally:
        looked.unpersist()
    frame = changed.withColumn(_GONE, F.col(_WAS).isNull()).drop(_WAS, _BECAME)
    return Reversal(
        frame=frame,
        merge=_merge(now.columns, keys),
        rows_removed=int(row[0]),
        rows_put_back=int(row[1]),
    )


def revert_files(
    spark: SparkSession, table: TableInfo, version: int, *, stores: Stores = NO_STORES
) -> Reversal:
    """The table without the files that a commit added."""
    from pyspark.sql import functions as F

    added, removed = file_changes(table.location, version, stores)
    if removed:
        return _revert_overwrite(spark, table, version)
    for later in range(version + 1, table.version + 1):
        if added & file_changes(table.location, later, stores)[1]:
            raise GuardError(
                f"version {later} rewrote files that version {version} had added", hint=_RESTORE
            )
    names = [unquote(path).rpartition("/")[2] for path in added]
    now = SparkEngine(spark).read(table.location, version=table.version)
    is_added = F.col("_metadata.file_name").isin(*names)
    return Reversal(
        frame=now.filter(~is_added),
        merge=None,
        rows_removed=now.filter(is_added).count(),
        rows_put_back=0,
    )


def _revert_overwrite(spark: SparkSession, table: TableInfo, version: int) -> Reversal:
    """What stood before an overwrite; that is known only while nothing came after it."""
    if version != table.version:
        raise GuardError(
            f"version {version} replaced rows, and {table.version - version} later versions "
            "build upon it",
            hint=_RESTORE,
        )
    engine = SparkEngine(spark)
    before = engine.read(table.location, version=version - 1)
    now = engine.read(table.location, version=version)
    if before.schema.simpleString() != now.schema.simpleString():
        raise GuardError(f"version {version} replaced the schema too", hint=_RESTORE)
    removed, put_back = now.count(), before.count()
    return Reversal(frame=before, merge=None, rows_removed=removed, rows_put_back=put_back)


def _before(engine: SparkEngine, table: TableInfo, version: int, after: DataFrame) -> DataFrame:
    if version == 0:
        return after.limit(0)
    return engine.read(table.location, version=version - 1)


def _widened(frame: DataFrame, now: DataFrame) -> DataFrame:
    """An older snapshot with the columns of the newest; those it had not are NULL."""
    from pyspark.sql import functions as F

    have = {name.lower() for name in frame.columns}
    return frame.select(
        *[
            F.col(quoted(field.name)).cast(field.dataType)
            if field.name.lower() in have
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in now.schema.fields
        ]
    )


def _refuse_touched(touched: DataFrame) -> None:
    samples = sample_rows(touched)
    if not samples:
        return
    rows = touched.count()
    raise GuardError(
        f"{rows:,} of its row{'' if rows == 1 else 's'} changed again in later versions, "
        f"for example {samples[0]}",
        hint=_RESTORE,
    )


def _merge(columns: Sequence[str], keys: Sequence[str]) -> Upsert:
    lower = {key.lower() for key in keys}
    return Upsert(
        keys=tuple(keys),
        delete_condition=f"source.{_GONE}",
        update_columns=tuple(name for name in columns if name.lower() not in lower),
        insert_columns=tuple(columns),
    )
