"""What all sinks of files have in common: a folder, staged beside its place and moved in."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.plugin import Names, TextMap
from deltaworks.contracts.sink import Sink
from deltaworks.errors import InputError
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.results import OutputPlan
from deltaworks.model.table_ref import TableRef, is_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.write.folder import FolderWriter

EXACT_TEXT_TIMES = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Options for formats of text: Spark's own cut microseconds off."""


class FolderSink(NeedsCredential, Sink):
    """A folder of files, staged and then moved into place."""

    writes_to: ClassVar[Literal["table", "files", "external"]] = "files"
    columns_by_place: ClassVar[bool] = False
    """Whether a reader of the files knows columns by their place, not by their name."""

    path: str
    """The folder to write."""
    mode: Literal["append", "overwrite", "error"] = "error"
    """Add files, replace the folder, or refuse a folder that exists."""
    partition_by: Names = ()
    """Columns whose values become folders."""
    options: TextMap = Field(default_factory=dict)
    """Further options, handed to Spark's writer as they are."""

    @abstractmethod
    def writer_options(self) -> dict[str, str]:
        """What Spark's writer of this format is told."""

    def refuse_columns(self, frame: DataFrame) -> None:
        """Raise when the format cannot hold the columns so that they could be read again."""
        return

    def own_name(self) -> str:
        return self.path

    def target(self, project_ctx: ProjectContext) -> TableRef:
        return TableRef(self.path, project_ctx.path(self.path))

    def lock_path(self, project_ctx: ProjectContext) -> str:
        return project_ctx.path(self.path)

    def is_append(self) -> bool:
        return self.mode == "append"

    def state(self, project_ctx: ProjectContext, app_id: str) -> SinkState:
        return self._writer(project_ctx).state(app_id)

    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        self._require(frame)
        if self.state(ctx.project_ctx, batch.txn.app_id).txn_version != batch.txn.version:
            self._refuse_existing(ctx.project_ctx)
        replace = self.mode == "overwrite" or batch.replace
        writer = self._writer(ctx.project_ctx)
        return writer.write(
            frame,
            batch.txn,
            replace=replace,
            partition_by=self.partition_by,
            confirm=batch.confirm,
        )

    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        self._require(frame)
        self._refuse_existing(ctx.project_ctx)
        self._refuse_foreign(ctx.project_ctx)
        return OutputPlan(
            sink=self.name or self.own_name(),
            path=self.path,
            exists=self.state(ctx.project_ctx, "").exists,
            rows_to_insert=frame.count(),
        )

    def verify(self, ctx: RunContext, frame: DataFrame) -> None:
        self._require(frame)
        self._refuse_existing(ctx.project_ctx)
        self._refuse_foreign(ctx.project_ctx)

    def _require(self, frame: DataFrame) -> None:
        from deltaworks.engines.spark.frames.columns import require_columns

        require_columns(frame, self.partition_by, where="partition_by", nested=False)
        self.refuse_columns(frame)

    def _refuse_existing(self, project_ctx: ProjectContext) -> None:
        if self.mode == "error" and self.state(project_ctx, "").exists:
            raise InputError(
                f'folder "{self.path}" exists already, and the mode is "error"',
                hint="use mode append or overwrite, or another folder",
            )

    def _refuse_foreign(self, project_ctx: ProjectContext) -> None:
        writer = self._writer(project_ctx)
        writer.refuse_foreign(writer.manifest(), replace=self.mode == "overwrite")

    def _writer(self, project_ctx: ProjectContext) -> FolderWriter:
        from deltaworks.engines.spark.write.folder_local import LocalFolder
        from deltaworks.engines.spark.write.folder_objects import ObjectFolder

        folder = project_ctx.path(self.path)
        how: Any = {
            "file_format": self.plugin_type(),
            "options": {**self.writer_options(), **self.options},
            "by_place": self.columns_by_place,
        }
        return (
            ObjectFolder(folder, project_ctx.stores, **how)
            if is_url(folder)
            else LocalFolder(folder, **how)
        )
