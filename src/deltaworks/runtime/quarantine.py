"""The quarantine table: refused rows, with why and whence, one slice per batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.contracts.context import RunContext
from deltaworks.engines.commit_protocol import committer_of
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.deltars.rows import delete_rows, query_rows, text
from deltaworks.engines.spark.columns import literal
from deltaworks.engines.spark.write import TableWriter
from deltaworks.model.batch import Replay
from deltaworks.model.commit import CommitInfo, Txn
from deltaworks.model.table_ref import quarantine_table
from deltaworks.model.write import Append, Layout, Overwrite, Stamp
from deltaworks.runtime.frames import Rejects
from deltaworks.runtime.ledger import BatchEntry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SINK = "__quarantine"
Quote = Callable[[str], str]
"""How an engine's SQL writes a text."""
_FEW_ROWS = 1000
"""So many fit into memory, whatever they hold."""
_KEPT = ("rule", "reason", "row", "columns", "raw", "stage", "kind")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which of the rows that are set aside."""

    batch: int | None = None
    step: str = ""
    rule: str = ""


@dataclass(frozen=True)
class Quarantine:
    """What one pipeline of one project has set aside; looked at without a JVM."""

    location: str
    project: str
    pipeline: str
    stores: Stores = field(default=NO_STORES, repr=False)
    spark: Callable[[str], SparkSession] | None = field(default=None, repr=False)
    """What commits to it where delta-rs must not."""

    @staticmethod
    def of(
        warehouse: str,
        *,
        project: str,
        pipeline: str,
        stores: Stores = NO_STORES,
        spark: Callable[[str], SparkSession] | None = None,
    ) -> Quarantine:
        """The quarantine of a pipeline."""
        place = quarantine_table(pipeline, warehouse=warehouse).location
        return Quarantine(place, project, pipeline, stores, spark)

    def exists(self) -> bool:
        """Whether anything was ever set aside."""
        return DeltaRsEngine(self.stores).identity(self.location) is not None

    def groups(
        self, choice: Choice | None = None, *, version: int | None = None
    ) -> list[dict[str, Any]]:
        """How many rows each rule set aside in each batch, oldest first."""
        if not self.exists():
            return []
        names = "batch, stage, kind, rule"
        return query_rows(
            self.location,
            f"{names}, min(run_id) AS run_id, count(*) AS rows, min(reason) AS example, "
            "min(quarantined_at) AS quarantined_at",
            where=self._where(choice),
            rest=f"GROUP BY {names} ORDER BY {names}",
            version=version,
            stores=self.stores,
        )

    def rows(self, choice: Choice, *, limit: int) -> list[dict[str, Any]]:
        """The rows themselves, oldest first."""
        if not self.exists():
            return []
        return query_rows(
            self.location,
            "batch, stage, kind, rule, reason, row, raw, source, run_id, quarantined_at",
            where=self._where(choice),
            rest=f"ORDER BY batch, stage, rule, row LIMIT {limit}",
            stores=self.stores,
        )

    def discard(self, choice: Choice, *, note: Mapping[str, Any]) -> int:
        """Remove rows for good; the table's history still has them for a while."""
        if not self.exists():
            return 0
        return self._delete(lambda quote: self._where(choice, quote), note=note)

    def pick(self, choice: Choice, changes: Mapping[str, str]) -> Replay | None:
        """The rows that a replay would bring back, as they are now; None when there are none."""
        found = DeltaRsEngine(self.stores).identity(self.location)
        if found is None:
            return None
        batches = sorted({int(group["batch"]) for group in self.groups(choice, version=found[1])})
        if not batches:
            return None
        return Replay(
            version=found[1],
            batches=tuple(batches),
            step=choice.step,
            rule=choice.rule,
            changes=changes,
        )

    def entries(self, replay: Replay) -> list[tuple[str, str]]:
        """The steps at which a replay's rows come back, and what had refused them there."""
        where = self._replayed(replay)
        rows = query_rows(
            self.location,
            "DISTINCT stage, kind",
            where=where,
            version=replay.version,
            stores=self.stores,
        )
        return sorted((row["stage"], row["kind"]) for row in rows)

    def forget(self, replay: Replay, *, n: int) -> None:
        """Take out what a replay brought back; once it is out, this changes nothing."""
        self._delete(lambda quote: self._replayed(replay, quote), note={"replayed_by_batch": n})

    def forget_older(self, generation: int) -> None:
        """Take out what was set aside before everything was loaded anew."""
        if self.exists():
            self._delete(
                lambda quote: f"{self._mine(quote)} AND generation < {generation}",
                note={"generation": generation},
            )

    def clear(self, entry: BatchEntry) -> None:
        """Take back the slice of a batch that was given up."""
        if self.exists():
            only = f"generation = {entry.generation} AND batch = {entry.n}"
            self._delete(
                lambda quote: f"{self._mine(quote)} AND {only}", note={"abandoned_batch": entry.n}
            )

    def _delete(self, where: Callable[[Quote], str], *, note: Mapping[str, Any]) -> int:
        """Remove rows; whoever commits to the table is told in its own SQL."""
        if self.spark is None or committer_of(self.location, self.stores) != "spark":
            return delete_rows(self.location, where(text), note=note)
        from deltaworks.engines.spark.rows import delete_rows as delete_by_spark

        return delete_by_spark(self.spark(self.location), self.location, where(literal), note=note)

    def _mine(self, quote: Quote = text) -> str:
        return f"project = {quote(self.project)} AND pipeline = {quote(self.pipeline)}"

    def _where(self, choice: Choice | None, quote: Quote = text) -> str:
        chosen = choice or Choice()
        batches = () if chosen.batch is None else (chosen.batch,)
        return self._of(batches, step=chosen.step, rule=chosen.rule, quote=quote)

    def _replayed(self, replay: Replay, quote: Quote = text) -> str:
        return self._of(replay.batches, step=replay.step, rule=replay.rule, quote=quote)

    def _of(self, batches: Sequence[int], *, step: str, rule: str, quote: Quote) -> str:
        parts = [self._mine(quote)]
        if batches:
            parts.append(f"batch IN ({', '.join(map(str, batches))})")
        if step:
            parts.append(f"stage = {quote(step)}")
        if rule:
            parts.append(f"rule = {quote(rule)}")
        return " AND ".join(parts)


def replayed_rows(ctx: RunContext, quarantine: Quarantine, replay: Replay) -> DataFrame:
    """The rows that a replay brings back, as they are kept."""
    from pyspark.sql import functions as F

    reader = ctx.spark.read.format("delta").option("versionAsOf", replay.version)
    rows = reader.load(quarantine.location).filter(
        (F.col("project") == quarantine.project)
        & (F.col("pipeline") == quarantine.pipeline)
        & F.col("batch").isin(*replay.batches)
    )
    for name, value in (("stage", replay.step), ("rule", replay.rule)):
        rows = rows.filter(F.col(name) == value) if value else rows
    return rows


def write_quarantine(
    ctx: RunContext,
    quarantine: Quarantine,
    rejects: Sequence[Rejects],
    *,
    entry: BatchEntry,
    txn: Txn,
    user_metadata: str,
) -> CommitInfo | None:
    """Put this batch's slice there; None when there is nothing to set aside and none to clear."""
    some = [part for part in rejects if part.rows]
    begun_before = entry.run_id != ctx.run_id  # only then can it have left a slice behind
    if not some and not (begun_before and quarantine.exists()):
        return None
    frame = _slice(ctx, some, quarantine, entry)
    stamp = Stamp(txn=txn, user_metadata=user_metadata)
    writer = TableWriter(
        ctx.spark,
        quarantine.location,
        layout=Layout(),
        stamp=stamp,
        stores=quarantine.stores,
        writer="auto",
        few=sum(part.rows for part in some) <= _FEW_ROWS,
    )
    if not begun_before:
        return writer.append(frame, Append(merge_schema=True, holds_rows=True))
    where = _covered(quarantine, entry)
    return writer.overwrite(frame, Overwrite(replace_where=where, merge_schema=True))


def _covered(quarantine: Quarantine, entry: BatchEntry) -> str:
    return (
        f"project = {literal(quarantine.project)} AND pipeline = {literal(quarantine.pipeline)} "
        f"AND generation = {entry.generation} AND batch = {entry.n}"
    )


def _slice(
    ctx: RunContext, rejects: Sequence[Rejects], quarantine: Quarantine, entry: BatchEntry
) -> DataFrame:
    from pyspark.sql import functions as F

    if rejects:
        parts = [
            part.frame.withColumns({"stage": F.lit(part.stage), "kind": F.lit(part.kind)})
            for part in rejects
        ]
        rows = reduce(lambda left, right: left.unionByName(right), parts)
    else:
        rows = ctx.spark.createDataFrame([], ", ".join(f"{name} string" for name in _KEPT))
    sources = ", ".join(sorted(bounds.identity for bounds in entry.bounds.values()))
    return rows.select(
        F.lit(quarantine.project).alias("project"),
        F.lit(quarantine.pipeline).alias("pipeline"),
        F.lit(entry.generation).cast("long").alias("generation"),
        F.lit(entry.n).cast("long").alias("batch"),
        F.lit(ctx.run_id).alias("run_id"),
        F.col("stage"),
        F.col("kind"),
        F.col("rule"),
        F.col("reason"),
        F.col("row"),
        F.col("columns"),
        F.col("raw"),
        F.lit(sources).alias("source"),
        F.lit(ctx.now).cast("timestamp").alias("quarantined_at"),
    )
