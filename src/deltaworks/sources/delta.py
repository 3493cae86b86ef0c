"""Read a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.clock import parse_timestamp
from deltaworks.connectors.delta.source import TableSource
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.timestamp import Moment
from deltaworks.model.batch import VERSION, Bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.read.delta_increments import OnChange


class DeltaSource(TableSource):
    """A Delta table as it is now, or as it was."""

    example: ClassVar[Example] = {"table": "orders"}

    version_as_of: int | None = None
    """Read this version."""
    timestamp_as_of: Moment | None = None
    """Read the version of this timestamp, such as `2026-01-31T12:00:00Z`; UTC without a zone."""

    incremental: bool = False
    """Read only rows added since the last batch."""
    skip_change_commits: bool = False
    """When incremental: leave out commits that changed or deleted rows."""
    ignore_changes: bool = False
    """When incremental: read the files such commits wrote, rows that did not change included."""
    ignore_deletes: bool = False
    """When incremental: leave out commits that only deleted rows."""

    def problems(self) -> tuple[str, ...]:
        found = self.place_problems()
        switches = ("skip_change_commits", "ignore_changes", "ignore_deletes")
        if not self.incremental:
            given = [name for name in switches if getattr(self, name)]
            found.extend(f'"{name}" needs "incremental: true"' for name in given)
        elif self.version_as_of is not None or self.timestamp_as_of is not None:
            found.append('"incremental" reads up to the latest version; leave the "..._as_of" out')
        if self.skip_change_commits and self.ignore_changes:
            found.append('"skip_change_commits" and "ignore_changes" exclude each other')
        if self.version_as_of is not None and self.timestamp_as_of is not None:
            found.append('"version_as_of" and "timestamp_as_of" exclude each other')
        return tuple(found)

    def reads_increments(self) -> bool:
        return self.incremental

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        found = self.info(project_ctx, self._version(project_ctx))
        if not self.incremental:
            position = {"version": found.version, "rows": found.rows}
            return Bounds(kind=VERSION, identity=found.table_id, position=position)
        position = {**self.position(project_ctx, found.version), "rows": found.rows}
        if since is not None and since.kind == VERSION:
            last = self.last_read(project_ctx, since, found)
            self.refuse_lost_history(project_ctx, last, found.version)
            switched = self.skip_change_commits or self.ignore_changes
            self.refuse_set_back(project_ctx, last, found.version, replaced=not switched)
            position |= {"rows": None, "since_version": last}
        return Bounds(kind=VERSION, identity=found.table_id, position=position)

    def _version(self, project_ctx: ProjectContext) -> int | None:
        from deltaworks.engines.deltars.log.commits import version_at

        if self.timestamp_as_of is None:
            return self.version_as_of
        self.info(project_ctx)
        return version_at(
            self.location(project_ctx), parse_timestamp(self.timestamp_as_of), project_ctx.stores
        )

    def rows(self, project_ctx: ProjectContext, bounds: Bounds) -> int | None:
        rows: int | None = bounds.position["rows"]
        return rows

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.delta.tables import SparkEngine
        from deltaworks.engines.spark.read.delta_increments import ChangePolicy, added_rows

        location, version = self.location(ctx.project_ctx), bounds.position["version"]
        since = bounds.position.get("since_version")
        if since is None:
            return SparkEngine(ctx.spark).read(location, version=version)
        policy = ChangePolicy(on_change=self._on_change(), ignore_deletes=self.ignore_deletes)
        return added_rows(ctx.spark, location, since=since, until=version, policy=policy)

    def _on_change(self) -> OnChange:
        if self.skip_change_commits:
            return "leave_out"
        return "reread" if self.ignore_changes else "refuse"
