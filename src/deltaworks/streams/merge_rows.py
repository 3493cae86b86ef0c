"""Epochs that change rows by key: an upsert, or a changelog whose deletes take rows away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.engines.deltars.schemas import as_promised
from deltaworks.engines.deltars.write.commit_options import MergePlan
from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.engines.deltars.write.write_support import SPARK_CAN
from deltaworks.errors import UnsupportedOperation
from deltaworks.model.commit import Txn
from deltaworks.streams.changelog import GONE, SEQUENCE, changes, newest, refuse_null_keys
from deltaworks.streams.commit_rows import Landed, Spool, quoted, refuse_no_folder
from deltaworks.streams.rows import Fitting

if TYPE_CHECKING:
    import pyarrow as pa


class MergeLanding:
    """One MERGE for each epoch, with the newest row of each key."""

    def __init__(
        self,
        spool: Spool,
        fitting: Fitting,
        keys: Sequence[str],
        *,
        partition_columns: Sequence[str] = (),
        sequence_by: str = "",
        op_column: str = "",
        changelog: bool = False,
    ) -> None:
        self._spool = spool
        self._partition_columns = tuple(partition_columns)
        self._fitting = fitting
        self._keys = tuple(keys)
        self._sequence_by = sequence_by
        self._op_column = op_column
        self._changelog = changelog
        self.store = spool.store
        self.discard = self.finish = spool.discard
        self.close = spool.close

    def accept(self, rows: pa.Table) -> pa.Table:
        extra: dict[str, Any] = {}
        if self._changelog:
            rows = changes(rows, op_column=self._op_column, sequence_by=self._sequence_by)
            extra = {name: rows.column(name) for name in (GONE, SEQUENCE) if _has(rows, name)}
            rows = rows.drop_columns(list(extra))
        fitted = self._fitting.fit(rows)
        refuse_null_keys(fitted, self._keys)
        refuse_no_folder(fitted, self._partition_columns)
        for name, column in extra.items():
            fitted = fitted.append_column(name, column)
        return fitted

    def land(
        self,
        table: EpochTable,
        stored: Sequence[Path],
        txns: Sequence[Txn],
        note: Mapping[str, Any],
    ) -> Landed:
        rows = self._spool.read(stored)
        if rows is None:
            return Landed(version=table.append((), txns, note))
        refuse_rewriting(table)  # others may have added files since it was opened
        sequence = SEQUENCE if _has(rows, SEQUENCE) else self._sequence_by
        rows = newest(as_promised(rows, self._fitting.schema), self._keys, sequence=sequence)
        version, counts = table.merge(rows, self._plan(rows), txns, note)
        return Landed(version=version, updated=counts["updated"], deleted=counts["deleted"])

    def _plan(self, rows: pa.Table) -> MergePlan:
        columns = {quoted(name): f"source.{quoted(name)}" for name in self._fitting.schema.names}
        later = self._later()
        stays = f"source.{quoted(GONE)} = false" if self._changelog else ""
        return MergePlan(
            on=" AND ".join(self._match(key) for key in self._keys),
            columns=columns,
            update=_all(stays, later),
            insert=_all(stays),
            delete=_all(f"source.{quoted(GONE)} = true", later) or "" if self._changelog else "",
        )

    def _match(self, key: str) -> str:
        """Equal keys, as Spark's MERGE has it: any NaN is any other, and so are the zeros.

        Statistics of decimals are rounded by many writers. delta-rs skips no file by a CASE.
        """
        import pyarrow.types as kinds

        kind = self._fitting.schema.field(key).type
        sides = [f"{side}.{quoted(key)}" for side in ("target", "source")]
        if kinds.is_floating(kind):
            nan = "CAST('NaN' AS DOUBLE)"
            sides = [f"CASE WHEN isnan({one}) THEN {nan} ELSE {one} + 0.0 END" for one in sides]
        elif kinds.is_decimal(kind):
            sides = [f"CASE WHEN {one} IS NULL THEN NULL ELSE {one} END" for one in sides]
        return " = ".join(sides)

    def _later(self) -> str:
        """Whether a row comes after the one it meets, where the table keeps that."""
        if self._sequence_by not in self._fitting.schema.names:
            return ""
        name = quoted(self._sequence_by)
        return f"(target.{name} IS NULL OR source.{name} >= target.{name})"


def refuse_rewriting(table: EpochTable) -> None:
    """Refuse a table whose rows delta-rs would change by writing them anew."""
    if problem := table.rewriting_problem():
        raise UnsupportedOperation(f'"{table.location}": {problem}', hint=SPARK_CAN)


def _all(*conditions: str) -> str | None:
    return " AND ".join(one for one in conditions if one) or None


def _has(rows: pa.Table, name: str) -> bool:
    return name in rows.column_names
