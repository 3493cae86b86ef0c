"""What all sources of files have in common: a path, which files are new, where rows are from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from deltaworks.clock import parse_timestamp
from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.expression import SchemaText, TypeText
from deltaworks.contracts.plugin import TextMap
from deltaworks.contracts.source import Source
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds
from deltaworks.model.table_ref import is_url
from deltaworks.storage.hive_partitions import partition_keys
from deltaworks.storage.listing import (
    MissingColumns,
    UnknownColumns,
    changed_file,
    file_bounds,
    found_files,
    here,
    newer_files,
    unreadable_file,
)

if TYPE_CHECKING:
    from deltaworks.engines.spark.read.files import FileRows
    from deltaworks.storage.drift import Drift


class FileSource(NeedsCredential, Source):
    """Files at a path, folder or glob."""

    path: str
    """A file, a folder, or a glob such as `data/orders_*.csv`."""
    incremental: bool = False
    """Read only files that are new or changed since the last batch."""
    partition_types: dict[str, TypeText] = Field(default_factory=dict)
    """Types of columns that come from folders named `key=value`, such as `day: date`."""
    source_file: bool = False
    """Add column `_source_file`, the path of the file that a row is from."""
    ingested_at: bool = False
    """Add column `_ingested_at`, the time of the run that read a row."""
    options: TextMap = Field(default_factory=dict)
    """Further options, handed to Spark's reader as they are."""

    def reads_increments(self) -> bool:
        return self.incremental

    def bounds(self, project_ctx: ProjectContext, since: Bounds | None) -> Bounds:
        now = self._there(project_ctx, was_read=since is not None)
        partition_keys(now)  # all files there are must agree, not only the new ones
        try:
            return newer_files(now, since or replace(now, files=()), project_ctx.root)
        except OSError as problem:
            raise unreadable_file(str(problem.filename), problem) from problem

    def _there(self, project_ctx: ProjectContext, *, was_read: bool = False) -> Bounds:
        """The files there are; an inbox may be empty.

        A bucket has no folders, so there a path is known to be right once files of it were read.
        """
        pattern = project_ctx.path(self.path)
        return file_bounds(
            pattern,
            written=self.path,
            stores=project_ctx.stores,
            root=project_ctx.root,
            may_be_empty=self.incremental and (was_read or not is_url(pattern)),
        )

    def here(self, project_ctx: ProjectContext, bounds: Bounds) -> Bounds:
        return here(bounds, project_ctx.path(self.path), project_ctx.root)

    def files_read(self, project_ctx: ProjectContext) -> tuple[str, ...]:
        return (project_ctx.path(self.path),)

    def probe(self, project_ctx: ProjectContext) -> str:
        return found_files(self.bounds(project_ctx, None), project_ctx.stores)

    def start_at(self, project_ctx: ProjectContext, point: str) -> Bounds | None:
        start_ns = int(parse_timestamp(point).timestamp() * 1e9)
        now = self._there(project_ctx)
        older = tuple(stamp for stamp in now.files if stamp.modified_ns < start_ns)
        return replace(now, files=(), passed=older)

    def still_there(self, project_ctx: ProjectContext, bounds: Bounds) -> str:
        problem = changed_file(bounds, project_ctx.stores)
        return problem and changed_file(self.here(project_ctx, bounds), project_ctx.stores)

    def reader_options(self) -> dict[str, str]:
        """What Spark's reader of this format is told."""
        return {}

    def files(self, ctx: RunContext, bounds: Bounds) -> FileRows:
        """The files within the bounds, for Spark to read."""
        from deltaworks.engines.spark.read.files import FileRows

        if not bounds.files and "schema" not in self.document():
            raise InputError(
                f'there is no new file at "{self.path}", so that nothing tells its columns',
                hint="run it when there is one, or name the columns with `schema`",
            )
        return FileRows(
            spark=ctx.spark,
            file_format=self.plugin_type(),
            bounds=bounds,
            options={**self.reader_options(), **self.options},
            partition_types=self.partition_types,
            source_file=self.source_file,
            ingested_at=ctx.now if self.ingested_at else None,
            stores=ctx.project_ctx.stores,
        )


class DriftingSource(FileSource):
    """Files with columns, at a path, folder or glob."""

    schema_: SchemaText | None = Field(default=None, alias="schema")
    """Columns and types as SQL spells them, such as `id bigint, amount double`."""
    unknown_columns: UnknownColumns = "refuse"
    """Columns that a file has and `schema` lacks: stop, leave them out, or read them as well."""
    missing_columns: MissingColumns = "refuse"
    """Columns of `schema`, or of other files, that a file lacks: stop, or read NULL."""

    def problems(self) -> tuple[str, ...]:
        found = super().problems()
        if self.schema_ is None and "unknown_columns" in self.model_fields_set:
            return (*found, '"unknown_columns" are those outside "schema", which is not there')
        return found

    def finds_columns(self) -> bool:
        return self.schema_ is None or self.unknown_columns == "keep"

    def drift(self) -> Drift:
        """What is done about columns that differ."""
        from deltaworks.storage.drift import Drift

        return Drift(unknown=self.unknown_columns, missing=self.missing_columns)
