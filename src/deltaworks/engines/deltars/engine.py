"""Tables through delta-rs: what must answer at once, without a JVM."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.deltars.arrow import arrow_table
from deltaworks.engines.deltars.errors import translated
from deltaworks.engines.deltars.log import check_log, commit_files
from deltaworks.engines.object_stores import table_options
from deltaworks.errors import TableNotFound, VersionNotFound
from deltaworks.model.schema import Schema
from deltaworks.model.table_info import CommitRecord, TableInfo

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaRsEngine:
    """Reads logs; satisfies `CanInspect` and knows the writers' transactions."""

    def __init__(self, stores: Stores = NO_STORES) -> None:
        self.stores = stores

    def info(self, location: str, *, version: int | None = None) -> TableInfo | None:
        """The table at a version; None when no table is there."""
        table = self.open_or_none(location, version)
        if table is None:
            return None
        with translated(location):
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

    def identity(self, location: str) -> tuple[str, int] | None:
        """Table id and latest version, the cheapest look there is; None when no table is there."""
        table = self.open_or_none(location, None)
        return None if table is None else (str(table.metadata().id), table.version())

    def history(self, location: str, *, limit: int | None = None) -> tuple[CommitRecord, ...]:
        """Commits, newest first."""
        table = self.open(location)
        with translated(location):
            return tuple(_record(entry) for entry in table.history(limit))

    def transaction(self, location: str, app_id: str) -> int | None:
        """The last transaction a writer recorded in the table."""
        table = self.open_or_none(location, None)
        if table is None:
            return None
        with translated(location):
            return table.transaction_version(app_id)

    def count(self, location: str) -> int:
        """The rows of a table, counted by reading it."""
        from deltalake import QueryBuilder

        table = self.open(location)
        with translated(location):
            query = QueryBuilder().register("t", table).execute("SELECT count(*) AS n FROM t")
            return int(arrow_table(query).column("n")[0].as_py())

    def holds_rows(self, location: str) -> bool:
        """Whether a table has a row, found by reading one."""
        import pyarrow as pa
        from deltalake import QueryBuilder

        table = self.open(location)
        with translated(location):
            query = QueryBuilder().register("t", table).execute("SELECT * FROM t LIMIT 1")
            return bool(pa.table(query.read_all()).num_rows)

    def open(self, location: str, version: int | None = None) -> DeltaTable:
        """The table itself, its log looked at first."""
        from deltalake import DeltaTable

        check_log(location)
        options = table_options(self.stores, location)
        with translated(location):
            try:
                return DeltaTable(location, version=version, storage_options=options or None)
            except OverflowError:
                raise VersionNotFound(f'"{location}" has no version {version}') from None

    def open_or_none(self, location: str, version: int | None = None) -> DeltaTable | None:
        """The table itself; None when no table is there."""
        try:
            return self.open(location, version)
        except TableNotFound:
            return None
        except VersionNotFound as error:
            latest = self.open(location).version()
            oldest = min((file.version for file in commit_files(location, self.stores)), default=0)
            raise VersionNotFound(
                f'"{location}" has no version {version}',
                hint=f"its versions go from {oldest} to {latest}",
            ) from error


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


def _record(entry: dict[str, Any]) -> CommitRecord:
    return CommitRecord(
        version=int(entry["version"]),
        timestamp_ms=int(entry.get("timestamp") or 0),
        operation=str(entry.get("operation") or ""),
        metrics=dict(entry.get("operationMetrics") or {}),
        user_metadata=parse_user_metadata(entry.get("userMetadata")),
    )


def parse_user_metadata(text: object) -> dict[str, Any]:
    """Our note in a commit; empty for anybody else's."""
    try:
        value = json.loads(text) if isinstance(text, str) else {}
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
