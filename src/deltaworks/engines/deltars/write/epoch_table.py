"""Commits of epochs: files or rows, and the writer's transactions, in one commit each.

The handle is held open, because opening costs more than committing. delta-rs checks little of what
it is told here, so whoever calls has looked at the transactions of this very handle first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log.actions import DataFile, add_action, commit_info
from deltaworks.engines.deltars.log.commits import file_changes
from deltaworks.engines.deltars.log.history import parse_user_metadata, restored_to
from deltaworks.engines.deltars.log.local_tail import LogTail, remove_drafts, tail_of
from deltaworks.engines.deltars.schemas import arrow_table, as_delta
from deltaworks.engines.deltars.write.commit_options import (
    ALONE,
    MergePlan,
    commit_properties,
    no_hooks,
)
from deltaworks.engines.deltars.write.data_files import DataFolder
from deltaworks.engines.deltars.write.int96_timestamps import Int96Timestamps
from deltaworks.engines.deltars.write.statistics import MAX_COLUMNS, writer_properties
from deltaworks.engines.deltars.write.table_location import TableLocation
from deltaworks.engines.deltars.write.write_support import may_forget
from deltaworks.errors import GuardError
from deltaworks.model.commit import Txn
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import CommitRecord
from deltaworks.model.table_properties import STATISTICS, whole_number
from deltaworks.model.table_ref import is_url
from deltaworks.storage.folders import refuse_unwritable
from deltaworks.storage.listing import fsync_commit, fsync_path

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable, WriterProperties

    from deltaworks.engines.deltars.write.compaction_undo import CompactionCommit, JoinWatch

__all__ = ["RESTORED", "EpochTable", "TableLocation", "TableRestore"]
RESTORED = "deltaworks:restored"
"""A transaction that a restore of ours leaves behind: the version it set the table back from."""


@dataclass(frozen=True)
class TableRestore:
    """A commit that set the table back, and the version it set it back to, if it tells."""

    version: int
    to: int | None


class EpochTable:
    """One table, held open by one writer.

    Who only adds files names itself, and commits without delta-rs where that is quicker; so does
    who joins them beside such a writer, under the same name.
    """

    def __init__(
        self, place: TableLocation, table: DeltaTable, *, only_adds: str = "", joins: str = ""
    ) -> None:
        self.place = place
        self.table = table
        self._before = table.version()
        self._folder = DataFolder(place.location, storage_options=place.storage_options)
        self._moments = Int96Timestamps(self._folder)
        self._only_adds = only_adds
        self._joins = joins
        self._tail = self._new_tail()
        self._stamp = self._folder.stamp(self._before)

    @property
    def location(self) -> str:
        """The table's folder or address."""
        return self.place.location

    @property
    def table_id(self) -> str:
        """The id that no other table has."""
        return str(self.table.metadata().id)

    @property
    def version(self) -> int:
        """The version this handle stands at."""
        return self.table.version() if self._tail is None else self._tail.version

    @property
    def partition_columns(self) -> tuple[str, ...]:
        """The columns that files are divided by."""
        return tuple(self.table.metadata().partition_columns)

    def folder(self) -> DataFolder:
        """Where the table's files are, with statistics for as many columns as it wants."""
        settings = self.table.metadata().configuration
        said = whole_number(settings, STATISTICS, default=MAX_COLUMNS, least=0)
        return DataFolder(
            self.location,
            storage_options=self.place.storage_options,
            max_columns=said,
        )

    def shape(self) -> tuple[object, ...]:
        """Everything that decides what a writer must do: columns, properties, features."""
        metadata, protocol = self.table.metadata(), self.table.protocol()
        features = (protocol.reader_features, protocol.writer_features)
        versions = (protocol.min_reader_version, protocol.min_writer_version)
        settings = sorted(metadata.configuration.items())
        return (self.table.schema().to_json(), settings, metadata.id, versions, str(features))

    def arrow_schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        import pyarrow as pa

        return pa.schema(self.table.schema().to_arrow())

    def schema(self) -> Schema:
        """The columns as a value."""
        return Schema.from_json(self.table.schema().to_json())

    def transaction(self, app_id: str) -> int | None:
        """The last transaction of a writer, as this handle knows it."""
        if self._tail is not None and self._tail.knows(app_id):
            return self._tail.transaction(app_id)
        with translated(self.location):
            found = self.table.transaction_version(app_id)
        if self._tail is not None:
            self._tail.learn(app_id, found)
        return found

    def transactions(self, begins: str) -> frozenset[str]:
        """The names of all writers whose names begin so, as far as the log remembers them."""
        return self._folder.app_ids(begins)

    def refresh(self) -> None:
        """Learn what others committed; of a table that was recreated, the new one."""
        with translated(self.location):
            if self._tail is not None and self._tail.follow():
                return
        if not self._is_same_log():
            self.table = self.place.open()
        self._update()

    def _update(self) -> None:
        """Let delta-rs read the commits that are new."""
        with translated(self.location):
            self.table.update_incremental()
        self._tail = self._new_tail()
        self._stamp = self._folder.stamp(self.table.version())

    def _is_same_log(self) -> bool:
        """Whether the last commit known is still there; of a table recreated it is another."""
        if self._tail is not None:
            return self._tail.is_same_log()
        return self._stamp is not None and self._folder.stamp(self.table.version()) == self._stamp

    def reopened(self, version: int | None = None) -> EpochTable:
        """The same table through a fresh handle, which starts from the newest checkpoint."""
        return EpochTable(self.place, self.place.open(version), only_adds=self._only_adds)

    def beside(self) -> EpochTable:
        """The same table through a handle for what is done beside the stream, by delta-rs."""
        joins = "" if self._tail is None else self._only_adds
        return EpochTable(self.place, self.place.open(), joins=joins)

    def renewed(self, beside: EpochTable) -> EpochTable:
        """The same table from where such a handle stands, or quicker still from its checkpoint."""
        if self._tail is None:
            return self.reopened()
        return EpochTable(self.place, beside.table, only_adds=self._only_adds)

    def remove_drafts(self) -> None:
        """Remove what a crash left of commits under this writer's name."""
        with translated(self.location):
            remove_drafts(self.location, [self._only_adds, _joiner(self._only_adds)])

    def restores(self, since: int) -> tuple[TableRestore, ...]:
        """The commits after a version that set the table back, oldest first."""
        if self.version <= since:
            return ()
        found = list(self._folder.commit_infos(since + 1, self.version))
        if len(found) < self.version - since and (self.transaction(RESTORED) or -1) > since:
            raise GuardError(
                f'"{self.location}" was set back, and its log no longer shows to which version',
                hint="go on under another writer id, from the first epoch the table lacks",
            )
        return tuple(
            TableRestore(version, restored_to(entry))
            for version, entry in found
            if entry.get("operation") == "RESTORE"
        )

    def epochs(self, *, since: int = -1) -> tuple[CommitRecord, ...]:
        """The commits after a version that tell an epoch, oldest first, as far as the log goes."""
        found = []
        for version, entry in self._folder.commit_infos(since + 1, self.version):
            note = parse_user_metadata(entry.get("userMetadata"))
            if "epoch" in note:
                found.append(
                    CommitRecord(
                        version=version,
                        timestamp_ms=int(entry.get("timestamp") or 0),
                        operation=str(entry.get("operation") or ""),
                        user_metadata=note,
                    )
                )
        return tuple(found)

    def append(
        self, files: Sequence[DataFile], txns: Sequence[Txn], note: Mapping[str, Any]
    ) -> int:
        """Make files part of the table; none is fine, then only the transactions are kept."""
        if self._tail is not None:
            return self._add_quickly(self._tail, files, txns, note)
        from deltalake.transaction import AddAction, RemoveAction

        adds: list[AddAction | RemoveAction] = [
            AddAction(
                file.path,
                file.size_bytes,
                dict(file.partition),
                file.modified_ms,
                True,  # noqa: FBT003 - the rows are new
                file.statistics,
            )
            for file in files
        ]
        with self._committing():
            self.table.create_write_transaction(
                adds,
                "append",
                self.table.schema(),
                partition_by=list(self.partition_columns),
                commit_properties=commit_properties(txns, note),
                post_commithook_properties=no_hooks(),
            )
        return self._landed(note)

    def _add_quickly(
        self, tail: LogTail, files: Sequence[DataFile], txns: Sequence[Txn], note: Mapping[str, Any]
    ) -> int:
        how = {"mode": "Append", "partitionBy": json.dumps(self.partition_columns)}
        info = commit_info("WRITE", how, json.dumps(dict(note)))
        with self._committing():
            version = tail.commit([info, *(add_action(file, is_new=True) for file in files)], txns)
        return self._landed(note, version=version)

    def replace(
        self, rows: pa.Table, where: str, txns: Sequence[Txn], note: Mapping[str, Any]
    ) -> int:
        """Put rows in the place of all that a condition on partitions covers.

        It must follow the version this handle stands at: what others put into these partitions
        since then is not to go unseen.
        """
        from deltalake import write_deltalake

        with self._committing():
            write_deltalake(
                self.table,
                rows,
                mode="overwrite",
                predicate=where,
                writer_properties=self._writing(),
                commit_properties=commit_properties(txns, note, retries=ALONE),
                post_commithook_properties=no_hooks(),
            )
        return self._landed(note, with_files=True)

    def merge(
        self, rows: pa.Table, plan: MergePlan, txns: Sequence[Txn], note: Mapping[str, Any]
    ) -> tuple[int, Mapping[str, int]]:
        """Update, delete and insert by key; answers the version and what was done."""
        with self._committing():
            merger = self.table.merge(
                rows,
                plan.on,
                source_alias="source",
                target_alias="target",
                streamed_exec=False,
                max_spill_size=plan.max_memory_bytes,
                writer_properties=self._writing(),
                commit_properties=commit_properties(
                    txns, note, rows_mark=plan.rows_mark, retries=ALONE
                ),
                post_commithook_properties=no_hooks(),
            )
            if plan.delete:
                merger = merger.when_matched_delete(plan.delete)
            if plan.columns:
                merger = merger.when_matched_update(dict(plan.columns), plan.update)
            inserts = plan.columns if plan.inserts is None else plan.inserts
            done = merger.when_not_matched_insert(dict(inserts), plan.insert).execute()
        counts = {what: int(done[f"num_target_rows_{what}"]) for what in _COUNTED}
        files = {what: int(done[f"num_target_{what}"]) for what in _FILES}
        if not any(counts.values()):  # delta-rs makes no commit then, and an epoch needs one
            return self.append(
                (), txns, note
            ) if plan.always_commits else self.version, counts | files
        return self._landed(note, with_files=True), counts | files

    def rewriting_problem(self) -> str:
        """Why rows that are there must not be rewritten by delta-rs; empty when they may be."""
        return self._moments.problem(self.table)

    def add(self, rows: pa.Table, txns: Sequence[Txn], note: Mapping[str, Any]) -> int:
        """Add rows, each to the partition it belongs to."""
        from deltalake import write_deltalake

        with self._committing():
            write_deltalake(
                self.table,
                rows,
                mode="append",
                writer_properties=self._writing(),
                commit_properties=commit_properties(txns, note),
                post_commithook_properties=no_hooks(),
            )
        return self._landed(note, with_files=True)

    def add_columns(self, columns: pa.Schema) -> None:
        """Give the table more columns, or more within them; rows that are there have NULL."""
        self._update()
        with self._committing():
            self.table.alter.add_columns(
                as_delta(columns).fields, post_commithook_properties=no_hooks()
            )
        self._update()
        fsync_commit(self.location, self.version)

    def checkpoint(self) -> None:
        """Fold the log, so that who opens the table has little to read; forget what expired."""
        with translated(self.location):
            self.table.create_checkpoint()
            if not is_url(self.location):
                log = f"{self.location}/_delta_log"
                for path in Path(log).glob(f"{self.version:020d}.checkpoint*.parquet"):
                    fsync_path(str(path))
                fsync_path(log)
            if may_forget(self.table.metadata().configuration):
                self.table.cleanup_metadata()

    def compact(self, note: Mapping[str, Any], *, small_bytes: int) -> int:
        """Join small files; answers how many went. Rows and transactions stay as they are."""
        if self._joins:
            return self._join(note, small_bytes)
        if self.rewriting_problem():
            return 0
        with self._committing():
            done = self.table.optimize.compact(
                max_concurrent_tasks=1,
                writer_properties=self._writing(),
                commit_properties=commit_properties((), note),
                post_commithook_properties=no_hooks(),
            )
        removed = int(done["numFilesRemoved"])
        if removed:
            self._landed(note, with_files=True)
        return removed

    def _join(self, note: Mapping[str, Any], small_bytes: int) -> int:
        from deltaworks.engines.deltars.write.compaction import (
            Compaction,
            files_schema,
            small_groups,
        )

        tail = self._tail_as(_joiner(self._joins))
        groups = small_groups(self.table, small_bytes)
        if tail is None or not groups:
            return 0
        with self._committing():
            schema = files_schema(self.arrow_schema(), self.partition_columns)
            joining = Compaction(
                folder=self.folder(), schema=schema, prefix=f"stream.{self._joins}."
            )
            removed = joining.join(groups, tail, note)
        self._landed(note)
        return removed

    def unjoin(self, watch: JoinWatch) -> tuple[str, ...]:
        """Undo joinings that let rows come back; answers what was done, for people."""
        told = []
        for joined in watch.overtaken(self.version):
            live = self.files()
            if all(unquote(name) in live for name in joined.new):
                version = self._undone(joined)
                told.append(
                    f"version {joined.by} was written by somebody who did not see that files had "
                    f"been joined in version {joined.version}; version {version} took the rows "
                    "out again that it had replaced"
                )
            watch.forget(joined)  # once it is done: who was faster may not stop it for good
        return tuple(told)

    def _undone(self, joined: CompactionCommit) -> int:
        from deltaworks.engines.deltars.write.compaction_undo import undo, undo_by_deltars, undoing

        tail, version = self._tail_as(_UNDOER), None
        with self._committing():
            if tail is None:
                undo_by_deltars(joined, self.folder(), self.table)
            else:
                version = undo(joined, self.folder(), tail)
        version = self._landed(undoing(joined), version=version)
        self._update()
        return version

    def small_files(self, size_bytes: int) -> int:
        """How many files are smaller than that and could be joined."""
        if self._joins:
            from deltaworks.engines.deltars.write.compaction import joinable, small_groups

            return joinable(small_groups(self.table, size_bytes))
        return sum(size < size_bytes for size in self._adds("size_bytes"))

    def files(self) -> frozenset[str]:
        """The files that the table's rows are in now."""
        return frozenset(unquote(path) for path in self._adds("path"))

    def _adds(self, column: str) -> list[Any]:

        with translated(self.location):
            found: list[Any] = arrow_table(self.table.get_add_actions()).column(column).to_pylist()
            return found

    def _writing(self) -> WriterProperties:
        return writer_properties(self.arrow_schema())

    @contextmanager
    def _committing(self) -> Iterator[None]:
        self._before = self.version
        refuse_unwritable(self.location)
        with translated(self.location):
            yield

    def _landed(
        self, note: Mapping[str, Any], *, with_files: bool = False, version: int | None = None
    ) -> int:
        """The version a commit became, once it is safe on disk."""
        if version is None:
            self._update()
            version = self._version_with(note)
        if is_url(self.location):
            return version
        if with_files:
            added, _ = file_changes(self.location, version)
            paths = [Path(self.location, unquote(name)) for name in added]
            for place in (*paths, *{path.parent for path in paths}):
                fsync_path(str(place))
        fsync_commit(self.location, version)
        return version

    def _new_tail(self) -> LogTail | None:
        return self._tail_as(self._only_adds) if self._only_adds else None

    def _tail_as(self, writer: str) -> LogTail | None:
        return tail_of(
            self.location,
            writer=writer,
            version=self.table.version(),
            settings=self.table.metadata().configuration,
        )

    def _version_with(self, note: Mapping[str, Any]) -> int:
        """Where a commit with this note is: others may have committed since."""
        if self.version == self._before + 1:
            return self.version
        return next(
            version
            for version, entry in self._folder.commit_infos(self._before + 1, self.version)
            if parse_user_metadata(entry.get("userMetadata")) == note
        )


_UNDOER = "undoing.joining"


def _joiner(writer: str) -> str:
    """The name under which files are joined beside a writer; no writer can have it."""
    return f"{writer}.joining"


_COUNTED = ("inserted", "updated", "deleted")
_FILES = ("files_scanned", "files_removed")
