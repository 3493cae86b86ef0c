"""Read what changed in a Delta table."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from deltaworks.clock import parse_timestamp
from deltaworks.connectors.delta.source import TableSource
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.plugin import Example
from deltaworks.contracts.timestamp import Moment
from deltaworks.errors import InputError, VersionNotFound
from deltaworks.model.batch import VERSION, Bounds
from deltaworks.model.table_properties import FEED, is_on

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENDS = ("starting", "ending")


class DeltaChangesSource(TableSource):
    """The change feed of a Delta table: each row with `_change_type`, version and time.

    Between two versions or moments, both included; or, when incremental, since the last batch.
    """

    example: ClassVar[Example] = {"table": "orders", "starting_version": 0}

    starting_version: int | None = None
    """The first version whose changes are read."""
    ending_version: int | None = None
    """The last version whose changes are read; the latest when left out."""
    starting_timestamp: Moment | None = None
    """The timestamp from which changes are read, such as `2026-01-31T12:00:00Z`."""
    ending_timestamp: Moment | None = None
    """The timestamp up to which changes are read."""
    incremental: bool = False
    """Read what changed since the last batch; the first one reads the table, each row an insert."""

    def problems(self) -> tuple[str, ...]:
        found = self.place_problems()
        for end in _ENDS:
            version, moment = f"{end}_version", f"{end}_timestamp"
            if getattr(self, version) is not None and getattr(self, moment) is not None:
                found.append(f'"{version}" and "{moment}" exclude each other')
        starts = self.starting_version is not None or self.starting_timestamp is not None
        ends = self.ending_version is not None or self.ending_timestamp is not None
        if not starts and not self.incremental:
            found.append('say "starting_version" or "starting_timestamp", or "incremental: true"')
        if ends and self.incremental:
            found.append('"incremental" reads up to the latest version; leave the "ending_..." out')
        first, last = self.starting_version, self.ending_version
        if first is not None and last is not None and first > last:
            found.append('"starting_version" lies after "ending_version"')
        return tuple(found)

    def reads_increments(self) -> bool:
        return self.incremental

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        latest = self.info(project_ctx)
        last = self._last(project_ctx, latest.version)
        if since is not None and since.kind == VERSION:
            before: int | None = self.last_read(project_ctx, since, latest)
        else:
            before = self._before(project_ctx, latest.version)
        position = self.position(project_ctx, last) if self.incremental else {"version": last}
        if before is not None:
            position["since_version"] = before
            self._refuse_what_is_not_kept(project_ctx, before, last, latest.version)
        return Bounds(kind=VERSION, identity=latest.table_id, position=position)

    def _before(self, project_ctx: ProjectContext, latest: int) -> int | None:
        """The version before the first whose changes are read; None to read the table itself."""
        from deltaworks.engines.deltars.log.commits import version_from

        if self.starting_timestamp is not None:
            moment = parse_timestamp(self.starting_timestamp)
            return version_from(self.location(project_ctx), moment, project_ctx.stores) - 1
        if self.starting_version is None:
            return None
        self._refuse_beyond("starting_version", self.starting_version, latest)
        return self.starting_version - 1

    def _last(self, project_ctx: ProjectContext, latest: int) -> int:
        from deltaworks.engines.deltars.log.commits import version_at

        if self.ending_timestamp is not None:
            return version_at(
                self.location(project_ctx),
                parse_timestamp(self.ending_timestamp),
                project_ctx.stores,
            )
        if self.ending_version is None:
            return latest
        self._refuse_beyond("ending_version", self.ending_version, latest)
        return self.ending_version

    def _refuse_beyond(self, option: str, version: int, latest: int) -> None:
        if not 0 <= version <= latest:
            raise VersionNotFound(
                f'{option}: "{self.table or self.path}" has no version {version}',
                hint=f"its versions go from 0 to {latest}",
            )

    def _refuse_what_is_not_kept(
        self, project_ctx: ProjectContext, before: int, last: int, latest: int
    ) -> None:
        """Changes are told by every commit in between, and only while the feed was on."""
        label = self.table or self.path
        if before > last and not self.incremental:
            raise InputError(
                f'"{label}": the start of the changes lies after their end',
                hint=f"the start is version {before + 1}, the end version {last}",
            )
        self.refuse_lost_history(project_ctx, before, latest)
        if before == last:
            return
        for version in (before + 1, last):
            if not is_on(self.info(project_ctx, version).properties, FEED):
                raise InputError(
                    f'"{label}" kept no feed of its changes at version {version}',
                    hint="say `change_feed: true` where it is written, and start at a version "
                    "after that; changes made before cannot be determined",
                )

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        from deltaworks.engines.spark.read.delta_change_feed import (
            changes_between,
            table_as_inserts,
        )

        location, version = self.location(ctx.project_ctx), bounds.position["version"]
        before = bounds.position.get("since_version")
        if before is None or before == version:  # Spark refuses a range without a version
            rows = table_as_inserts(
                ctx.spark, location, version=version, stores=ctx.project_ctx.stores
            )
            return rows if before is None else rows.limit(0)
        return changes_between(ctx.spark, location, first=before + 1, last=version)
