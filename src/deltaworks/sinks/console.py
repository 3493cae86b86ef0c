"""Show rows on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.contracts.plugin import Example, Names
from deltaworks.contracts.sink import Sink
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.results import OutputPlan
from deltaworks.model.table_ref import TableRef

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ConsoleSink(Sink):
    """The first rows as a table on the screen; nothing is kept of them."""

    example: ClassVar[Example] = {"limit": 10, "columns": ["id", "name"]}
    is_persistent: ClassVar[bool] = False

    limit: int = Field(default=20, ge=1)
    """How many rows are shown."""
    columns: Names = ()
    """Columns to show; all when left out."""

    def problems(self) -> tuple[str, ...]:
        if self.on_failure == "park":
            return ('"on_failure: park" is for sinks that keep rows',)
        return ()

    def target(self, project_ctx: ProjectContext) -> TableRef:
        return TableRef("console", "console:")

    def state(self, project_ctx: ProjectContext, app_id: str) -> SinkState:
        return SinkState(identity="", exists=False)

    def needs_cached_input(self) -> bool:
        return True

    def accepts_late_rows(self) -> bool:
        return True

    def verify(self, ctx: RunContext, frame: DataFrame) -> None:
        self._require(frame)

    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        from deltaworks.engines.spark.frames.json_rows import first_rows

        self._require(frame)
        rows = frame.count()  # all of them, so that every step is carried out and counted
        shown = first_rows(frame, self.columns or tuple(frame.columns), most=self.limit)
        note = f"{len(shown.rows):,} of {rows:,} rows shown"
        return CommitInfo(committed=False, rows_inserted=0, note=note, shown=shown)

    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        self._require(frame)
        rows = min(frame.count(), self.limit)
        return OutputPlan(
            sink=self.name or self.own_name(),
            path="console",
            rows_to_insert=0,
            note=f"would show {rows:,} rows",
        )

    def _require(self, frame: DataFrame) -> None:
        from deltaworks.engines.spark.frames.columns import require_columns

        require_columns(frame, self.columns, where="columns", nested=False)
