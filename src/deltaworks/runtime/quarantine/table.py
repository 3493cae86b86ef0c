"""The quarantine table: refused rows, with why and whence, one slice per batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any, TypedDict

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.contracts.context import RunContext
from deltaworks.engines.commit_protocol import committer_of
from deltaworks.engines.deltars.query import delete_rows, query_rows
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.deltars.text import text
from deltaworks.engines.spark.delta.writer import TableWriter
from deltaworks.engines.spark.frames.columns import literal
from deltaworks.model.batch import Replay
from deltaworks.model.commit import CommitInfo, Txn
from deltaworks.model.table_ref import quarantine_table
from deltaworks.model.write import Append, Layout, Overwrite, Stamp
from deltaworks.runtime.evaluation.frames import Rejects
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SINK = "__quarantine"
Quote = Callable[[str], str]
"""How an engine's SQL writes a text."""
_FEW_ROWS = 1000
"""So many fit into memory, whatever they hold."""
_MAX_COMMITS = 1000
_KEPT = ("rule", "reason", "row", "columns", "raw", "stage", "kind")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which of the quarantined rows."""

    batch: int | None = None
    step: str = ""
    rule: str = ""


class ReplayKwargs(TypedDict, total=False):
    """What a caller may say of a replay in Python, as keywords."""

    choice: Choice | None
    changes: Mapping[str, str] | None
    """Columns that get a new value, as SQL."""
    overwrite: bool
    """Whether rows that later batches wrote are overwritten."""


@dataclass(frozen=True)
class Returning:
    """Rows that were taken out of the quarantine and come back to it."""

    version: int
    """The version of the quarantine table that has them."""
    where: Callable[[Quote], str]


@dataclass(frozen=True)
class Quarantine:
    """What one pipeline of one project has quarantined; looked at without a JVM."""

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
        """Whether anything was ever quarantined."""
        return DeltaRsEngine(self.stores).identity(self.location) is not None

    def groups(
        self, choice: Choice | None = None, *, version: int | None = None
    ) -> list[dict[str, Any]]:
        """How many rows each rule quarantined in each batch, oldest first."""
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

    def version(self) -> int | None:
        """The version of the table; None when nothing was ever quarantined."""
        found = DeltaRsEngine(self.stores).identity(self.location)
        return None if found is None else found[1]

    def leave(self, entry: BatchEntry, *, by: str = "") -> None:
        """Take out the rows that a batch, which has landed, settles; done twice it is the same.

        `by` is what the commits name as their reason; the batch itself when left out.
        """
        if not self.exists():
            return
        note = {"by": by or _reason(entry), "settled_by_batch": entry.n}
        if entry.replay is not None:
            replay = entry.replay
            self._delete(lambda quote: self._replayed(replay, quote), note=note)
        if entry.replaces:
            self._delete(
                lambda quote: (
                    f"{self._mine(quote)} AND "
                    f"NOT (generation = {entry.generation} AND batch >= {entry.n})"
                ),
                note=note,
            )
        if entry.supersedes:
            self._delete(lambda quote: self._slices(entry, entry.supersedes, quote), note=note)

    def clear_unknown(
        self, state: LedgerState, *, kept: Collection[tuple[int, int]] = ()
    ) -> int | None:
        """Take out slices of batches that the ledger lost, in a power cut or to a backup.

        Their rows are read again, and their numbers may be used again. Those that are to be kept
        are given by their generation and number. The version that the table has then is the
        answer; None when nothing was ever quarantined.
        """
        found = self.version()
        known = [entry.quarantine_version for entry in state.batches]
        known += [one.quarantine_version for one in state.restored if one.accept.get("adopted")]
        after = max((version for version in known if version is not None), default=-1)
        if found is None or found <= after:
            return found
        tokens = {entry.token for entry in state.batches}
        numbers = {(entry.generation, entry.n) for entry in state.batches}
        for note in self._notes(after):
            lost = (note.get("generation"), note.get("batch"))
            if note.get("token", "") in tokens or lost in numbers or lost in kept:
                continue
            self._delete(
                lambda quote, lost=lost: (  # type: ignore[misc]
                    f"{self._mine(quote)} AND generation = {lost[0]} AND batch = {lost[1]}"
                ),
                note={"lost_batch": lost[1]},
            )
            found = None
        return self.version() if found is None else found

    def _notes(self, after: int) -> list[Mapping[str, Any]]:
        """What commits after a version say of the slices of this pipeline that they wrote."""
        mine = (self.project, self.pipeline, SINK)
        notes = self._all_notes(after)
        return [n for n in notes if (n.get("project"), n.get("pipeline"), n.get("step")) == mine]

    def _all_notes(self, after: int) -> list[Mapping[str, Any]]:
        engine = DeltaRsEngine(self.stores)
        records = engine.history(self.location, after=after, limit=_MAX_COMMITS)
        return [record.user_metadata for record in records]

    def take_back(self, entry: BatchEntry, *, gone: Collection[int], key: str) -> None:
        """A batch was taken out of its tables: its slice goes, and what it had settled returns.

        Rows of batches that are `gone` as well stay out: they are read again, or undone.
        """
        self.clear(entry, by=key)
        for number, rows in enumerate(self._returning(entry, gone)):
            whole = f"{key}:{entry.n}:{number}"
            self._return(self._missing(rows), key=whole, note={"by": key})

    def bring_back(
        self, entry: BatchEntry, *, key: str, without: Sequence[BatchEntry] = ()
    ) -> None:
        """A batch that was taken out is in its tables again: so is what went with it.

        Batches that went together with it and stay out had settled some of its rows: these return.
        """
        version = entry.quarantine_before
        if version is not None:
            rows = Returning(version, lambda quote: self._slices(entry, (entry.n,), quote))
            self._return(rows, key=f"{key}:{entry.n}:slice", note={"by": key})
        for other in without:
            for number, rows in enumerate(self._returning(other, ())):
                part = Returning(rows.version, self._only(entry, rows.where))
                whole = f"{key}:{entry.n}:{other.n}:{number}"
                self._return(part, key=whole, note={"by": key})
        self.leave(entry, by=key)

    def _only(self, entry: BatchEntry, where: Callable[[Quote], str]) -> Callable[[Quote], str]:
        mine = f"generation = {entry.generation} AND batch = {entry.n}"
        return lambda quote: f"{where(quote)} AND {mine}"

    def _missing(self, rows: Returning) -> Returning:
        """The same without rows that are there; those of a batch, step and rule move together."""
        groups = self._here(rows)

        def where(quote: Quote) -> str:
            there = " OR ".join(_group(group, quote) for group in groups)
            return f"{rows.where(quote)} AND NOT ({there})"

        return Returning(rows.version, where) if groups else rows

    def _here(self, rows: Returning) -> list[dict[str, Any]]:
        """The groups of such rows that are in the table now."""
        names = "DISTINCT generation, batch, stage, kind, rule"
        return query_rows(self.location, names, where=rows.where(text), stores=self.stores)

    def require_returns(self, entries: Sequence[BatchEntry], gone: Collection[int]) -> None:
        """Raise unless everything that must return can still be read."""
        from deltaworks.engines.deltars.event_table.returned_rows import rows_at

        for rows in (rows for entry in entries for rows in self._returning(entry, gone)):
            rows_at(self.location, rows.where(text), version=rows.version, stores=self.stores)

    def _returning(self, entry: BatchEntry, gone: Collection[int]) -> Iterator[Returning]:
        stays = f" AND batch NOT IN ({', '.join(map(str, sorted({*gone, entry.n})))})"
        if entry.replay is not None and not entry.backfill:  # others have what a backfill repeats
            replay = entry.replay
            yield Returning(replay.version, lambda quote: self._replayed(replay, quote) + stays)
        version = entry.quarantine_version
        if version is None:
            return
        if entry.replaces:
            yield Returning(version, lambda quote: self._mine(quote) + stays)
        if entry.supersedes:
            yield Returning(
                version, lambda quote: self._slices(entry, entry.supersedes, quote) + stays
            )

    def _return(self, rows: Returning, *, key: str, note: Mapping[str, Any]) -> None:
        from deltaworks.engines.deltars.event_table.returned_rows import return_rows

        whole = f"deltaworks:{self.project}:{self.pipeline}:returned:{key}"
        if self.spark is None or committer_of(self.location, self.stores) != "spark":
            return_rows(
                self.location,
                rows.where(text),
                version=rows.version,
                key=whole,
                note=note,
                stores=self.stores,
            )
            return
        from deltaworks.engines.spark.delta.restore import return_rows as return_by_spark

        return_by_spark(
            self.spark(self.location),
            self.location,
            rows.where(literal),
            version=rows.version,
            key=whole,
            note=note,
        )

    def _slices(self, entry: BatchEntry, batches: Sequence[int], quote: Quote) -> str:
        numbers = ", ".join(map(str, batches))
        return f"{self._mine(quote)} AND generation = {entry.generation} AND batch IN ({numbers})"

    def give_up(self, entry: BatchEntry) -> None:
        """The slice of a batch that never landed goes; what it had settled returns."""
        self.clear(entry, by=f"{_reason(entry)} given up")
        self.set_back(entry.quarantine_version, by=_reason(entry))

    def set_back(self, version: int | None, *, by: str) -> None:
        """Reverse what a batch, an undo or a restore did here that turned out not to have happened.

        Its commits name it as their reason. If there are any since the version at which it began,
        all rows of the pipeline become what they were then; nobody else changed them meanwhile.
        """
        after, found = -1 if version is None else version, self.version()
        if found is None or found <= after:
            return
        reasons = {note.get("by") for note in self._all_notes(after)}
        key = f"{by} reversed"
        if by not in reasons or key in reasons:
            return
        self._delete(self._mine, note={"by": f"{by} is reversed"})
        if version is not None:
            self._return(Returning(version, self._mine), key=key, note={"by": key})

    def clear(self, entry: BatchEntry, *, by: str) -> None:
        """Take out the slice of a batch that is given up or taken back."""
        if self.exists():
            self._delete(
                lambda quote: self._slices(entry, (entry.n,), quote),
                note={"by": by, "abandoned_batch": entry.n},
            )

    def _delete(self, where: Callable[[Quote], str], *, note: Mapping[str, Any]) -> int:
        """Remove rows; whoever commits to the table is told in its own SQL."""
        if self.spark is None or committer_of(self.location, self.stores) != "spark":
            return delete_rows(self.location, where(text), note=note, stores=self.stores)
        from deltaworks.engines.spark.delta.restore import delete_rows as delete_by_spark

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


def _group(group: Mapping[str, Any], quote: Quote) -> str:
    values = {n: quote(v) if isinstance(v, str) else v for n, v in group.items()}
    parts = (f"{n} IS NULL" if v is None else f"{n} = {v}" for n, v in values.items())
    return f"({' AND '.join(parts)})"


def _reason(entry: BatchEntry) -> str:
    """What a commit names as its reason that a batch makes when it has landed."""
    return f"batch {entry.token or entry.n}"


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
    once: bool = False,
) -> CommitInfo | None:
    """Put this batch's slice there; None when there is nothing to quarantine and none to clear.

    With `once`, rows that an older batch refused for the same reason are left to its slice.
    """
    some = [part for part in rejects if part.rows]
    begun_before = entry.run_id != ctx.run_id  # only then can it have left a slice behind
    if not some and not (begun_before and quarantine.exists()):
        return None
    frame = _slice(ctx, some, quarantine, entry)
    if once and quarantine.exists():
        frame = _not_yet_there(ctx, frame, quarantine, entry)
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


def _not_yet_there(
    ctx: RunContext, frame: DataFrame, quarantine: Quarantine, entry: BatchEntry
) -> DataFrame:
    """The rows that no older batch has there already."""
    from pyspark.sql import functions as F

    names = ("stage", "kind", "rule", "row", "raw")
    mine = (
        (F.col("project") == quarantine.project)
        & (F.col("pipeline") == quarantine.pipeline)
        & (F.col("generation") == entry.generation)
        & (F.col("batch") < entry.n)
        & ~F.col("batch").isin(*entry.supersedes)  # these slices go when this batch is in
    )
    there = ctx.spark.read.format("delta").load(quarantine.location).filter(mine).select(*names)
    pairs = [F.col(f"new.{name}").eqNullSafe(F.col(f"old.{name}")) for name in names]
    return frame.alias("new").join(there.alias("old"), pairs, "left_anti")


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
