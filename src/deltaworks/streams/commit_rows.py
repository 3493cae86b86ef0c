"""What an epoch's commit does to the table: a mode is a way to store rows and to land them."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import psutil

from deltaworks.engines.deltars.log.actions import DataFile
from deltaworks.engines.deltars.schemas import as_promised
from deltaworks.engines.deltars.write.data_files import DataFolder, partition_text
from deltaworks.engines.deltars.write.dedupe import key_columns
from deltaworks.engines.deltars.write.epoch_table import EpochTable
from deltaworks.engines.deltars.write.spark_parity import no_folder
from deltaworks.errors import InputError
from deltaworks.model.commit import Txn
from deltaworks.streams.rows import Fitting

if TYPE_CHECKING:
    import pyarrow as pa

Stored = TypeVar("Stored")


@dataclass(frozen=True, kw_only=True)
class Landed:
    """What a commit did."""

    version: int
    updated: int = 0
    deleted: int = 0
    files: int = 0
    size_bytes: int = 0


class Landing(Protocol, Generic[Stored]):
    """A mode."""

    def accept(self, rows: pa.Table) -> pa.Table:
        """The rows as they will be stored, or an error that names what does not fit."""
        ...

    def store(self, number: int, tables: Sequence[pa.Table]) -> Sequence[Stored]:
        """Put rows away, off the caller's path."""
        ...

    def land(
        self,
        table: EpochTable,
        stored: Sequence[Stored],
        txns: Sequence[Txn],
        note: Mapping[str, Any],
    ) -> Landed:
        """Make the commit."""
        ...

    def discard(self, stored: Sequence[Stored]) -> None:
        """Remove what was stored for an epoch that will not be committed."""
        ...

    def finish(self, stored: Sequence[Stored]) -> None:
        """Remove what is not needed any more, now that the epoch has landed."""
        ...

    def close(self) -> None:
        """Clean up."""
        ...


class AppendLanding:
    """Rows become files of the table right away; the commit only names them."""

    def __init__(
        self, folder: DataFolder, fitting: Fitting, partition_columns: Sequence[str], prefix: str
    ) -> None:
        self._folder = folder
        self._fitting = fitting
        self._partition_columns = tuple(partition_columns)
        self._prefix = prefix

    def accept(self, rows: pa.Table) -> pa.Table:
        fitted = self._fitting.fit(rows)
        refuse_no_folder(fitted, self._partition_columns)
        return fitted

    def store(self, number: int, tables: Sequence[pa.Table]) -> Sequence[DataFile]:
        import pyarrow as pa

        rows = pa.concat_tables(tables, promote_options="default")
        if not self._partition_columns:
            return [self._folder.write(f"{self._prefix}{number}.parquet", rows)]
        return [
            self._folder.write(f"{self._prefix}{number}-{i}.parquet", part, partition=values)
            for i, (values, part) in enumerate(split(rows, self._partition_columns))
        ]

    def land(
        self,
        table: EpochTable,
        stored: Sequence[DataFile],
        txns: Sequence[Txn],
        note: Mapping[str, Any],
    ) -> Landed:
        return Landed(
            version=table.append(stored, txns, note),
            files=len(stored),
            size_bytes=sum(file.size_bytes for file in stored),
        )

    def discard(self, stored: Sequence[DataFile]) -> None:
        self._folder.delete([file.path for file in stored])

    def finish(self, stored: Sequence[DataFile]) -> None:
        pass  # they are the table's now

    def close(self) -> None:
        pass


class Spool:
    """A folder outside the table, for epochs whose rows meet the table's only at the commit."""

    def __init__(self, key: str) -> None:
        place, name = Path(tempfile.gettempdir()), f"deltaworks-spool-{key}"
        for left in place.glob(f"{name}.*.*"):
            if not psutil.pid_exists(int(left.name.split(".")[1])):  # it crashed
                shutil.rmtree(left, ignore_errors=True)
        self._folder = place / f"{name}.{os.getpid()}.{secrets.token_hex(4)}"
        self._folder.mkdir(mode=0o700)

    def store(self, number: int, tables: Sequence[pa.Table]) -> Sequence[Path]:
        """Write rows as they are."""
        import pyarrow as pa
        from pyarrow import ipc

        path = self._folder / f"{number}.arrow"
        rows = pa.concat_tables(tables, promote_options="default")
        with ipc.new_file(str(path), rows.schema) as writer:
            writer.write_table(rows)
        return [path]

    @staticmethod
    def read(stored: Sequence[Path]) -> pa.Table | None:
        """The rows, oldest first; None when there are none."""
        import pyarrow as pa
        from pyarrow import ipc

        if not stored:
            return None
        ordered = sorted(stored, key=lambda path: int(path.stem))
        tables = [ipc.open_file(pa.memory_map(str(path))).read_all() for path in ordered]
        return pa.concat_tables(tables, promote_options="default")

    def discard(self, stored: Sequence[Path]) -> None:
        """Remove rows."""
        for path in stored:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)


class ReplaceLanding:
    """The partitions that an epoch has rows for hold these rows afterwards, and no others."""

    def __init__(self, spool: Spool, fitting: Fitting, partition_columns: Sequence[str]) -> None:
        self._spool = spool
        self._fitting = fitting
        self._partition_columns = tuple(partition_columns)
        self.store = spool.store
        self.discard = self.finish = spool.discard
        self.close = spool.close

    def accept(self, rows: pa.Table) -> pa.Table:
        fitted = self._fitting.fit(rows)
        refuse_no_folder(fitted, self._partition_columns)
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
        where = partitions_condition(rows, self._partition_columns)
        rows = as_promised(rows, self._fitting.schema)
        return Landed(version=table.replace(rows, where, txns, note))


def refuse_no_folder(rows: pa.Table, columns: Sequence[str]) -> None:
    """Refuse values that cannot name a partition: Spark would read them back as NULL."""
    for name in columns:
        if text := no_folder(rows.column(name)):
            raise InputError(
                f'partition column "{name}" has {text}, which Delta would keep as NULL',
                hint="use NULL, or another word",
            )


def split(rows: pa.Table, columns: Sequence[str]) -> list[tuple[dict[str, str | None], pa.Table]]:
    """The values of each partition, as the log spells them, and its rows without them."""
    import pyarrow.compute as pc

    found = []
    for values in _distinct(rows, columns):
        mask = None
        for name, value in values.items():
            column = rows.column(name)
            same = pc.is_null(column) if value is None else pc.equal(column, value)
            mask = same if mask is None else pc.and_kleene(mask, same)
        part = rows.filter(mask).drop_columns(list(columns))
        found.append(({name: partition_text(value) for name, value in values.items()}, part))
    return found


def partitions_condition(rows: pa.Table, columns: Sequence[str]) -> str:
    """A condition that covers exactly the partitions that the rows are in."""
    found = [
        " AND ".join(_equals(name, value) for name, value in values.items())
        for values in _distinct(rows, columns)
    ]
    return " OR ".join(f"({one})" for one in found)


def _distinct(rows: pa.Table, columns: Sequence[str]) -> list[dict[str, Any]]:
    keyed = key_columns(rows, columns)
    found = keyed.group_by(keyed.column_names).aggregate([]).rename_columns(list(columns))
    values: list[dict[str, Any]] = found.to_pylist()
    return values


def _equals(name: str, value: Any) -> str:
    column = quoted(name)
    if value is None:
        return f"{column} IS NULL"
    if isinstance(value, bool | int):
        return f"{column} = {str(value).lower()}"
    text = str(value).replace("'", "''")
    return f"{column} = '{text}'"


def quoted(name: str) -> str:
    """A name that delta-rs' SQL takes as it is."""
    return '"' + name.replace('"', '""') + '"'
