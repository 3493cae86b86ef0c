"""Land a batch in a table of a database: staged beside it by Spark, moved in by one transaction.

The staged table is filled by many connections, each with commits of its own; nobody reads it. Then
one transaction moves its rows into the target and notes the batch's number, so that a batch is in
as a whole or not at all, and is never moved in twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from deltaworks.connectors.databases.batch_table import DatabaseBatches
from deltaworks.connectors.databases.connection_params import Address
from deltaworks.connectors.databases.dialect import STAGE, Column, Connection, Dialect, Place
from deltaworks.contracts.context import no_doubt
from deltaworks.engines.spark.frames.row_counter import RowCounter
from deltaworks.engines.spark.read.jdbc import JdbcWrite, write_rows
from deltaworks.errors import (
    BatchKeyError,
    DeltaworksError,
    EngineError,
    SchemaMismatch,
    SpecError,
)
from deltaworks.model.commit import LANDED_BEFORE, CommitInfo, SinkState, Txn
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Mode = Literal["append", "overwrite", "upsert"]
_MAX_SAMPLES = 3
_MOMENTS = ("timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class Fitted:
    """How the columns of a batch go into a table."""

    target: Place | None
    """The table; None when it is still to be made."""
    columns: tuple[Column, ...]
    """The columns that are written, as the table has them, in the order of the batch's."""


@dataclass(frozen=True, kw_only=True)
class DatabaseTable:
    """A table of a database that batches land in."""

    server: Dialect
    address: Address
    place: Place
    mode: Mode
    keys: tuple[str, ...] = ()

    def state(self, writer: str) -> SinkState:
        """Whether the table is there, and the last batch of a writer in it."""
        with self.server.open(self.address, read_only=True) as connection:
            found = self.server.resolved(connection, self.place)
            if found is None:
                return SinkState(identity="", exists=False)
            books = DatabaseBatches(self.server, found)
            return SinkState(
                identity=self.server.identity(connection, found),
                exists=True,
                txn_version=books.last(connection, writer),
                writers=books.writers(connection),
            )

    def fit(self, frame: DataFrame) -> bool:
        """Raise when the batch does not fit the table; whether there is a table."""
        with self.server.open(self.address, read_only=True) as connection:
            return self._fitted(connection, frame).target is not None

    def land(
        self,
        frame: DataFrame,
        txn: Txn,
        *,
        replace: bool,
        confirm: Callable[[], None] = no_doubt,
    ) -> CommitInfo:
        """Put a batch into the table; the same batch again changes nothing."""
        with self.server.open(self.address, read_only=False) as connection:
            fitted = self._fitted(connection, frame)
            home = fitted.target or self._home(connection)
            books = DatabaseBatches(self.server, home)
            if fitted.target and books.last(connection, txn.app_id) == txn.version:
                return CommitInfo(committed=False, note=LANDED_BEFORE)
            short = hashlib.sha256(f"{home.label}\n{txn.app_id}".encode()).hexdigest()[:16]
            stage = Place(home.schema, f"{STAGE}{short}")
            books.make(connection)
            if fitted.target:
                self.server.mark(connection, fitted.target)
            kinds = {column.name: column.kind for column in fitted.columns}
            self.server.make_stage(connection, stage, fitted.target, kinds)
            connection.commit()
        try:
            rows = self._stage(frame, stage, fitted)
            confirm()
            return self._move_in(stage, home, fitted, txn, rows=rows, replace=replace)
        finally:
            with suppress(DeltaworksError):  # the next batch of this writer drops it first
                self._drop(stage)

    def _home(self, connection: Connection) -> Place:
        return Place(self.place.schema or self.server.home(connection), self.place.table)

    def _fitted(self, connection: Connection, frame: DataFrame) -> Fitted:
        """The columns of the batch in the table, or as a new table has them."""
        kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        new = {name: self.server.type_for(kind) for name, kind in kinds.items()}
        for name, kind in new.items():
            if not kind:
                raise SchemaMismatch(
                    f'column "{name}" is {kinds[name]}, for which {self.server.title} has no type',
                    hint=f"make it text first, such as a derived column `to_json({name})`",
                )
        for key in self.keys:
            if key not in kinds:
                hint = did_you_mean(key, list(kinds))
                raise SpecError(f'merge key "{key}" is not a column of the rows', hint=hint)
        target = self.server.resolved(connection, self.place)
        if target is None:
            typed = {n: self.server.key_type(k) if n in self.keys else k for n, k in new.items()}
            return Fitted(None, tuple(Column(name, kind) for name, kind in typed.items()))
        known = {c.name: c for c in self.server.columns(connection, self.server.sql_of(target))}
        lower = {name.lower(): column for name, column in known.items()}
        extra = [name for name in kinds if name.lower() not in lower]
        if extra:
            raise SchemaMismatch(
                f'table "{self.place.label}" has no column "{extra[0]}"',
                hint=did_you_mean(extra[0], list(known))
                or f"add it to the table, or select the others: {', '.join(known)}",
            )
        columns = tuple(known.get(name, lower[name.lower()]) for name in kinds)
        self._require_unique_keys(connection, target, [column.name for column in columns])
        return Fitted(target, columns)

    def _require_unique_keys(
        self, connection: Connection, target: Place, columns: Sequence[str]
    ) -> None:
        if self.mode != "upsert":
            return
        keys, wanted = self.server.unique_keys(connection, target), set(self.keys)
        if wanted not in [set(key) for key in keys]:
            raise SpecError(
                f'table "{self.place.label}" has no unique index on {", ".join(self.keys)}, '
                "so that it cannot tell which row to update",
                hint=f"CREATE UNIQUE INDEX ... ON {self.place.label} ({', '.join(self.keys)})",
            )
        for key in keys if self.server.merges_by_any_key else ():
            if set(key) != wanted and set(key) <= set(columns):
                raise SpecError(
                    f'table "{self.place.label}" has another unique index, on {", ".join(key)}: '
                    f"{self.server.title} would update rows that only share that",
                    hint="merge by those columns, or leave them out of the rows",
                )

    def _stage(self, frame: DataFrame, stage: Place, fitted: Fitted) -> int | None:
        counter = RowCounter()
        names = [column.name for column in fitted.columns]
        moments = {
            column.name: self.server.sends(column.kind)
            for column, field in zip(fitted.columns, frame.schema.fields, strict=True)
            if field.dataType.simpleString() in _MOMENTS
        }
        options = self.server.driver_options(self.address)
        asked = JdbcWrite(
            url=self.server.url(self.address),
            driver=self.server.driver_class,
            user=self.address.user,
            password=self.address.password,
            table=self.server.sql_of(stage),
            options={**options, **self.server.writer_options()},
            moments=moments,
        )
        write_rows(counter.watch(frame.toDF(*names)), asked)
        return counter.rows()

    def _move_in(
        self,
        stage: Place,
        home: Place,
        fitted: Fitted,
        txn: Txn,
        *,
        rows: int | None,
        replace: bool,
    ) -> CommitInfo:
        """The one transaction in which the batch lands."""
        books = DatabaseBatches(self.server, home)
        with self.server.open(self.address, read_only=False) as connection:
            if fitted.target is None:
                self._make(connection, home, fitted.columns)
            elif books.last(connection, txn.app_id) == txn.version:
                return CommitInfo(committed=False, note=LANDED_BEFORE)
            staged = int(connection.one(f"SELECT count(*) FROM {self.server.sql_of(stage)}"))
            if rows is not None and rows != staged:
                raise EngineError(
                    f"{staged:,} rows were staged and {rows:,} sent; nothing was written",
                    hint="a task was tried twice: run it again",
                )
            info = self._move(connection, stage, home, fitted, staged=staged, replace=replace)
            books.note(connection, txn.app_id, txn.version)
            connection.commit()
        return info

    def _move(
        self,
        connection: Connection,
        stage: Place,
        home: Place,
        fitted: Fitted,
        *,
        staged: int,
        replace: bool,
    ) -> CommitInfo:
        if self.keys:
            self._refuse_bad_keys(connection, stage)
        if self.mode == "upsert" and not replace:
            added, changed = self.server.merge(connection, stage, home, fitted.columns, self.keys)
            return CommitInfo(
                committed=True,
                rows_inserted=added,
                rows_updated=changed,
                rows_deleted=0,
                rows_unchanged=staged - added - changed,
            )
        replaces = replace or self.mode == "overwrite"
        removed = self.server.clear(connection, home) if replaces else 0
        names = ", ".join(self.server.quoted(column.name) for column in fitted.columns)
        values = ", ".join(map(self.server.moved, fitted.columns))
        rows = f"SELECT {values} FROM {self.server.sql_of(stage)}"
        added = connection.run(f"INSERT INTO {self.server.sql_of(home)} ({names}) {rows}")
        return CommitInfo(committed=True, rows_inserted=added, rows_updated=0, rows_deleted=removed)

    def _make(self, connection: Connection, home: Place, columns: Sequence[Column]) -> None:
        typed = [f"{self.server.quoted(column.name)} {column.kind}" for column in columns]
        if self.keys:
            typed.append(f"PRIMARY KEY ({', '.join(map(self.server.quoted, self.keys))})")
        connection.run(f"CREATE TABLE {self.server.sql_of(home)} ({', '.join(typed)})")
        self.server.mark(connection, home)

    def _refuse_bad_keys(self, connection: Connection, stage: Place) -> None:
        keys, rows = [self.server.quoted(key) for key in self.keys], self.server.sql_of(stage)
        missing = " OR ".join(f"{key} IS NULL" for key in keys)
        nulls = int(connection.one(f"SELECT count(*) FROM {rows} WHERE {missing}"))
        named = ", ".join(f'"{key}"' for key in self.keys)
        if nulls:
            raise BatchKeyError(
                f"{nulls:,} rows have NULL in merge key {named}",
                hint="quarantine such rows with a not_null check and `on_fail: quarantine`",
            )
        listed = ", ".join(keys)
        repeated = connection.rows(
            f"SELECT {listed} FROM {rows} GROUP BY {listed} HAVING count(*) > 1 LIMIT 3"
        )
        if repeated:
            samples = ", ".join(str(row[0] if len(row) == 1 else row) for row in repeated)
            raise BatchKeyError(
                f"merge keys {named} occur in the batch more than once: {samples}",
                hint="choose one of them with a deduplicate step",
            )

    def _drop(self, stage: Place) -> None:
        with self.server.open(self.address, read_only=False) as connection:
            connection.run(f"DROP TABLE IF EXISTS {self.server.sql_of(stage)}")
            connection.commit()
