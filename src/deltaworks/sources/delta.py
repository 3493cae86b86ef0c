"""Read a Delta table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import field_validator

from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.source import Source
from deltaworks.errors import DeltaworksError, TableNotFound
from deltaworks.model.batch import VERSION, Bounds
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import table_name_problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class DeltaSource(Source):
    """A Delta table as it is now, or as it was."""

    table: str = ""
    """The table's name in the warehouse."""
    path: str = ""
    """The table's folder, instead of a name."""
    version_as_of: int | None = None
    """Read this version."""
    timestamp_as_of: str | None = None
    """Read the version of this moment, such as `2026-01-31T12:00:00Z`; UTC when no zone is said."""

    def problems(self) -> tuple[str, ...]:
        found = []
        if bool(self.table) == bool(self.path):
            found.append('say either "table" or "path"')
        if self.table and (problem := table_name_problem(self.table)):
            found.append(problem)
        if self.version_as_of is not None and self.timestamp_as_of is not None:
            found.append('"version_as_of" and "timestamp_as_of" exclude each other')
        return tuple(found)

    @field_validator("timestamp_as_of")
    @classmethod
    def _a_moment(cls, text: str | None) -> str | None:
        if text is not None:
            _moment(text)
        return text

    def bounds(self, site: Site, since: Bounds | None) -> Bounds:
        found = self._info(site, self._version(site))
        return Bounds(
            kind=VERSION,
            identity=found.table_id,
            position={"version": found.version, "rows": found.rows},
        )

    def _version(self, site: Site) -> int | None:
        from deltaworks.engines.deltars.log import version_at

        if self.timestamp_as_of is None:
            return self.version_as_of
        self._info(site, None)
        location = self._location(site)
        return version_at(location, _moment(self.timestamp_as_of))

    def _location(self, site: Site) -> str:
        return site.table(table=self.table, path=self.path).location

    def _info(self, site: Site, version: int | None) -> TableInfo:
        from deltaworks.engines.deltars.engine import DeltaRsEngine

        found = DeltaRsEngine().info(self._location(site), version=version)
        if found is None:
            raise TableNotFound(
                f'"{self.table or self.path}" is not a Delta table',
                hint=f"looked in {self._location(site)}; run the pipeline that makes it first",
            )
        return found

    def still_there(self, site: Site, bounds: Bounds) -> str:
        try:
            found = self._info(site, bounds.position["version"])
        except DeltaworksError as problem:
            return problem.message
        return "" if found.table_id == bounds.identity else "it is another table now"

    def rows(self, site: Site, bounds: Bounds) -> int | None:
        rows: int | None = bounds.position["rows"]
        return rows

    def tables_read(self, site: Site) -> tuple[str, ...]:
        return (self._location(site),)

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.engine import SparkEngine

        location = self._location(ctx.site)
        return SparkEngine(ctx.spark).read(location, version=bounds.position["version"])


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f'"{text}" is not a moment; write it as 2026-01-31T12:00:00Z') from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
