"""What an engine can do, asked for by ability rather than by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from deltaworks.model.table_info import CommitRecord, TableInfo

if TYPE_CHECKING:
    import pyarrow as pa

    from deltaworks.model.selection import Selection


@runtime_checkable
class CanInspect(Protocol):
    """Reads a table's log: what the table is, and how it came to be."""

    def info(self, location: str) -> TableInfo | None:
        """The table as it is now; None when no table is there."""
        ...

    def history(self, location: str, *, limit: int | None = None) -> tuple[CommitRecord, ...]:
        """Commits, newest first."""
        ...

    def count(self, location: str) -> int:
        """The rows of a table, counted by reading it."""
        ...


@runtime_checkable
class CanRead(CanInspect, Protocol):
    """Reads a table's rows as well."""

    def rows(self, location: str, selection: Selection) -> pa.Table:
        """The chosen rows of a table."""
        ...

    def query(self, text: str, *, limit: int | None) -> pa.Table:
        """The answer to a query that names tables by path."""
        ...
