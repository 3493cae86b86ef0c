"""Tables through delta-rs: what must answer at once, without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.errors import not_found, translated
from deltaworks.engines.deltars.log.commits import check_log, commit_files, opened, refuse_disputed
from deltaworks.engines.deltars.schemas import arrow_table
from deltaworks.engines.deltars.snapshot import TableSnapshot
from deltaworks.errors import (
    EngineError,
    TableNotFound,
    UnsupportedOperation,
    VersionNotFound,
)
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.model.table_ref import is_url
from deltaworks.storage.engine_options import table_options

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from deltaworks.engines.deltars.log.soundness import SoundLog


class DeltaRsEngine:
    """Reads logs; satisfies `CanInspect` and knows the writers' transactions."""

    def __init__(self, stores: Stores = NO_STORES, *, only_sure: bool = False) -> None:
        self.stores = stores
        self._only_sure = only_sure
        """Whether tables are refused of which Spark may read other rows."""

    def look(self, location: str) -> TableSnapshot | None:
        """The table as it is now, to be asked several things; None when no table is there."""
        if is_url(location):
            from deltaworks.engines.deltars.log.object_tail import object_log
            from deltaworks.engines.deltars.snapshot_cache import bucket_snapshot

            if (log := object_log(location, self.stores)) is not None:
                found = bucket_snapshot(log, lambda version: self.open_or_none(location, version))
                if found is not None:
                    found.stores = self.stores
                return found
        return self._look(location, None)

    def info(self, location: str, *, version: int | None = None) -> TableInfo | None:
        """The table at a version; None when no table is there."""
        look = self.look(location) if version is None else self._look(location, version)
        return None if look is None else look.info()

    def identity(self, location: str) -> tuple[str, int] | None:
        """Table id and latest version, the cheapest look there is; None when no table is there."""
        look = self.look(location)
        return None if look is None else (look.table_id, look.version)

    def history(
        self, location: str, *, limit: int | None = None, after: int = -1
    ) -> tuple[CommitRecord, ...]:
        """Commits, newest first; those after a version, if one is given."""
        look = self.look(location)
        if look is None:
            raise not_found(location)
        return look.history(limit, after=after)

    def transaction(self, location: str, app_id: str) -> int | None:
        """The last transaction a writer recorded in the table."""
        look = self.look(location)
        return None if look is None else look.transaction(app_id)

    def count(self, location: str) -> int:
        """The rows of a table, counted by reading it."""
        from deltalake import QueryBuilder

        table = self._undisputed(location)
        with translated(location):
            query = QueryBuilder().register("t", table).execute("SELECT count(*) AS n FROM t")
            return int(arrow_table(query).column("n")[0].as_py())

    def holds_rows(self, location: str) -> bool:
        """Whether a table has a row, found by reading one."""
        import pyarrow as pa
        from deltalake import QueryBuilder

        table = self._undisputed(location)
        with translated(location):
            query = QueryBuilder().register("t", table).execute("SELECT * FROM t LIMIT 1")
            return bool(pa.table(query.read_all()).num_rows)

    def open(self, location: str, version: int | None = None) -> DeltaTable:
        """The table itself, its log looked at first."""
        return self._opened(location, version)[0]

    def _opened(self, location: str, version: int | None) -> tuple[DeltaTable, SoundLog | None]:
        table, log = opened(location, version, table_options(self.stores, location))
        if self._only_sure:
            refuse_disputed(location, log)
        return table, log

    def _undisputed(self, location: str) -> DeltaTable:
        """The table itself, where both engines would read the same rows of it."""
        table, log = self._opened(location, None)
        refuse_disputed(location, log)
        return table

    def _look(self, location: str, version: int | None) -> TableSnapshot | None:
        """The table at a version or as it is now, opened and its log known."""
        try:
            table, log = self._opened(location, version)
        except TableNotFound:
            return None
        except VersionNotFound as error:
            raise self._no_version(location, version) from error
        except EngineError as error:
            is_strange = type(error) in (EngineError, UnsupportedOperation)  # to delta-rs alone
            log = check_log(location, version) if is_strange and not self._only_sure else None
            if log is None:
                raise
            return TableSnapshot.by_log(log, error)
        return TableSnapshot.at(
            location, table, log=log, is_latest=version is None, stores=self.stores
        )

    def open_or_none(self, location: str, version: int | None = None) -> DeltaTable | None:
        """The table itself; None when no table is there."""
        try:
            return self.open(location, version)
        except TableNotFound:
            return None
        except VersionNotFound as error:
            raise self._no_version(location, version) from error

    def _no_version(self, location: str, version: int | None) -> VersionNotFound:
        table, log = self._opened(location, None)
        files = commit_files(location, self.stores) if log is None else ()
        oldest = min((file.version for file in files), default=0) if log is None else log.oldest
        return VersionNotFound(
            f'"{location}" has no version {version}',
            hint=f"its versions go from {oldest} to {table.version()}",
        )
