"""How a table is laid out: asked for, set, and verified after the write."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from deltaworks.engines.spark.columns import literal, missing_column, quoted
from deltaworks.engines.spark.engine import SparkEngine, table_sql
from deltaworks.errors import EngineError, SchemaMismatch
from deltaworks.model.table_info import TableInfo
from deltaworks.model.write import Layout, Stamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def stamped_session(spark: SparkSession, stamp: Stamp) -> SparkSession:
    """A session of its own for one statement: Delta takes the transaction from its settings."""
    session = spark.newSession()
    session.conf.set(TXN_APP, stamp.txn.app_id)
    session.conf.set(TXN_VERSION, str(stamp.txn.version))
    session.conf.set(USER_METADATA, stamp.user_metadata)
    return session


def check_layout(frame: DataFrame, layout: Layout) -> None:
    """Refuse a partition or cluster column that the rows do not have."""
    known = {name.lower() for name in frame.columns}
    for field, names in (
        ("partition_by", layout.partition_by),
        ("cluster_by", layout.cluster_by),
    ):
        for name in names:
            if name.lower() not in known:
                raise missing_column(name, frame.columns, where=field)


def create_sql(location: str, *, source: str, layout: Layout) -> str:
    """The statement that makes a table together with its first rows."""
    parts = [f"CREATE TABLE {table_sql(location)} USING delta"]
    if layout.partition_by:
        parts.append(f"PARTITIONED BY ({_names(layout.partition_by)})")
    if layout.cluster_by:
        parts.append(f"CLUSTER BY ({_names(layout.cluster_by)})")
    if layout.properties:
        parts.append(f"TBLPROPERTIES ({_properties(layout.properties)})")
    parts.append(f"AS SELECT * FROM {source}")
    return "\n".join(parts)


def _names(columns: Iterable[str]) -> str:
    return ", ".join(quoted(name) for name in columns)


def _properties(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def refuse_other_partitions(table: TableInfo, layout: Layout, *, may_change: bool) -> None:
    """Raise when the pipeline asks for other partitions than the table has."""
    asked = tuple(name.lower() for name in layout.partition_by)
    has = tuple(name.lower() for name in table.partition_columns)
    if not asked or asked == has or may_change:
        return
    raise SchemaMismatch(
        f'table "{table.location}" is partitioned by ({", ".join(table.partition_columns)}), '
        f"the pipeline asks for ({', '.join(layout.partition_by)})",
        hint="rewrite it with `mode: overwrite` and `overwrite_schema: true`, "
        "or ask for what it has",
    )


def changed_properties(table: TableInfo, layout: Layout) -> dict[str, str]:
    """Properties the pipeline asks for that the table does not have."""
    return {
        key: value for key, value in layout.properties.items() if table.properties.get(key) != value
    }


def apply_layout(spark: SparkSession, table: TableInfo, layout: Layout) -> bool:
    """Bring an existing table to what is asked; answers whether a commit was needed."""
    changed = changed_properties(table, layout)
    if changed:
        spark.sql(
            f"ALTER TABLE {table_sql(table.location)} SET TBLPROPERTIES ({_properties(changed)})"
        )
    recluster = layout.cluster_by and _clustering(spark, table) != _lower(layout.cluster_by)
    if recluster:
        spark.sql(
            f"ALTER TABLE {table_sql(table.location)} CLUSTER BY ({_names(layout.cluster_by)})"
        )
    return bool(changed or recluster)


def _clustering(spark: SparkSession, table: TableInfo) -> tuple[str, ...]:
    if "clustering" not in table.features:
        return ()
    found = SparkEngine(spark).info(table.location)
    return _lower(found.clustering_columns) if found else ()


def _lower(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.lower() for name in names)


def verify_layout(spark: SparkSession, table: TableInfo, layout: Layout) -> None:
    """Raise when the table did not become what was asked; silence would be worse."""
    wrong = [f'property "{key}"' for key in changed_properties(table, layout)]
    if layout.partition_by and _lower(table.partition_columns) != _lower(layout.partition_by):
        wrong.append("partition_by")
    if layout.cluster_by and _clustering(spark, table) != _lower(layout.cluster_by):
        wrong.append("cluster_by")
    if wrong:
        raise EngineError(
            f'table "{table.location}" was written, but Delta did not take {", ".join(wrong)}',
            hint="check the spelling against Delta's table properties",
        )
