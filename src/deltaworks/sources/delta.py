"""Read a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import field_validator

from deltaworks.clock import parse_moment
from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.source import Source
from deltaworks.errors import DeltaworksError, GuardError, TableNotFound
from deltaworks.model.batch import VERSION, Bounds
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_ref import table_name_problem

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.increments import OnChange


class DeltaSource(Source):
    """A Delta table as it is now, or as it was."""

    example: ClassVar[Example] = {"table": "orders"}

    table: str = ""
    """The table's name in the warehouse."""
    path: str = ""
    """The table's folder, instead of a name."""
    version_as_of: int | None = None
    """Read this version."""
    timestamp_as_of: str | None = None
    """Read the version of this moment, such as `2026-01-31T12:00:00Z`; UTC when no zone is said."""

    incremental: bool = False
    """Read only rows added since the last batch."""
    skip_change_commits: bool = False
    """When incremental: leave out commits that changed or deleted rows."""
    ignore_changes: bool = False
    """When incremental: read the files such commits wrote, rows that did not change included."""
    ignore_deletes: bool = False
    """When incremental: leave out commits that only deleted rows."""

    def problems(self) -> tuple[str, ...]:
        found: list[str] = []
        switches = ("skip_change_commits", "ignore_changes", "ignore_deletes")
        if not self.incremental:
            given = [name for name in switches if getattr(self, name)]
            found.extend(f'"{name}" needs "incremental: true"' for name in given)
        elif self.version_as_of is not None or self.timestamp_as_of is not None:
            found.append('"incremental" reads up to the latest version; leave the "..._as_of" out')
        if self.skip_change_commits and self.ignore_changes:
            found.append('"skip_change_commits" and "ignore_changes" exclude each other')
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
            parse_moment(text)
        return text

    def reads_increments(self) -> bool:
        return self.incremental

    def bounds(self, site: Site, since: Bounds | None) -> Bounds:
        found = self._info(site, self._version(site))
        position: dict[str, int | None] = {"version": found.version, "rows": found.rows}
        if since is not None and since.identity == found.table_id:
            last = int(since.position["version"])
            self._refuse_lost_history(site, last, found.version)
            position = {"version": found.version, "rows": None, "since_version": last}
        return Bounds(kind=VERSION, identity=found.table_id, position=position)

    def start_at(self, site: Site, point: str) -> Bounds | None:
        from deltaworks.engines.deltars.log import version_at

        found = self._info(site, None)
        if point.isdecimal():
            read = int(point) - 1
        else:
            read = version_at(self._location(site), parse_moment(point))
        if read < 0:
            return None
        return Bounds(kind=VERSION, identity=found.table_id, position={"version": read})

    def _refuse_lost_history(self, site: Site, last: int, latest: int) -> None:
        """What was added since can only be told while every commit since is there."""
        from deltaworks.engines.deltars.log import commit_files

        choices = "load everything anew with --full-refresh"
        label = self.table or self.path
        if latest < last:
            raise GuardError(
                f'"{label}" is at version {latest}, though version {last} was read before',
                hint=f"it was made anew or set back; {choices}",
            )
        kept = [file.version for file in commit_files(self._location(site))]
        if last < latest and kept and kept[0] > last + 1:
            raise GuardError(
                f'the log of "{label}" begins at version {kept[0]}, '
                f"and the last batch read version {last}",
                hint=f"its history was cleaned up; {choices}",
            )

    def _version(self, site: Site) -> int | None:
        from deltaworks.engines.deltars.log import version_at

        if self.timestamp_as_of is None:
            return self.version_as_of
        self._info(site, None)
        location = self._location(site)
        return version_at(location, parse_moment(self.timestamp_as_of))

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
        from deltaworks.engines.spark.increments import ChangePolicy, added_rows

        location, version = self._location(ctx.site), bounds.position["version"]
        since = bounds.position.get("since_version")
        if since is None:
            return SparkEngine(ctx.spark).read(location, version=version)
        policy = ChangePolicy(on_change=self._on_change(), ignore_deletes=self.ignore_deletes)
        return added_rows(ctx.spark, location, since=since, until=version, policy=policy)

    def _on_change(self) -> OnChange:
        if self.skip_change_commits:
            return "leave_out"
        return "reread" if self.ignore_changes else "refuse"
