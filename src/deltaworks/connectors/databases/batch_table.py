"""Which batch of which writer is in a table: kept beside it, in the transaction of its rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from deltaworks.connectors.databases.dialect import BATCHES, Connection, Dialect, Place

_COLUMNS = (
    "id char(64) NOT NULL PRIMARY KEY, target varchar(255) NOT NULL, "
    "identity varchar(255) NOT NULL, writer varchar(2000) NOT NULL, batch bigint NOT NULL, "
    "landed_at timestamp NOT NULL"
)


@dataclass(frozen=True)
class DatabaseBatches:
    """The notes about one table."""

    server: Dialect
    table: Place

    @property
    def place(self) -> Place:
        """The table that holds the notes."""
        return Place(self.table.schema, BATCHES)

    def make(self, connection: Connection) -> None:
        """Make the table of notes where there is none."""
        if self.server.resolved(connection, self.place) is None:
            connection.run(
                f"CREATE TABLE IF NOT EXISTS {self.server.sql_of(self.place)} ({_COLUMNS})"
            )

    def last(self, connection: Connection, writer: str) -> int | None:
        """The last batch of a writer that is in the table; one recreated by hand has none."""
        if self.server.resolved(connection, self.place) is None:
            return None
        found = connection.one(
            f"SELECT batch FROM {self.server.sql_of(self.place)} "
            "WHERE id = %s AND identity IN (%s, %s)",
            self._id(writer),
            self.server.identity(connection, self.table),
            self.table.label,  # what older versions noted for servers that tell no identity
        )
        return None if found is None else int(found)

    def writers(self, connection: Connection) -> tuple[str, ...]:
        """All who ever landed a batch in the table."""
        if self.server.resolved(connection, self.place) is None:
            return ()
        sql = f"SELECT writer FROM {self.server.sql_of(self.place)} WHERE target = %s"
        return tuple(row[0] for row in connection.rows(sql, self.table.label))

    def note(self, connection: Connection, writer: str, batch: int) -> None:
        """Write a batch down; who else does so for the same writer waits for this transaction."""
        books, own = self.server.sql_of(self.place), self._id(writer)
        identity, label = self.server.identity(connection, self.table), self.table.label
        renamed = f"UPDATE {books} SET identity = %s WHERE target = %s AND identity = %s"
        connection.run(renamed, identity, label, label)
        connection.run(f"DELETE FROM {books} WHERE id = %s", own)
        connection.run(
            f"INSERT INTO {books} (id, target, identity, writer, batch, landed_at) "
            "VALUES (%s, %s, %s, %s, %s, CURRENT_TIMESTAMP)",
            own,
            label,
            identity,
            writer,
            batch,
        )

    def _id(self, writer: str) -> str:
        return hashlib.sha256(f"{self.table.label}\n{writer}".encode()).hexdigest()
