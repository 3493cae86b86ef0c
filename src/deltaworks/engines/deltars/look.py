"""One look at a table: what it is, and what was asked of it is not asked of its log again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.arrow import arrow_table
from deltaworks.engines.deltars.errors import translated
from deltaworks.errors import CommitConflict
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import CommitRecord, TableInfo

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from deltaworks.engines.deltars.object_log import Commit

OpenAt = Callable[[int | None], "DeltaTable | None"]
"""Opens a table at a version, or as it is now; None when no table is there."""


@dataclass(eq=False, kw_only=True)
class Look:
    """A table at one version."""

    location: str
    table_id: str
    version: int
    opened: Callable[[], DeltaTable]
    """The table as delta-rs has it, for what is not known yet."""
    reopened: Callable[[], DeltaTable] | None = None
    """The same, to be opened once more: a look that is kept holds no large table in memory."""
    _info: TableInfo | None = None
    _txns: dict[str, int | None] = field(default_factory=dict)
    _records: dict[int, CommitRecord] = field(default_factory=dict)

    @staticmethod
    def at(location: str, table: DeltaTable) -> Look:
        """A look at a table that was just opened."""
        with translated(location):
            table_id, version = str(table.metadata().id), table.version()
        return Look(location=location, table_id=table_id, version=version, opened=lambda: table)

    @property
    def properties(self) -> Mapping[str, str]:
        """What the table is set to."""
        if self._info is not None:
            return self._info.properties
        with translated(self.location):
            return dict(self.opened().metadata().configuration)

    def info(self) -> TableInfo:
        """All that the log says of the table."""
        if self._info is None:
            with translated(self.location):
                self._info = _info(self.location, self.opened())
            self.opened = self.reopened or self.opened
        return self._info

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
            with translated(self.location):
                found = (record_of(entry) for entry in self.opened().history(count))
                self._records.update({record.version: record for record in found})
        return tuple(self._records[version] for version in wanted if version in self._records)

    def after(self, commits: Sequence[Commit], open_at: OpenAt) -> Look | None:
        """The table some commits later; None when they did more than to add files."""
        if not all(_only_adds(commit) for commit in commits):
            return None
        version = commits[-1].version
        adds = [add for commit in commits for add in commit.actions_of("add")]
        later = Look(
            location=self.location,
            table_id=self.table_id,
            version=version,
            opened=lambda: the_same(self, open_at(version)),
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


def the_same(look: Look, table: DeltaTable | None) -> DeltaTable:
    """A table that was opened once more."""
    if table is None or str(table.metadata().id) != look.table_id:
        raise CommitConflict(
            f'"{look.location}" was made anew while it was looked at', hint="run it again"
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


def _info(location: str, table: DeltaTable) -> TableInfo:
    metadata, protocol = table.metadata(), table.protocol()
    rows, files, size_bytes = _figures(table, metadata.configuration)
    features = [*(protocol.reader_features or []), *(protocol.writer_features or [])]
    return TableInfo(
        location=location,
        table_id=str(metadata.id),
        version=table.version(),
        schema=Schema.from_json(table.schema().to_json()),
        partition_columns=tuple(metadata.partition_columns),
        properties=dict(metadata.configuration),
        reader_version=protocol.min_reader_version,
        writer_version=protocol.min_writer_version,
        features=tuple(sorted(set(features))),
        rows=rows,
        files=files,
        size_bytes=size_bytes,
    )


def _figures(
    table: DeltaTable, properties: Mapping[str, str]
) -> tuple[int | None, int | None, int | None]:
    """Rows, files and bytes from the log; rows only where the log knows them exactly."""
    import pyarrow.compute as pc

    adds = arrow_table(table.get_add_actions(flatten=False))
    counts = adds.column("num_records") if "num_records" in adds.column_names else None
    size_bytes = pc.sum(adds.column("size_bytes")).as_py() or 0
    vectors = properties.get("delta.enableDeletionVectors") == "true"  # not subtracted there
    known = counts is not None and counts.null_count == 0 and not vectors
    rows = (pc.sum(counts).as_py() or 0) if known else None
    return rows, adds.num_rows, size_bytes


def record_of(entry: Mapping[str, Any]) -> CommitRecord:
    """A commit by what it says about itself."""
    return CommitRecord(
        version=int(entry["version"]),
        timestamp_ms=int(entry.get("timestamp") or 0),
        operation=str(entry.get("operation") or ""),
        metrics=dict(entry.get("operationMetrics") or {}),
        user_metadata=parse_user_metadata(entry.get("userMetadata")),
        engine=str(entry.get("engineInfo") or ""),
    )


def parse_user_metadata(text: object) -> dict[str, Any]:
    """Our note in a commit; empty for anybody else's."""
    try:
        value = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
