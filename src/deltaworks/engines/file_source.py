"""What all sources of files have in common: a path, and which files are new."""

from __future__ import annotations

from dataclasses import replace

from pydantic import Field

from deltaworks.clock import parse_moment
from deltaworks.contracts.context import Site
from deltaworks.contracts.plugin import TextMap
from deltaworks.contracts.source import Source
from deltaworks.engines.files import changed_file, file_bounds, newer_files
from deltaworks.model.batch import Bounds


class FileSource(Source):
    """Files at a path, folder or glob."""

    path: str
    """A file, a folder, or a glob such as `data/orders_*.csv`."""
    incremental: bool = False
    """Read only files that are new or changed since the last batch."""
    options: TextMap = Field(default_factory=dict)
    """Further options, handed to Spark's reader as they are."""

    def reads_increments(self) -> bool:
        return self.incremental

    def bounds(self, site: Site, since: Bounds | None) -> Bounds:
        now = file_bounds(site.path(self.path), written=self.path)
        return now if since is None else newer_files(now, since)

    def start_at(self, site: Site, point: str) -> Bounds | None:
        start_ns = int(parse_moment(point).timestamp() * 1e9)
        now = file_bounds(site.path(self.path), written=self.path)
        older = tuple(stamp for stamp in now.files if stamp.modified_ns < start_ns)
        return replace(now, files=older)

    def still_there(self, site: Site, bounds: Bounds) -> str:
        return changed_file(bounds)
