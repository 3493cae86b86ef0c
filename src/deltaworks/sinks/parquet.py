"""Write Parquet files."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field

from deltaworks.contracts.context import BatchWrite, RunContext, Site
from deltaworks.contracts.plugin import Example, Names, TextMap
from deltaworks.contracts.sink import Sink
from deltaworks.errors import InputError
from deltaworks.model.commit import CommitInfo, SinkState
from deltaworks.model.results import OutputPlan
from deltaworks.model.table_ref import TableRef, is_url

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from deltaworks.engines.spark.folder import FolderWriter


class ParquetSink(Sink):
    """A folder of Parquet files, staged and then moved into place."""

    example: ClassVar[Example] = {"path": "out", "partition_by": ["name"]}

    path: str
    """The folder to write."""
    mode: Literal["append", "overwrite", "error"] = "error"
    """Add files, replace the folder, or refuse a folder that exists."""
    partition_by: Names = ()
    """Columns whose values become folders."""
    compression: Literal["snappy", "zstd", "gzip", "lz4", "none"] = "zstd"
    """How the files are compressed."""
    options: TextMap = Field(default_factory=dict)
    """Further options, handed to Spark's writer as they are."""

    def problems(self) -> tuple[str, ...]:
        return ("object stores come with a later release",) if is_url(self.path) else ()

    def own_name(self) -> str:
        return self.path

    def target(self, site: Site) -> TableRef:
        return TableRef(self.path, site.path(self.path))

    def lock_path(self, site: Site) -> str:
        return site.path(self.path)

    def adds_on_rerun(self) -> bool:
        return self.mode == "append"

    def state(self, site: Site, app_id: str) -> SinkState:
        return self._writer(site).state(app_id)

    def write(self, ctx: RunContext, frame: DataFrame, batch: BatchWrite) -> CommitInfo:
        from deltaworks.engines.spark.columns import require_columns

        require_columns(frame, self.partition_by, where="partition_by", nested=False)
        if self.state(ctx.site, batch.txn.app_id).txn_version != batch.txn.version:
            self._refuse_existing(ctx.site)
        replace = self.mode == "overwrite" or batch.replace
        writer = self._writer(ctx.site)
        return writer.write(frame, batch.txn, replace=replace, partition_by=self.partition_by)

    def plan(self, ctx: RunContext, frame: DataFrame) -> OutputPlan:
        from deltaworks.engines.spark.columns import require_columns

        require_columns(frame, self.partition_by, where="partition_by", nested=False)
        self._refuse_existing(ctx.site)
        return OutputPlan(
            sink=self.name or self.own_name(),
            path=self.path,
            exists=self.state(ctx.site, "").exists,
            rows_to_insert=frame.count(),
        )

    def _refuse_existing(self, site: Site) -> None:
        if self.mode == "error" and self.state(site, "").exists:
            raise InputError(
                f'folder "{self.path}" exists already, and the mode is "error"',
                hint="use mode append or overwrite, or another folder",
            )

    def _writer(self, site: Site) -> FolderWriter:
        from deltaworks.engines.spark.folder import FolderWriter

        options = {"compression": self.compression, **self.options}
        return FolderWriter(site.path(self.path), file_format="parquet", options=options)
