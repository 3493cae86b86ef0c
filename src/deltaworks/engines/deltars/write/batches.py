"""Batches of pipelines, committed by delta-rs: on one machine several times as quick as Spark.

Whoever calls holds the table's lock and has seen to it that the table, its types and the conditions
are such that both writers give the same rows. A commit carries the batch's transaction and its
note, as Spark's does, so that a batch which landed is found whoever landed it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log.history import parse_user_metadata
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.text import text
from deltaworks.engines.deltars.write.commit_options import ROWS_MARK, MergePlan, commit_properties
from deltaworks.engines.deltars.write.epoch_table import EpochTable, TableLocation
from deltaworks.engines.deltars.write.spark_parity import (
    INTEGERS,
    column_problem,
    property_problem,
    value_problem,
)
from deltaworks.engines.deltars.write.sql_conditions import named
from deltaworks.engines.deltars.write.statistics import writer_properties
from deltaworks.engines.deltars.write.write_support import obstacles
from deltaworks.errors import CommitConflict
from deltaworks.model.merge_facts import FilesUsed
from deltaworks.model.table_properties import CHECKPOINTS, whole_number
from deltaworks.model.write import Stamp
from deltaworks.storage.folders import refuse_unwritable

if TYPE_CHECKING:
    import pyarrow as pa

_RANGED = INTEGERS | {"string", "date"}
_MAX_MEMORY_BYTES = 2 * 1024**3
GONE = "__deltaworks_goes"
_DELTA_CHECKPOINTS = 10
"""Commits between two checkpoints, unless the table says otherwise; Delta's own default."""


@dataclass(frozen=True, kw_only=True)
class KeyedChange:
    """A batch with one row for each key, as it is merged; all names as the table spells them."""

    keys: tuple[str, ...]
    updated: tuple[str, ...]
    compared: tuple[str, ...]
    """Columns that make a row count as changed."""
    inserted: tuple[str, ...]
    update_when: str = ""
    """A portable condition."""
    deletes: bool = False
    """Whether column GONE of the batch says which rows delete their match."""

    @property
    def settles(self) -> bool:
        """Whether the same rows once more surely change nothing: what is new is inserted whole."""
        return set(self.compared) <= set(self.inserted)


@dataclass(frozen=True, kw_only=True)
class Change:
    """What a commit did; no version when there was nothing to do."""

    version: int | None
    rows: int = 0
    """How many rows came, with one for each key where they were merged."""
    duplicates: int = 0
    """Rows that gave way to others of their key."""
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    ignored: int = 0
    """Rows that would delete, and match nothing."""
    files: FilesUsed | None = None
    """What a merge did with the files that were there."""
    counted: bool = True
    """Whether the rows are known; they are not when only the log tells that it landed."""


class BatchTable:
    """One table, as one batch finds it."""

    def __init__(self, location: str) -> None:
        place = TableLocation(location, {})
        self._table = EpochTable(place, place.open())

    @property
    def version(self) -> int:
        """The version the batch is put upon."""
        return self._table.version

    def problem(self, *, merges: bool) -> str:
        """Why delta-rs should not write this table; empty when it may."""
        settings = self._table.table.metadata().configuration
        for what in obstacles(self._table.table):
            return f"the table has {what}"
        if problem := property_problem(settings, merges=merges):
            return problem
        schema = self._table.schema()
        strict = [f["name"] for f in json.loads(schema.document)["fields"] if not f["nullable"]]
        if strict:
            return f'column "{strict[0]}" must not be NULL'
        return column_problem(schema) or (self._table.rewriting_problem() if merges else "")

    def value_problem(self, rows: pa.Table) -> str:
        """Why these rows are better written by Spark; empty when either will do."""
        return value_problem(rows, self._table.partition_columns)

    def touched_bytes(self, rows: pa.Table, keys: Sequence[str]) -> int:
        """Bytes of the files that may hold a key of the batch."""
        return sum(self._touched(rows, keys))

    def _touched(self, rows: pa.Table, keys: Sequence[str]) -> list[int]:
        """The size of each file that may hold a key of the batch."""
        import pyarrow.compute as pc

        adds = arrow_table(self._table.table.get_add_actions(flatten=True))
        size, apart = adds.column("size_bytes"), None
        for key in keys:
            low, high = f"min.{key}", f"max.{key}"
            ends = None if "." in key else _ends(rows, key)  # it may be a field's figures
            if ends is None or not {low, high} <= set(adds.column_names):
                continue
            beyond = pc.or_(
                pc.less(adds.column(high), ends[0]), pc.greater(adds.column(low), ends[1])
            )
            beyond = pc.fill_null(beyond, fill_value=False)
            apart = beyond if apart is None else pc.or_(apart, beyond)
        kept = size if apart is None else size.filter(pc.invert(apart))
        return [int(one) for one in kept.to_pylist()]

    def refuse_landed(self, stamp: Stamp) -> None:
        """Raise when a batch of this number or a later one is in the table, as this handle sees it.

        Whether it is this very batch is for the log to tell.
        """
        found = self._table.transaction(stamp.txn.app_id)
        if found is not None and found >= stamp.txn.version:
            raise CommitConflict(
                f'another run landed batch {found} in "{self._table.location}" meanwhile',
                hint="run it again",
            )

    def add(self, rows: pa.Table, stamp: Stamp) -> Change:
        """Add the rows; columns that they lack are NULL."""
        version = self._table.add(self._whole(rows), (stamp.txn,), _note(stamp))
        count = rows.num_rows
        return Change(version=self._checkpointed(version), rows=count, inserted=count)

    def merge(self, rows: pa.Table, change: KeyedChange, stamp: Stamp) -> Change:
        """Update, delete and insert by key; what changes nothing makes no commit."""
        mark = _rows_mark(rows, change)
        if change.settles and self._last_mark() == mark:
            return self._nothing_again(rows, change)
        before, files = self.version, self._table.table.file_uris()
        touched = len(self._touched(rows, change.keys))
        version, counts = self._table.merge(
            self._fitted(rows), self._plan(rows, change, mark), (stamp.txn,), _note(stamp)
        )
        gone = _true_ones(rows.column(GONE)) if change.deletes else 0
        return Change(
            version=None if version == before else self._checkpointed(version),
            rows=rows.num_rows,
            inserted=counts["inserted"],
            updated=counts["updated"],
            deleted=counts["deleted"],
            ignored=max(0, gone - counts["deleted"]),
            files=_files_used(counts, len(files), touched),
        )

    def _last_mark(self) -> str:
        """The rows that the last commit merged, if nobody came between its look and itself."""
        for last in self._table.table.history(1):  # none where only a checkpoint is left
            found = (last.get("version"), last.get("readVersion"))
            if found == (self.version, self.version - 1):
                return str(last.get(ROWS_MARK, ""))
        return ""

    def _nothing_again(self, rows: pa.Table, change: KeyedChange) -> Change:
        """What the very rows change that the last commit merged: nothing."""
        return Change(
            version=None,
            rows=rows.num_rows,
            ignored=_true_ones(rows.column(GONE)) if change.deletes else 0,
            files=FilesUsed(scanned=0, skipped=len(self._table.table.file_uris()), rewritten=0),
        )

    def _plan(self, rows: pa.Table, change: KeyedChange, mark: str) -> MergePlan:
        types = {f["name"]: f["type"] for f in json.loads(self._table.schema().document)["fields"]}
        differs = " OR ".join(
            f"(target.{named(name)} IS DISTINCT FROM source.{named(name)})"
            for name in change.compared
        )
        changes = f"({differs})" if differs else "false"
        goes = f"(source.{named(GONE)} = true)" if change.deletes else ""
        stays = f"(source.{named(GONE)} = false)" if change.deletes else ""
        return MergePlan(
            on=" AND ".join(_match(rows, key, types[key]) for key in change.keys),
            columns={named(name): f"source.{named(name)}" for name in change.updated},
            update=" AND ".join(p for p in (stays, change.update_when, changes) if p),
            insert=stays or None,
            delete=goes,
            inserts={named(name): f"source.{named(name)}" for name in change.inserted},
            always_commits=False,
            rows_mark=mark,
            max_memory_bytes=_MAX_MEMORY_BYTES,
        )

    def _fitted(self, rows: pa.Table) -> pa.Table:
        """The rows with the table's own types; columns that it does not have stay as they are."""
        import pyarrow as pa

        own = {field.name: field.type for field in self._table.arrow_schema()}
        fields = [pa.field(f.name, own.get(f.name, f.type)) for f in rows.schema]
        return rows.cast(pa.schema(fields))

    def _whole(self, rows: pa.Table) -> pa.Table:
        """The rows with all columns of the table: delta-rs adds no fewer."""
        import pyarrow as pa

        fitted = self._fitted(rows)
        for field in self._table.arrow_schema():
            if field.name not in fitted.column_names:
                fitted = fitted.append_column(field, pa.nulls(rows.num_rows, field.type))
        return fitted

    def _checkpointed(self, version: int) -> int:
        settings = self._table.table.metadata().configuration
        every = whole_number(settings, CHECKPOINTS, default=_DELTA_CHECKPOINTS, least=1)
        if version % every == 0:
            self._table.checkpoint()
        return version


def create_table(
    location: str, rows: pa.Table, stamp: Stamp, *, partition_by: Sequence[str]
) -> int:
    """Make a table with its first rows, in one commit."""
    import pyarrow as pa
    from deltalake import write_deltalake

    fields = [pa.field(field.name, field.type) for field in rows.schema]
    schema = pa.schema(fields)
    refuse_unwritable(location)
    with translated(location):
        write_deltalake(
            location,
            rows.cast(schema),
            mode="error",
            partition_by=list(partition_by) or None,
            writer_properties=writer_properties(schema),
            commit_properties=commit_properties((stamp.txn,), _note(stamp)),
        )
    return 0


def _files_used(counts: Mapping[str, int], files: int, touched: int) -> FilesUsed:
    """What a merge did with the files; of a table in partitions delta-rs says that it read none."""
    scanned = counts["files_scanned"] or touched
    return FilesUsed(
        scanned=scanned, skipped=max(0, files - scanned), rewritten=counts["files_removed"]
    )


def _note(stamp: Stamp) -> Mapping[str, Any]:
    return parse_user_metadata(stamp.user_metadata)


def _rows_mark(rows: pa.Table, change: KeyedChange) -> str:
    """A word that only these rows and this merge of them have."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    digest = hashlib.sha256(repr(change).encode())
    digest.update(sink.getvalue())
    return digest.hexdigest()


def _true_ones(column: pa.ChunkedArray) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(column).as_py() or 0)


def _match(rows: pa.Table, key: str, kind: str) -> str:
    """Equal keys, and for the sake of files that need not be read: within what the batch has."""
    name = named(key)
    equal = f"(target.{name} = source.{name})"
    ends = _ends(rows, key) if kind in _RANGED else None
    if ends is None:
        return equal
    low, high = (_literal(end.as_py(), kind) for end in ends)
    return f"{equal} AND (target.{name} >= {low}) AND (target.{name} <= {high})"


def _ends(rows: pa.Table, key: str) -> tuple[pa.Scalar, pa.Scalar] | None:
    """The smallest and the greatest key of the batch."""
    import pyarrow.compute as pc

    found = pc.min_max(rows.column(key))
    return (found["min"], found["max"]) if found["min"].is_valid else None


def _literal(value: object, kind: str) -> str:
    if kind in INTEGERS:
        return str(value)
    return f"DATE {text(str(value))}" if kind == "date" else text(str(value))
