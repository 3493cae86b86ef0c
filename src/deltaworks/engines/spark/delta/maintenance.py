"""Keep a table's files in order: join small ones, sort them, remove those nobody needs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.layout import USER_METADATA
from deltaworks.engines.spark.delta.tables import table_sql
from deltaworks.engines.spark.frames.columns import quoted
from deltaworks.engines.spark.session.conf import temporary_conf
from deltaworks.model.results import MaintenanceResult
from deltaworks.model.table_properties import FILE_RETENTION, interval
from deltaworks.storage.durability import make_durable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIN_KEPT = timedelta(days=7)
_LOGGING = "spark.databricks.delta.vacuum.logging.enabled"


def optimize(
    spark: SparkSession,
    location: str,
    *,
    z_order: Sequence[str],
    user_metadata: str,
    stores: Stores = NO_STORES,
) -> MaintenanceResult:
    """Join small files; with columns, also bring rows together that are alike in them."""
    order = f" ZORDER BY ({', '.join(quoted(name) for name in z_order)})" if z_order else ""
    with temporary_conf(spark, {USER_METADATA: user_metadata}):
        answer = spark.sql(f"OPTIMIZE {table_sql(location)}{order}").collect()
    metrics = answer[0]["metrics"]
    found = DeltaRsEngine(stores).identity(location)
    if found is not None:  # before a vacuum removes the files that these stand for
        make_durable(location, found[1])
    return MaintenanceResult(
        operation="z-order" if z_order else "optimize",
        version=found[1] if found and metrics["numFilesRemoved"] else None,
        files_added=metrics["numFilesAdded"],
        files_removed=metrics["numFilesRemoved"],
    )


def vacuum(
    spark: SparkSession, location: str, *, user_metadata: str, stores: Stores = NO_STORES
) -> MaintenanceResult:
    """Remove files that no version needs which the table promises to keep."""
    log = DeltaRsEngine(stores)
    table = log.info(location)
    properties = table.properties if table else {}
    kept = interval(properties, FILE_RETENTION, default=MIN_KEPT)
    if kept is None or kept < MIN_KEPT:
        return MaintenanceResult(
            operation="vacuum",
            note=f"{FILE_RETENTION} is below 7 days, and readers may need the files that long",
        )
    with temporary_conf(spark, {USER_METADATA: user_metadata, _LOGGING: "true"}):
        spark.sql(f"VACUUM {table_sql(location)}").collect()
    ended = log.history(location, limit=1)[0]
    return MaintenanceResult(
        operation="vacuum",
        version=ended.version,
        files_added=0,
        files_removed=int(str(ended.metrics["numDeletedFiles"])),
    )
