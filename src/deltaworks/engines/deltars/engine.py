"""Tables through delta-rs: what must answer at once, without a JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.engines.deltars.arrow import arrow_table
from deltaworks.engines.deltars.errors import not_found, translated
from deltaworks.engines.deltars.log import commit_files, open_table
from deltaworks.engines.deltars.look import Look
from deltaworks.engines.object_stores import table_options
from deltaworks.errors import TableNotFound, VersionNotFound
from deltaworks.model.table_info import CommitRecord, TableInfo
from deltaworks.model.table_ref import is_url

if TYPE_CHECKING:
    from deltalake import DeltaTable


class DeltaRsEngine:
    """Reads logs; satisfies `CanInspect` and knows the writers' transactions."""

    def __init__(self, stores: Stores = NO_STORES) -> None:
        self.stores = stores

    def look(self, location: str) -> Look | None:
        """The table as it is now, to be asked several things; None when no table is there."""
        if is_url(location):
            from deltaworks.engines.deltars.object_log import object_log
            from deltaworks.engines.deltars.object_looks import look_into_bucket

            if (log := object_log(location, self.stores)) is not None:
                return look_into_bucket(log, lambda version: self.open_or_none(location, version))
        table = self.open_or_none(location)
        return None if table is None else Look.at(location, table)

    def info(self, location: str, *, version: int | None = None) -> TableInfo | None:
        """The table at a version; None when no table is there."""
        if version is None:
            look = self.look(location)
        else:
            table = self.open_or_none(location, version)
            look = None if table is None else Look.at(location, table)
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
        try:
            return open_table(location, version, table_options(self.stores, location))
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
