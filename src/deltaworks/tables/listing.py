"""The tables of a warehouse: found by their folders, described by their logs; no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.errors import DeltaworksError, TableNotFound
from deltaworks.storage.paths import folders_in

_LOG = "_delta_log"
_MAX_DEPTH = 6
_HIDDEN = ("_", ".")


@dataclass(frozen=True, kw_only=True)
class ListedTable:
    """One table as a list shows it. What is not known is None."""

    name: str
    location: str
    version: int | None = None
    rows: int | None = None
    files: int | None = None
    size_bytes: int | None = None
    last_write: datetime | None = None
    problem: str | None = None
    """Why the table cannot be described."""

    def to_json(self) -> dict[str, Any]:
        """The table as programs read it."""
        written = self.last_write
        return {
            "name": self.name,
            "location": self.location,
            "version": self.version,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.size_bytes,
            "last_write": written and written.isoformat(timespec="milliseconds"),
            "problem": self.problem,
        }


def table_names(warehouse: str, stores: Stores = NO_STORES) -> tuple[str, ...]:
    """The names of the tables in a warehouse, in order."""
    return tuple(sorted(_names(warehouse, "", stores, _MAX_DEPTH)))


def _names(folder: str, prefix: str, stores: Stores, depth: int) -> Iterator[str]:
    inside = folders_in(folder, stores)
    if prefix and _LOG in inside:
        yield prefix
        return
    for name in inside if depth else ():
        if not name.startswith(_HIDDEN) and "." not in name:
            dotted = f"{prefix}.{name}" if prefix else name
            yield from _names(f"{folder}/{name}", dotted, stores, depth - 1)


def listed_tables(warehouse: str, stores: Stores = NO_STORES) -> tuple[ListedTable, ...]:
    """Every table of a warehouse; one that cannot be read is listed with the reason."""
    return tuple(
        _described(name, f"{warehouse}/{name.replace('.', '/')}", stores)
        for name in table_names(warehouse, stores)
    )


def _described(name: str, location: str, stores: Stores) -> ListedTable:
    from deltaworks.engines.deltars.tables import DeltaRsEngine

    engine = DeltaRsEngine(stores)
    try:
        look = engine.look(location)
        if look is None:
            raise TableNotFound("it has no commits")
        info, latest = look.info(), look.history(1)
    except DeltaworksError as error:
        return ListedTable(name=name, location=location, problem=error.message)
    moment = latest[0].timestamp_ms / 1000 if latest else None
    return ListedTable(
        name=name,
        location=location,
        version=info.version,
        rows=info.rows,
        files=info.files,
        size_bytes=info.size_bytes,
        last_write=None if moment is None else datetime.fromtimestamp(moment, UTC),
    )
