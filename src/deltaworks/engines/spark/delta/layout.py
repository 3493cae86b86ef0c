"""How a table is laid out: asked for, set, and verified after the write."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from deltaworks.engines.spark.delta.tables import SparkEngine, table_sql
from deltaworks.engines.spark.frames.columns import literal, missing_column, quoted
from deltaworks.errors import EngineError, SchemaMismatch, SpecError, UnsupportedOperation
from deltaworks.model.schema import CLUSTERING, PARTITIONS, PROPERTY, Schema, SchemaChange
from deltaworks.model.table_info import TableInfo
from deltaworks.model.table_properties import MAPPING, maps_columns
from deltaworks.model.write import Layout, Stamp

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TXN_APP = "spark.databricks.delta.write.txnAppId"
TXN_VERSION = "spark.databricks.delta.write.txnVersion"
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
OPTIMIZED_FILE_SIZE = "spark.databricks.delta.optimizeWrite.binSize"
FILE_SIZES = (
    "spark.databricks.delta.autoCompact.maxFileSize",
    "spark.databricks.delta.optimize.maxFileSize",
)
STATS_COLUMNS = "delta.dataSkippingStatsColumns"
_STATS_COUNT = "delta.dataSkippingNumIndexedCols"
_MAX_STATISTICS = 32
_WITH_STATISTICS = (
    *("tinyint", "smallint", "int", "bigint", "float", "double"),
    *("string", "date", "timestamp", "timestamp_ntz"),
)
_FEATURE = "delta.feature."
_PARQUET = "parquet."
_NOT_IN_NAMES = " ,;{}()\n\t="
"""What Delta allows in the name of a column only where files keep columns under other names."""


def stamp_settings(stamp: Stamp) -> dict[str, str]:
    """What a statement's commit carries: Delta takes it from the session."""
    return {
        TXN_APP: stamp.txn.app_id,
        TXN_VERSION: str(stamp.txn.version),
        USER_METADATA: stamp.user_metadata,
    }


def size_settings(layout: Layout) -> dict[str, str]:
    """How files are written: a wanted size, for which Delta has no property, and Parquet's own.

    Parquet's are properties of the table too, which it has only once its first rows are in.
    """
    settings = {k: v for k, v in layout.properties.items() if k.startswith(_PARQUET)}
    if layout.target_file_bytes is None:
        return settings
    size = str(layout.target_file_bytes)
    return {OPTIMIZED_FILE_SIZE: f"{size}b", **dict.fromkeys(FILE_SIZES, size), **settings}


def check_layout(frame: DataFrame, layout: Layout) -> None:
    """Refuse a column to lay the table out by that the rows do not have."""
    known = {name.lower() for name in frame.columns}
    for field, names in (
        ("partition_by", layout.partition_by),
        ("cluster_by", layout.cluster_by),
        ("z_order", layout.z_order),
    ):
        for name in names:
            if name.lower() not in known:
                raise missing_column(name, frame.columns, where=field)
    for name in layout.bloom:  # Parquet knows a column only as it is spelled
        if name not in frame.columns:
            raise missing_column(name, frame.columns, where="bloom")
        if "." in name:
            raise SpecError(
                f'bloom names column "{name}": Parquet takes the dot for a path, and would keep no '
                "filter of it",
                hint="leave it out, or give the column another name with a rename step",
            )


def refuse_names(
    frame: DataFrame, columns: Iterable[str], table: TableInfo | None, layout: Layout
) -> None:
    """Raise when a column that the table does not have yet has a name that it cannot have."""
    properties = {**({} if table is None else table.properties), **layout.properties}
    if maps_columns(properties):
        return
    has = set() if table is None else {field.key for field in table.schema.fields}
    written = {name.lower() for name in columns}
    for field in Schema.from_json(frame.schema.json()).fields:
        wrong = next((letter for letter in field.names[-1] if letter in _NOT_IN_NAMES), "")
        if wrong and field.key[0] in written and field.key not in has:
            named = json.dumps(field.path, ensure_ascii=False)
            raise SpecError(
                f"a Delta table can have no column named {named}: "
                f"its name holds {_LETTERS.get(wrong, json.dumps(wrong))}",
                hint="give it another name with a rename step, or make the table with "
                f"`properties: {{{MAPPING}: name}}`",
                context={"column": field.path},
            )


_LETTERS = {" ": "a space", "\t": "a tab", "\n": "the end of a line"}


def first_properties(layout: Layout, schema: Schema) -> dict[str, str]:
    """Properties that Delta takes together with a table's first rows; others come after them."""
    asked = {k: v for k, v in layout.properties.items() if k.lower().startswith("delta.")}
    if {key.lower() for key in asked} & {STATS_COLUMNS.lower(), _STATS_COUNT.lower()}:
        return asked
    columns = statistics_columns(layout, schema)
    return {**asked, STATS_COLUMNS: ",".join(quoted(c) for c in columns)} if columns else asked


def statistics_columns(layout: Layout, schema: Schema) -> tuple[str, ...]:
    """The columns to keep statistics of, where Delta's own choice would miss one that matters.

    Delta takes the first 32. A key behind them would let no file be skipped.
    """
    folders = {name.lower() for name in layout.partition_by}
    simple = [
        entry["name"]
        for entry in schema.to_json()
        if entry["type"] in _WITH_STATISTICS and entry["name"].lower() not in folders
    ]
    leaves = [f.path for f in schema.fields if f.type not in ("struct", "array", "map")]
    covered = {path.lower() for path in leaves[:_MAX_STATISTICS]}
    sought = {name.lower() for name in (*layout.sought, *layout.z_order, *layout.cluster_by)}
    missed = [name for name in simple if name.lower() in sought - covered]
    if not missed:
        return ()
    others = [name for name in simple if name not in missed]
    return (*missed, *others[: max(0, _MAX_STATISTICS - len(missed))])


def as_asked(table: TableInfo, layout: Layout) -> TableInfo:
    """The table with the properties it will have once the layout is applied."""
    return replace(table, properties={**table.properties, **layout.properties})


def _names(columns: Iterable[str]) -> str:
    return ", ".join(quoted(name) for name in columns)


def _properties(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())


def refuse_other_partitions(table: TableInfo, layout: Layout, *, may_change: bool) -> None:
    """Raise when the pipeline asks for other partitions than the table has, or for no column."""
    if layout.bloom and maps_columns(table.properties):
        raise UnsupportedOperation(
            f'table "{table.location}" keeps its columns under other names ({MAPPING}), '
            "and a Bloom filter would not be found under them",
            hint="leave out `bloom`",
        )
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
    return {k: v for k, v in layout.properties.items() if not _has_property(table, k, v)}


def _has_property(table: TableInfo, key: str, value: str) -> bool:
    """Delta spells its own keys in its own way, and keeps some of them in the protocol."""
    name = key.lower()
    if name.startswith(_FEATURE):
        return name.removeprefix(_FEATURE) in _lower(table.features)
    if name in ("delta.minreaderversion", "delta.minwriterversion"):
        has = table.reader_version if "reader" in name else table.writer_version
        return value.isdecimal() and has >= int(value)
    if not name.startswith("delta."):
        return table.properties.get(key) == value
    return {k.lower(): v for k, v in table.properties.items()}.get(name) == value


def layout_changes(
    spark: SparkSession, table: TableInfo, layout: Layout, *, may_repartition: bool
) -> tuple[SchemaChange, ...]:
    """What `apply_layout` would change in the table, and an overwrite that may in its folders."""
    has = {key.lower(): value for key, value in table.properties.items()}
    found = [
        SchemaChange(PROPERTY, key, has.get(key.lower(), "not set"), value)
        for key, value in changed_properties(table, layout).items()
    ]
    old, new = table.partition_columns, layout.partition_by
    if may_repartition and new and _lower(old) != _lower(new):
        found.append(SchemaChange(PARTITIONS, "", ", ".join(old), ", ".join(new)))
    clusters = _clustering(spark, table)
    if layout.cluster_by and clusters != _lower(layout.cluster_by):
        by = ", ".join(layout.cluster_by)
        found.append(SchemaChange(CLUSTERING, "", ", ".join(clusters), by))
    return tuple(found)


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
