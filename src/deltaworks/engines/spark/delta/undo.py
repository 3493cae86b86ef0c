"""Taking one commit out of a table again, when nothing later touched what it did.

It must not lose what another writer commits, not even after the table was read. Where naming files
is enough, the log decides which commit is first (`engines/deltars/write/commit_undo.py`). Where
Spark writes, the written rows are compared with the table again as part of the write. A write reads
the version that is current when it begins; Delta refuses the commit if a later one conflicts.
So a foreign commit after the look stops the write, here or there. (On S3 that holds for writers
that Spark sees: see `engines/commit_protocol.py`.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.commit_protocol import committer_of, require_committer
from deltaworks.engines.deltars.commit_proof import commit_with
from deltaworks.engines.deltars.write.commit_undo import (
    RESTORE,
    FileSwap,
    commit_swap,
    file_names,
    file_swap,
)
from deltaworks.engines.spark.delta.layout import stamp_settings
from deltaworks.engines.spark.delta.merge.merge_sql import comparisons, merge_sql
from deltaworks.engines.spark.delta.tables import SparkEngine, table_sql
from deltaworks.engines.spark.errors.row_notes import stop
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.frames.fingerprint import fingerprint
from deltaworks.engines.spark.frames.json_rows import sample_rows
from deltaworks.engines.spark.frames.sizing import estimated_bytes, fitted
from deltaworks.engines.spark.frames.strings import plain_strings
from deltaworks.engines.spark.frames.temp_views import shared_view
from deltaworks.engines.spark.session.conf import temporary_conf
from deltaworks.errors import GuardError
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Overwrite, Upsert
from deltaworks.storage.listing import fsync_commit

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from deltaworks.engines.spark.delta.writer import TableWriter

_GONE, _WAS, _BECAME, _IS = (f"__deltaworks_{name}" for name in ("gone", "was", "became", "is"))


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Rows that undo a commit: merged by their keys, or written as the whole table."""

    frame: DataFrame
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reversal:
    """What undoes a commit, and how many rows that concerns."""

    table: TableInfo
    way: FileSwap | Rows
    rows_removed: int
    rows_put_back: int

    def commit(self, writer: TableWriter) -> int | None:
        """Undo it in one commit; answers its version, or None when there was nothing to undo."""
        if isinstance(self.way, FileSwap):
            return commit_swap(self.way, writer.stamp, writer.log.stores)
        if not self.rows_removed + self.rows_put_back:
            return None
        if self.way.keys:
            _merge_rows(writer, self.way, self.table.schema)
        else:
            writer.overwrite(self.way.frame, Overwrite())
        return self._landed(writer)

    def _landed(self, writer: TableWriter) -> int:
        records = writer.log.history(writer.location, after=self.table.version)
        made = commit_with(records, writer.stamp)
        if made is None:
            raise GuardError(
                f'nothing was taken out of "{writer.location}": a later batch was taken out before',
                hint=RESTORE,
            )
        fsync_commit(writer.location, made.version)
        return made.version


def _merge_rows(writer: TableWriter, rows: Rows, schema: Schema) -> None:
    """Rows that came go, all others are as they were; a table may have nothing but keys."""
    require_committer(writer.location, "spark", writer.log.stores)
    with (
        fitted(writer.spark, estimated_bytes(rows.frame)),
        shared_view(plain_strings(rows.frame)) as view,
        temporary_conf(writer.spark, stamp_settings(writer.stamp)),
    ):
        statement = merge_sql(
            Upsert(keys=rows.keys, delete_condition=f"source.{_GONE}"),
            table=table_sql(writer.location),
            source=view,
            batch=[name for name in rows.frame.columns if name != _GONE],
            ways=comparisons(schema, schema),
        )
        writer.spark.sql(statement).collect()


def revert_merge(
    spark: SparkSession, table: TableInfo, version: int, keys: Sequence[str]
) -> Reversal:
    """The rows whose merge undoes what a merge by these keys did."""
    from pyspark.sql import functions as F

    engine = SparkEngine(spark)
    now = engine.read(table.location, version=table.version)
    after = engine.read(table.location, version=version)
    before = _widened(_before(engine, table, version, after), now)
    was = before.select("*", fingerprint(before).alias(_WAS))
    became = _widened(after, now)
    became = became.select(*map(quoted, keys), fingerprint(became).alias(_BECAME))
    changed = was.join(became, list(keys), "full_outer").filter(
        ~F.col(_WAS).eqNullSafe(F.col(_BECAME))
    )
    looked = changed.join(_standing(now, keys), list(keys), "left").persist()
    try:
        _refuse_touched_keyless(looked, keys)
        keyed = looked.filter(~_keyless(keys))
        _refuse_touched(keyed.filter(~_same()).select(*map(quoted, keys)))
        row = keyed.agg(
            F.count_if(F.col(_WAS).isNull()), F.count_if(F.col(_WAS).isNotNull())
        ).collect()[0]
    finally:
        looked.unpersist()
    frame = _still_same(changed.filter(~_keyless(keys)), engine.read(table.location), keys)
    return Reversal(
        table=table,
        way=Rows(frame=frame, keys=tuple(keys)),
        rows_removed=int(row[0]),
        rows_put_back=int(row[1]),
    )


def _standing(rows: DataFrame, keys: Sequence[str]) -> DataFrame:
    return rows.select(*map(quoted, keys), fingerprint(rows).alias(_IS))


def _same() -> Column:
    """Whether a row stands as the commit left it."""
    from pyspark.sql import functions as F

    return F.col(_IS).eqNullSafe(F.col(_BECAME))


def _still_same(changed: DataFrame, stands: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows to merge, which stop the write if one does not stand as it was looked at."""
    from pyspark.sql import functions as F

    joined = changed.join(_standing(stands, keys), list(keys), "left")
    fine = F.when(_same(), F.lit(col=True)).otherwise(_moved())
    rows = joined.filter(fine.cast("boolean")).withColumn(_GONE, F.col(_WAS).isNull())
    return rows.drop(_WAS, _BECAME, _IS)


def revert_files(
    spark: SparkSession, table: TableInfo, version: int, *, stores: Stores = NO_STORES
) -> Reversal:
    """The files whose swap undoes what a commit did, or the rows of the table without it."""
    swap, engine = file_swap(table, version, stores), SparkEngine(spark)
    now, put_back = engine.read(table.location, version=table.version), 0
    if swap.replaced:
        before = engine.read(table.location, version=version - 1)
        removed, put_back = now.count(), before.count()
    else:
        removed = now.filter(_file_name(now).isin(*swap.names)).count()
    by_spark = swap.obstacle(stores) or committer_of(table.location, stores) == "spark"
    way = Rows(frame=_rewritten(engine, swap, stores)) if by_spark else swap
    return Reversal(table=table, way=way, rows_removed=removed, rows_put_back=put_back)


def _rewritten(engine: SparkEngine, swap: FileSwap, stores: Stores) -> DataFrame:
    """The whole table as it is to be; a file that was not there at the look stops the write."""
    from pyspark.sql import functions as F

    place = swap.table.location
    now, known = engine.read(place), file_names(swap.table, stores)
    stays = F.lit(col=False) if swap.replaced else ~_file_name(now).isin(*swap.names)
    fine = F.when(_file_name(now).isin(*known), stays).otherwise(_moved().cast("boolean"))
    rows = now.filter(fine)
    if not swap.replaced:
        return rows
    return engine.read(place, version=swap.version - 1).unionByName(rows)


def _file_name(rows: DataFrame) -> Column:
    return rows.metadataColumn("_metadata").getField("file_name")


def _moved() -> Column:
    from pyspark.sql import functions as F

    return stop(
        kind="conflict",
        step="",
        message=F.lit("another writer changed the table while a batch was taken out of it"),
        hint="run it again",
    )


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
        hint=RESTORE,
    )


def _keyless(keys: Sequence[str]) -> Column:
    """Whether a row has NULL in a key: no merge by key meets it."""
    from pyspark.sql import functions as F

    return F.expr(" OR ".join(f"{quoted(key)} IS NULL" for key in keys))


def _refuse_touched_keyless(looked: DataFrame, keys: Sequence[str]) -> None:
    """Rows without a key meet none when they are compared; before and after they must be alike."""
    from pyspark.sql import functions as F

    sides = [F.sort_array(F.collect_list(F.col(side))) for side in (_WAS, _BECAME)]
    row = looked.filter(_keyless(keys)).agg(*sides).collect()[0]
    if row[0] != row[1]:
        raise GuardError(
            "it changed rows with NULL in a key, which cannot be told apart", hint=RESTORE
        )
