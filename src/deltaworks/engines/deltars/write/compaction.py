"""Small files of streams, joined into larger ones while the streams go on.

delta-rs' own compaction lists the log before each try, and a stream that commits without pause is
faster every time. Here the rows are rewritten first, and the commit is one more link in the log. It
is for files that streams wrote; those of others may hold what only their engine reads rightly.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.log.actions import DataFile, add_action, commit_info, remove_action
from deltaworks.engines.deltars.log.local_tail import LogTail
from deltaworks.engines.deltars.schemas import nullable
from deltaworks.engines.deltars.write.data_files import DataFolder, partition_text
from deltaworks.errors import CommitConflict

if TYPE_CHECKING:
    import pyarrow as pa
    from deltalake import DeltaTable

STREAMED = "stream."
"""What names of files begin with that streams wrote."""
_MAX_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True)
class SmallFile:
    """A file of the table that had better be part of a larger one."""

    path: str
    size_bytes: int
    partition: Mapping[str, str | None]


def small_groups(table: DeltaTable, size_bytes: int) -> tuple[tuple[SmallFile, ...], ...]:
    """Small files that can be joined, each group into one: those of one partition, in any order."""
    places: dict[str, list[SmallFile]] = {}
    for row in _small(table, size_bytes).to_pylist():
        values = {n: partition_text(v) for n, v in (row.get("partition") or {}).items()}
        file = SmallFile(row["path"], row["size_bytes"], values)
        places.setdefault(json.dumps(values, sort_keys=True), []).append(file)
    return tuple(group for files in places.values() for group in _filled(files) if len(group) > 1)


def _small(table: DeltaTable, size_bytes: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pa.table(table.get_add_actions())
    streamed = pc.starts_with(found.column("path"), STREAMED)
    small = pc.less(found.column("size_bytes"), size_bytes)
    wanted = [n for n in ("path", "size_bytes", "partition") if n in found.column_names]
    return found.select(wanted).filter(pc.and_(streamed, small))


def _filled(files: Sequence[SmallFile]) -> Iterator[tuple[SmallFile, ...]]:
    """The files in order, cut where a joined one would be large enough."""
    group: list[SmallFile] = []
    for file in files:
        if group and sum(one.size_bytes for one in group) + file.size_bytes > _MAX_BYTES:
            yield tuple(group)
            group = []
        group.append(file)
    yield tuple(group)


def joinable(groups: Sequence[Sequence[SmallFile]]) -> int:
    """How many files there are to join, of those that stay one for each further group left out."""
    return sum(len(group) - 1 for group in groups) + bool(groups)


def files_schema(schema: pa.Schema, partition_columns: Sequence[str]) -> pa.Schema:
    """The columns that files have: all but those that their partition tells."""
    import pyarrow as pa

    return nullable(pa.schema([f for f in schema if f.name not in partition_columns]))


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """Joins groups of files of one table."""

    folder: DataFolder
    schema: pa.Schema
    prefix: str
    """What names of new files begin with; what a crash leaves of them is found by it."""

    def join(
        self, groups: Sequence[Sequence[SmallFile]], tail: LogTail, note: Mapping[str, Any]
    ) -> int:
        """Join groups in one commit; answers how many files went."""
        new: list[DataFile] = []
        old = [file for group in groups for file in group]
        try:
            for group in groups:
                name = f"{self.prefix}{secrets.token_hex(8)}.joined.parquet"
                rows = self._read(group)
                new.append(self.folder.write(name, rows, partition=group[0].partition))
            info = commit_info("OPTIMIZE", {"predicate": "[]"}, json.dumps(dict(note)))
            gone = [remove_action(file, is_new=False) for file in old]
            actions = [info, *gone, *(add_action(one, is_new=False) for one in new)]
            tail.commit(actions, (), needs=frozenset(file.path for file in old))
        except CommitConflict:
            self.folder.delete([file.path for file in new])
            raise
        return len(old)

    def _read(self, group: Sequence[SmallFile]) -> pa.Table:
        import pyarrow as pa

        tables = [self.folder.read(file.path) for file in group]
        return pa.concat_tables([self._conformed(rows) for rows in tables])

    def _conformed(self, rows: pa.Table) -> pa.Table:
        """The rows with the columns of today; those that came later are NULL."""
        import pyarrow as pa

        columns = [
            rows.column(field.name).cast(field.type)
            if field.name in rows.column_names
            else pa.nulls(rows.num_rows, field.type)
            for field in self.schema
        ]
        return pa.table(columns, schema=self.schema)
