"""Read Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from deltaworks.contracts.context import RunContext, Site
from deltaworks.contracts.plugin import Example
from deltaworks.engines.file_source import FileSource
from deltaworks.engines.files import spark_paths
from deltaworks.errors import InputError
from deltaworks.model.batch import Bounds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_FOOTERS = 1_000


class ParquetSource(FileSource):
    """Parquet files at a path, folder or glob."""

    example: ClassVar[Example] = {"path": "orders"}

    merge_schema: bool = False
    """Take the columns of all files, not of one."""

    def rows(self, site: Site, bounds: Bounds) -> int | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if len(bounds.files) > _MOST_FOOTERS:
            return None
        try:
            return int(sum(pq.read_metadata(stamp.path).num_rows for stamp in bounds.files))
        except (pa.ArrowException, OSError) as problem:
            bad = next(s.path for s in bounds.files if not _has_footer(s.path))
            raise InputError(
                f'file "{bad}" is not a Parquet file',
                hint="check that it was written completely, or leave it out of the path",
            ) from problem

    def read(self, ctx: RunContext, bounds: Bounds) -> DataFrame:
        reader = ctx.spark.read.option("mergeSchema", str(self.merge_schema).lower())
        folder = Path(bounds.identity)
        if folder.is_dir():
            reader = reader.option("basePath", str(folder))
        return reader.options(**self.options).parquet(*spark_paths(bounds))


def _has_footer(path: str) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        pq.read_metadata(path)
    except (pa.ArrowException, OSError):
        return False
    return True
