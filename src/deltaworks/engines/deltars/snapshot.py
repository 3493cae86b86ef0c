"""One look at a table: what it is, and what was asked of it is not asked of its log again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log.commits import commit_files
from deltaworks.engines.deltars.log.history import record_of
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.errors import CommitConflict, DeltaworksError, UnsupportedTable
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.model.table_ref import is_url

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

    from deltaworks.engines.deltars.log.object_tail import Commit
    from deltaworks.engines.deltars.log.soundness import SoundLog

VECTORS = "deletionVectors"
OpenAt = Callable[[int | None], "DeltaTable | None"]
"""Opens a table at a version, or as it is now; None when no table is there."""


@dataclass(eq=False, kw_only=True)
class TableSnapshot:
    """A table at one version."""

    location: str
    table_id: str
    version: int
    opened: Callable[[], DeltaTable]
    """The table as delta-rs has it, for what is not known yet."""
    reopened: Callable[[], DeltaTable] | None = None
    """The same, to be opened once more: a look that is kept holds no large table in memory."""
    log: SoundLog | None = None
    """What the log says, where it was looked into."""
    is_latest: bool = False
    """Whether the table's files must all be there; those of older versions may be cleaned up."""
    stores: Stores = NO_STORES
    _info: TableInfo | None = None
    _txns: dict[str, int | None] = field(default_factory=dict)
    _records: dict[int, CommitRecord] = field(default_factory=dict)

    @staticmethod
    def at(
        location: str,
        table: DeltaTable,
        *,
        log: SoundLog | None = None,
        is_latest: bool = False,
        stores: Stores = NO_STORES,
    ) -> TableSnapshot:
        """A look at a table that was just opened."""
        with translated(location):
            table_id, version = str(table.metadata().id), table.version()
        return TableSnapshot(
            location=location,
            table_id=table_id,
            version=version,
            opened=lambda: table,
            log=log,
            is_latest=is_latest,
            stores=stores,
        )

    @property
    def properties(self) -> Mapping[str, str]:
        """What the table is set to."""
        if self._info is not None:
            return self._info.properties
        with translated(self.location):
            return dict(self.opened().metadata().configuration)

    @staticmethod
    def by_log(log: SoundLog, problem: DeltaworksError) -> TableSnapshot:
        """A look at a table that delta-rs does not understand, by what its log says itself."""

        def refused() -> DeltaTable:
            raise problem

        return TableSnapshot(
            location=log.location,
            table_id=str(log.metadata["id"]),
            version=log.version,
            opened=refused,
            log=log,
            _info=_info_of(log),
            _txns=_Known(log.txns),
        )

    def info(self) -> TableInfo:
        """All that the log says of the table."""
        if self._info is None:
            with translated(self.location):
                self._info = self._told(self.opened())
            self.opened = self.reopened or self.opened
        return self._info

    def refuse_writing(self) -> None:
        """Refuse a table that can be read and asks writers for what nobody here knows."""
        what = "" if self.log is None else self.log.protocol.unknown_to_writers()
        if what:
            raise UnsupportedTable(
                f'"{self.location}" cannot be written: it needs {what}, which is not known here',
                hint="nothing was written; write it with what made it, or take the feature out",
            )

    def transaction(self, app_id: str) -> int | None:
        """The last transaction a writer recorded in the table."""
        if app_id and app_id not in self._txns:
            with translated(self.location):
                self._txns[app_id] = self.opened().transaction_version(app_id)
        return self._txns.get(app_id)

    def history(self, limit: int | None = None, *, after: int = -1) -> tuple[CommitRecord, ...]:
        """Commits, newest first; those after a version, if one is given."""
        count = self.version - after
        count = count if limit is None else min(count, limit)
        wanted = range(self.version, self.version - count, -1)
        if not all(version in self._records for version in wanted):
            found = self._recorded(wanted)
            self._records.update({record.version: record for record in found})
        return tuple(self._records[version] for version in wanted if version in self._records)

    def _recorded(self, wanted: range) -> list[CommitRecord]:
        """The records of some commits that are there; each one of a bucket is a request."""
        if is_url(self.location):
            with translated(self.location):
                found = [record_of(entry) for entry in self.opened().history(len(wanted))]
            if [record.version for record in found] == list(wanted):
                return found
        from deltaworks.engines.deltars.log.history import commit_records

        files = commit_files(self.location, self.stores, after=min(wanted) - 1)
        times = [(file.version, file.modified_ms) for file in files if file.version in wanted]
        return commit_records(self.location, times, self.stores)

    def _told(self, table: DeltaTable) -> TableInfo:
        """All that the log says, its data files and its checksum looked at."""
        adds = arrow_table(table.get_add_actions(flatten=False))
        if self.is_latest and not is_url(self.location):
            from deltaworks.engines.deltars.log.data_presence import check_checksum, check_data
            from deltaworks.engines.deltars.log.deletion_vectors import check_vectors

            check_data(self.location, adds)
            if self.log is not None:
                check_vectors(self.log)
            check_checksum(self.location, self.version, adds)
        protocol = table.protocol()
        features = [*(protocol.reader_features or []), *(protocol.writer_features or [])]
        found = _info(self.location, table, tuple(sorted(set(features))))
        rows, size_bytes = _figures(adds)
        return replace(
            found,
            rows=None if self._may_have_vectors(found) else rows,
            files=adds.num_rows,
            size_bytes=size_bytes,
        )

    def _may_have_vectors(self, table: TableInfo) -> bool:
        """Whether files hold rows that are marked as deleted, or Spark may count others.

        A vector outlives the property that made it, and no feature is dropped before the last one.
        """
        if self.log is None:
            return VECTORS in table.features
        return self.log.has_vectors or bool(self.log.disputed)

    def after(self, commits: Sequence[Commit], open_at: OpenAt) -> TableSnapshot | None:
        """The table some commits later; None when they did more than to add files."""
        if not all(_only_adds(commit) for commit in commits):
            return None
        version = commits[-1].version
        adds = [add for commit in commits for add in commit.actions_of("add")]
        later = TableSnapshot(
            location=self.location,
            table_id=self.table_id,
            version=version,
            opened=lambda: the_same(self, open_at(version)),
            stores=self.stores,
            _info=_with_files(replace(self.info(), version=version), adds),
            _txns=dict(self._txns),
            _records=dict(self._records),
        )
        for commit in commits:
            later.learn(commit)
        return later

    def learn(self, commit: Commit) -> None:
        """Keep what a commit of this version or before says."""
        self._txns.update(commit.txns)
        entry = {**commit.info, "version": commit.version}
        self._records[commit.version] = record_of(entry)


class _Known(dict[str, int | None]):
    """All transactions there are: what is not among them is none."""

    def __contains__(self, _: object) -> bool:
        return True


def the_same(look: TableSnapshot, table: DeltaTable | None) -> DeltaTable:
    """A table that was opened once more."""
    if table is None or str(table.metadata().id) != look.table_id:
        raise CommitConflict(
            f'"{look.location}" was recreated while it was read', hint="run it again"
        )
    return table


def _only_adds(commit: Commit) -> bool:
    """Whether a commit adds new files and leaves all else as it is."""
    adds = commit.actions_of("add")
    plain = all(add.get("dataChange") and not add.get("deletionVector") for add in adds)
    return plain and commit.is_made_of("commitInfo", "txn", "add")


def _with_files(info: TableInfo, adds: Sequence[Mapping[str, Any]]) -> TableInfo:
    counts = [json.loads(add.get("stats") or "{}").get("numRecords") for add in adds]
    known = [count for count in counts if isinstance(count, int)]
    sure = info.rows is not None and len(known) == len(counts)
    return replace(
        info,
        rows=(info.rows or 0) + sum(known) if sure else None,
        files=(info.files or 0) + len(adds),
        size_bytes=(info.size_bytes or 0) + sum(int(add["size"]) for add in adds),
    )


def _info(location: str, table: DeltaTable, features: tuple[str, ...]) -> TableInfo:
    metadata, protocol = table.metadata(), table.protocol()
    return TableInfo(
        location=location,
        table_id=str(metadata.id),
        version=table.version(),
        schema=Schema.from_json(table.schema().to_json()),
        partition_columns=tuple(metadata.partition_columns),
        properties=dict(metadata.configuration),
        reader_version=protocol.min_reader_version,
        writer_version=protocol.min_writer_version,
        features=features,
    )


def _info_of(log: SoundLog) -> TableInfo:
    """The same by what a log says; how many rows and files there are takes an engine."""
    said = log.metadata
    return TableInfo(
        location=log.location,
        table_id=str(said["id"]),
        version=log.version,
        schema=Schema.from_json(said["schemaString"]),
        partition_columns=tuple(said.get("partitionColumns") or ()),
        properties=dict(said.get("configuration") or {}),
        reader_version=log.protocol.reader,
        writer_version=log.protocol.writer,
        features=tuple(sorted(log.protocol.features)),
    )


def _figures(adds: pa.Table) -> tuple[int | None, int]:
    """Rows and bytes as the log counts them; rows only where it does so for every file."""
    import pyarrow.compute as pc

    counts = adds.column("num_records") if "num_records" in adds.column_names else None
    known = counts is not None and counts.null_count == 0
    rows = (pc.sum(counts).as_py() or 0) if known else None
    return rows, pc.sum(adds.column("size_bytes")).as_py() or 0
