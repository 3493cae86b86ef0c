"""What all sinks of databases have in common: a table that takes batches as a whole, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from deltaworks.connectors.databases.dialect import named_place
from deltaworks.connectors.databases.options import DatabaseOptions
from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.contracts.plugin import Names
from deltaworks.contracts.sink import Sink
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.results import OutputPlan
from deltaworks.model.table_ref import TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.connectors.databases.staged_write import DatabaseTable


class DatabaseSink(DatabaseOptions, Sink):
    """A table of a database; each batch is staged beside it and moved in by one transaction."""

    table: str
    """The table, with its schema where it has one; it is made where there is none."""
    mode: Literal["append", "overwrite", "upsert"] = "append"
    """Add rows, replace all rows but not the table, or update and insert by key."""
    merge_keys: Names = ()
    """Columns that identify a row, for upsert; the table has a unique index on them."""

    def problems(self) -> tuple[str, ...]:
        found = self.option_problems()
        if self.mode == "upsert" and not self.merge_keys:
            found.append('mode "upsert" needs "merge_keys"')
        if self.mode != "upsert" and self.merge_keys:
            found.append(f'"merge_keys" belongs to mode "upsert", not "{self.mode}"')
        return tuple(found)

    def own_name(self) -> str:
        return self.table

    def target(self, project_ctx: ProjectContext) -> TableRef:
        place = self.host or self.credential
        return TableRef(self.table, f"{self.plugin_type()}://{place}/{self.database}/{self.table}")

    def is_append(self) -> bool:
        return self.mode == "append"

    def adds_each_row(self) -> bool:
        return self.mode == "append"

    def accepts_late_rows(self) -> bool:
        return self.mode != "overwrite"

    def state(self, project_ctx: ProjectContext, app_id: str) -> SinkState:
        return self._table(project_ctx).state(app_id)

    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        table = self._table(ctx.project_ctx)
        return table.land(frame, batch.txn, replace=batch.replace, confirm=batch.confirm)

    def verify(self, ctx: RunContext, frame: DataFrame) -> None:
        self._table(ctx.project_ctx).fit(frame)

    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        exists = self._table(ctx.project_ctx).fit(frame)
        known = not exists or self.mode != "upsert"
        return OutputPlan(
            sink=self.name or self.own_name(),
            path=self.table,
            exists=exists,
            rows_to_insert=frame.count() if known else None,
            note=f"mode {self.mode}",
        )

    def _table(self, project_ctx: ProjectContext) -> DatabaseTable:
        from deltaworks.connectors.databases.staged_write import DatabaseTable

        return DatabaseTable(
            server=self.server,
            address=self.address(project_ctx),
            place=named_place(self.table),
            mode=self.mode,
            keys=self.merge_keys,
        )
