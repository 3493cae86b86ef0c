"""What a table provably holds of a pipeline's batches, asked of the table itself.

A number alone proves nothing: another ledger, or this one before it was put back from a backup,
may have used it too. A commit is a batch's when it carries the batch's random token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from deltaworks.contracts.context import ProjectContext
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import GuardError
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.pipeline.stages import Load
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState, SinkEntry


@dataclass(frozen=True)
class Writer:
    """One sink of one pipeline, as its commits name it."""

    project: str
    pipeline: str
    sink: str

    def made(self, record: CommitRecord) -> bool:
        """Whether a commit is this writer's; notes of older versions do not name the project."""
        note = record.user_metadata
        return (
            note.get("pipeline") == self.pipeline
            and note.get("step") == self.sink
            and note.get("project", self.project) == self.project
        )


def holds(record: CommitRecord, entry: BatchEntry, writer: Writer) -> bool:
    """Whether a commit holds the rows of a batch."""
    note = record.user_metadata
    if entry.token and "token" in note:
        return bool(note["token"] == entry.token and note.get("step") == writer.sink)
    return not entry.token and writer.made(record) and note.get("batch") == entry.n


def commit_of(
    records: Iterable[CommitRecord], entry: BatchEntry, writer: Writer
) -> CommitRecord | None:
    """The commit that holds a batch; the oldest, because a compaction may carry its note too."""
    found = [record for record in records if holds(record, entry, writer)]
    return min(found, key=lambda record: record.version, default=None)


def landing(
    load: Load,
    project_ctx: ProjectContext,
    entry: BatchEntry,
    sink: SinkEntry,
    *,
    project: str,
    pipeline: str,
) -> CommitInfo | None:
    """How a batch landed in a sink in an earlier run; None when it did not."""
    state = load.plugin.state(project_ctx, sink.app_id)
    if state.txn_version is None or state.txn_version < entry.n:
        return None
    if state.version is None:
        _refuse_other_batch(state, entry, load.plugin.target(project_ctx).label)
        _refuse_other_identity(load, project_ctx, entry, sink, now=state)
        return CommitInfo(committed=True)
    location = load.plugin.target(project_ctx).location
    records = DeltaRsEngine(project_ctx.stores).history(location, after=_since(sink))
    found = commit_of(records, entry, Writer(project, pipeline, sink.name))
    if found is not None:
        _refuse_meddled(records, found.version, entry, sink, load.plugin.target(project_ctx).label)
        return CommitInfo(committed=True, version=found.version)
    if entry.token:
        raise ahead(load.plugin.target(project_ctx).label, entry.n)
    _refuse_other_batch(state, entry, load.plugin.target(project_ctx).label)
    return CommitInfo(committed=True)


def refuse_meddling(
    load: Load,
    project_ctx: ProjectContext,
    entry: BatchEntry,
    sink: SinkEntry,
    *,
    info: CommitInfo,
    now: SinkState,
) -> None:
    """Refuse a table that somebody set back or replaced since a batch was planned for it.

    Nobody would notice later, because the batch's own commit may be newer than that.
    """
    if not info.committed:
        return
    ref, since = load.plugin.target(project_ctx), _since(sink)
    _refuse_other_identity(load, project_ctx, entry, sink, now=now)
    if info.version is None or now.version is None:
        return
    if now.version < info.version:
        raise _meddled(ref.label, entry.n)
    if now.version > since + 1:
        records = DeltaRsEngine(project_ctx.stores).history(ref.location, after=since)
        _refuse_meddled(records, info.version, entry, sink, ref.label)


def _refuse_other_identity(
    load: Load, project_ctx: ProjectContext, entry: BatchEntry, sink: SinkEntry, *, now: SinkState
) -> None:
    """A batch that adds rows to a table must be in the one that it was planned for."""
    adds = load.plugin.accepts_late_rows() and not entry.replaces
    label = load.plugin.target(project_ctx).label
    if adds and _has_identity(sink, label) and now.identity != sink.identity:
        raise _meddled(label, entry.n, is_table=now.version is not None)


def _has_identity(sink: SinkEntry, label: str) -> bool:
    """Whether more than its name was known of a table; a database may give it an id only later."""
    return sink.identity.rpartition(".")[2] not in ("", label.rpartition(".")[2])


def _since(sink: SinkEntry) -> int:
    return -1 if sink.version_found is None else sink.version_found


def _refuse_meddled(
    records: Iterable[CommitRecord], landed: int, entry: BatchEntry, sink: SinkEntry, label: str
) -> None:
    """Before a batch landed, older ones may have gone, and after it also the batch itself."""
    had_others = sink.txn_found is not None and not entry.replaces
    for record in records:
        is_meddling = record.operation == "RESTORE" or "REPLACE" in record.operation
        is_before = record.version < landed and "restore" not in record.user_metadata
        if is_meddling and (record.version > landed or (is_before and had_others)):
            raise _meddled(label, entry.n, f" (in version {record.version})")


def _meddled(label: str, n: int, where: str = "", *, is_table: bool = True) -> GuardError:
    return GuardError(
        f'"{label}" was set back or replaced by hand{where} while batch {n} was being loaded',
        hint=f"put it back as it was, {ways_out(label, is_table=is_table)}",
    )


def _refuse_other_batch(state: SinkState, entry: BatchEntry, label: str) -> None:
    if state.txn_version != entry.n:
        raise ahead(label, entry.n, is_table=state.version is not None)


def ahead(label: str, n: int, *, is_table: bool = True) -> GuardError:
    """A table holds batches that the ledger does not know."""
    return GuardError(
        f'"{label}" is ahead of the ledger: what happened there to batch {n} is not in the ledger',
        hint="the ledger is older than the table: put the newer one back, "
        + ways_out(label, is_table=is_table),
    )


def ways_out(label: str, *, is_table: bool = True) -> str:
    """What one can always do about a table that others changed."""
    accept = f"take it as it is: `deltaworks table accept {label}`, " if is_table else ""
    return f"{accept}or reload everything with --full-refresh"


def note_of(entry: BatchEntry, writer: Writer) -> Mapping[str, Any]:
    """What every commit of a batch says of itself, so that it can be found again."""
    return {
        "project": writer.project,
        "pipeline": writer.pipeline,
        "step": writer.sink,
        "batch": entry.n,
        "token": entry.token,
    }


def unknown_landing(
    state: LedgerState, table: TableInfo, transaction: Callable[[str], int | None]
) -> BatchEntry | None:
    """A batch that is in the table without its ledger's knowing, and must be settled first."""
    parked = [(entry, sink) for entry, sink in state.parked() if sink.identity == table.table_id]
    planned = [(entry, sink) for entry in state.all_unfinished() for sink in entry.sinks]
    for entry, sink in (*planned, *parked):
        if (transaction(sink.app_id) or 0) >= entry.n:
            return entry
    return None
