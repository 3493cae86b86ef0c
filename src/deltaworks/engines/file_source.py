"""What all sources of files have in common: a path, which files are new, where rows are from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import Field

from deltaworks.clock import parse_moment
from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.plugin import TextMap
from deltaworks.contracts.source import Source
from deltaworks.engines.files import changed_file, file_bounds, found_files, newer_files
from deltaworks.engines.partitions import partition_keys
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from deltaworks.engines.spark.file_rows import FileRows


class FileSource(Source):
    """Files at a path, folder or glob."""

    path: str
    """A file, a folder, or a glob such as `data/orders_*.csv`."""
    incremental: bool = False
    """Read only files that are new or changed since the last batch."""
    partition_types: TextMap = Field(default_factory=dict)
    """Types of columns that come from folders named `key=value`, such as `day: date`."""
    source_file: bool = False
    """Add column `_source_file`, the path of the file that a row is from."""
    ingested_at: bool = False
    """Add column `_ingested_at`, the time of the run that read a row."""
    options: TextMap = Field(default_factory=dict)
    """Further options, handed to Spark's reader as they are."""

    def reads_increments(self) -> bool:
        return self.incremental

    def bounds(self, site: Site, since: Bounds | None) -> Bounds:
        now = file_bounds(site.path(self.path), written=self.path)
        partition_keys(now)  # all files there are must agree, not only the new ones
        return now if since is None else newer_files(now, since)

    def files_read(self, site: Site) -> tuple[str, ...]:
        return (site.path(self.path),)

    def probe(self, site: Site) -> str:
        return found_files(self.bounds(site, None))

    def start_at(self, site: Site, point: str) -> Bounds | None:
        start_ns = int(parse_moment(point).timestamp() * 1e9)
        now = file_bounds(site.path(self.path), written=self.path)
        older = tuple(stamp for stamp in now.files if stamp.modified_ns < start_ns)
        return replace(now, files=older)

    def still_there(self, site: Site, bounds: Bounds) -> str:
        return changed_file(bounds)

    def reader_options(self) -> dict[str, str]:
        """What Spark's reader of this format is told."""
        return {}

    def files(self, ctx: RunContext, bounds: Bounds) -> FileRows:
        """The files within the bounds, for Spark to read."""
        from deltaworks.engines.spark.file_rows import FileRows

        return FileRows(
            spark=ctx.spark,
            file_format=self.plugin_type(),
            bounds=bounds,
            options={**self.reader_options(), **self.options},
            partition_types=self.partition_types,
            source_file=self.source_file,
            ingested_at=ctx.now if self.ingested_at else None,
        )
