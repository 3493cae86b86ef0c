"""Orders for benchmarks: rows of seven columns, a table of them, batches, and what both sides do.

Everything is put on disk by Arrow and delta-rs, so that neither side starts with a warm Spark.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from deltaworks.api import Project
    from deltaworks.pipeline.spec import Pipeline

COUNTRIES = ("NL", "DE", "FR", "BE", "ES", "IT", "PL", "SE")
COLUMNS = ("order_id", "customer_id", "country", "amount", "status", "updated_at", "note")
_FIRST_MOMENT_US = 1_767_225_600_000_000  # 2026-01-01


def orders(ids: Any, *, status: str) -> pa.Table:
    """Rows with these numbers, an array of NumPy."""
    import numpy as np
    import pyarrow as pa

    country = pa.DictionaryArray.from_arrays(ids * 7 % len(COUNTRIES), list(COUNTRIES))
    moments = _FIRST_MOMENT_US + ids % 86_400_000 * 1_000_000
    notes = np.char.add("order number ", (ids % 100_000).astype(str))
    columns = (
        pa.array(ids),
        pa.array(ids * 31 % 50_000),
        country.cast(pa.string()),
        pa.array(ids % 9973 / 100),
        pa.array([status]).take(pa.array(np.zeros(len(ids), dtype="int64"))),
        pa.array(moments).cast(pa.timestamp("us", "UTC")),
        pa.array(notes),
    )
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def make_table(
    place: Path | str,
    rows: int,
    *,
    files: int = 20,
    storage_options: dict[str, str] | None = None,
) -> None:
    """A table of so many orders, sorted by number, in so many files."""
    import numpy as np
    from deltalake import write_deltalake

    edges = np.linspace(0, rows, files + 1).astype("int64")
    for start, end in pairwise(edges):
        part = orders(np.arange(start, end), status="open")
        write_deltalake(str(place), part, mode="append", storage_options=storage_options)


def make_batch(place: Path, ids: Any, *, status: str = "paid") -> None:
    """A file of orders."""
    import pyarrow.parquet as pq

    place.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(orders(ids, status=status), place)


def clustered_ids(rows: int, count: int) -> Any:
    """Half of them the table's newest, half of them new."""
    import numpy as np

    return np.arange(rows - count // 2, rows + count // 2)


def random_ids(rows: int, count: int) -> Any:
    """Half of them all over the table, half of them new."""
    import numpy as np

    chosen = np.random.default_rng(7).choice(rows, count // 2, replace=False)
    return np.concatenate([np.sort(chosen), np.arange(rows, rows + count // 2)])


def copy_table(base: Path, place: Path) -> None:
    """The same table elsewhere; data files are shared, for nobody changes them."""
    shutil.copytree(base, place, copy_function=_linked)


def _linked(source: str, target: str) -> None:
    if "_delta_log" in source:
        shutil.copy2(source, target)
    else:
        os.link(source, target)


def upsert(project: Project, batch: Path, table: Path | str, *, name: str, **options: Any) -> None:
    """Our way: a pipeline of a file and a table."""
    from deltaworks.pipeline.spec import Pipeline
    from deltaworks.sinks.delta import DeltaSink
    from deltaworks.sources.parquet import ParquetSource

    asked = {"path": str(table), "mode": "upsert", "merge_keys": ("order_id",), **options}
    sink = DeltaSink.model_validate(asked)
    run(project, Pipeline.build(name, extract=ParquetSource(path=str(batch)), load=sink))


def run(project: Project, pipeline: Pipeline) -> None:
    """Run a pipeline that must succeed."""
    result = project.run(pipeline)
    if result.error is not None:
        raise result.error


def plain_merge(spark: SparkSession, batch: Path, table: Path | str) -> None:
    """What a good engineer writes: one MERGE by key."""
    from delta.tables import DeltaTable

    changes = spark.read.parquet(str(batch))
    target = DeltaTable.forPath(spark, str(table))
    (
        target.alias("t")
        .merge(changes.alias("s"), "t.order_id = s.order_id")
        .whenMatchedUpdateAll()
        .whenNotMatchedInsertAll()
        .execute()
    )


def fingerprint(frame: DataFrame, columns: Sequence[str] = ()) -> str:
    """The number of rows and a hash of them all, whatever their order."""
    from pyspark.sql import functions as F

    names = columns or frame.columns
    row = frame.agg(F.count(F.lit(1)), F.sum(F.hash(*names).cast("long"))).collect()[0]
    return f"{row[0]} rows, hash {row[1]}"


def table_fingerprint(spark: SparkSession, table: Path) -> str:
    """The same for a Delta table."""
    return fingerprint(spark.read.format("delta").load(str(table)), COLUMNS)


def timed(work: Callable[[], object]) -> float:
    """How many seconds it takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
