"""Every setting of Spark that decides which rows a run gives, with the value we rely on.

A session is made from what its JVM was started with: by us, by a user who brought a session, by
`spark-defaults.conf` or by a server. So each session that does work of ours is told all of this
(`settle`), and asked before a run begins whether it holds (`require_settled`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from deltaworks.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
CATALOG_KEY = "spark.sql.catalog.spark_catalog"

ALWAYS: Mapping[str, str] = MappingProxyType(
    {
        # Every stored timestamp is UTC, and so are the ranges of keys that a MERGE states.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timestampType": "TIMESTAMP_LTZ",
        # A value that does not fit its type stops the run; it does not become NULL.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.storeAssignmentPolicy": "ANSI",
        # Names and literals mean what our own SQL, and delta-rs, take them for.
        "spark.sql.caseSensitive": "false",
        "spark.sql.parser.escapedStringLiterals": "false",
        "spark.sql.ansi.doubleQuotedIdentifiers": "false",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
        "spark.sql.legacy.setopsPrecedence.enabled": "false",
        "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
        # Or a key such as '${env:HOME}' would be sought as what it names.
        "spark.sql.variable.substitute": "false",
        # Keys are compared, hashed and shown in one way.
        "spark.sql.charAsVarchar": "false",
        "spark.sql.readSideCharPadding": "true",
        "spark.sql.legacy.charVarcharAsString": "false",
        "spark.sql.legacy.noCharPaddingInPredicate": "false",
        "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
        "spark.sql.legacy.castComplexTypesToString.enabled": "false",
        "spark.sql.legacy.disableMapKeyNormalization": "false",
        "spark.sql.legacy.allowNegativeScaleOfDecimal": "false",
        "spark.sql.jsonGenerator.ignoreNullFields": "true",
        # Or a filter on a day that the old calendar left out, 1582-10-05 to 14, is sent to files
        # as one on another day, and their rows are skipped.
        "spark.sql.datetime.java8API.enabled": "true",
        # What is read is all there is, and as it stands there.
        "spark.sql.files.ignoreMissingFiles": "false",
        "spark.sql.files.ignoreCorruptFiles": "false",
        "spark.sql.files.ignoreInvalidPartitionPaths": "false",
        "spark.sql.legacy.timeParserPolicy": "CORRECTED",
        "spark.sql.legacy.javaCharsets": "false",
        "spark.sql.legacy.codingErrorAction": "false",
        "spark.sql.legacy.json.allowEmptyString.enabled": "false",
        "spark.sql.json.enablePartialResults": "true",
        # Files are written as every reader takes them: INT96, the old form of timestamps, has no
        # statistics, and delta-rs misreads it far from today.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.writeLegacyFormat": "false",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInWrite": "CORRECTED",
        "spark.sql.avro.datetimeRebaseModeInWrite": "CORRECTED",
        "spark.sql.legacy.nullValueWrittenAsQuotedEmptyStringCsv": "false",
        # A table's columns and rows change only as the pipeline says.
        "spark.sql.sources.partitionOverwriteMode": "STATIC",
        "spark.databricks.delta.schema.autoMerge.enabled": "false",
        "spark.databricks.delta.schema.typeCheck.enabled": "true",
        "spark.databricks.delta.replaceWhere.dataColumns.enabled": "true",
        "spark.databricks.delta.replaceWhere.constraintCheck.enabled": "true",
        "spark.databricks.delta.constraints.allowUnenforcedNotNull.enabled": "false",
        "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
        "spark.databricks.delta.convertEmptyToNullForStringPartitionCol": "true",
    }
)
"""What holds in every session; settings of the user's that say otherwise are refused."""

UNLESS_TOLD: Mapping[str, str] = MappingProxyType(
    {
        "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
        "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
        "spark.sql.parquet.binaryAsString": "false",
        "spark.sql.parquet.int96AsTimestamp": "true",
        "spark.sql.parquet.int96TimestampConversion": "false",
        "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "true",
        "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
        "spark.sql.decimalOperations.allowPrecisionLoss": "true",
        "spark.databricks.delta.stats.collect": "true",
        "spark.databricks.delta.retentionDurationCheck.enabled": "true",
    }
)
"""What holds unless `engine.conf` says otherwise; what a JVM was started with does not count."""


JAVA_ZONE = "-Duser.timezone=UTC"
"""How a JVM is started: JDBC drivers read a timestamp without a zone in Java's own."""


def relied_on(told: Mapping[str, str]) -> dict[str, str]:
    """All of it, for a project whose `engine.conf` tells these settings."""
    chosen = {key: told.get(key, value) for key, value in UNLESS_TOLD.items()}
    return {**chosen, **ALWAYS}


def settle(spark: SparkSession, told: Mapping[str, str]) -> None:
    """Tell a session of ours everything we rely on."""
    for key, value in relied_on(told).items():
        spark.conf.set(key, value)
    catalog = spark.conf.get(CATALOG_KEY, "builtin") or "builtin"
    spark.conf.set(CATALOG_KEY, DELTA_CATALOG if catalog == "builtin" else catalog)


def require_settled(spark: SparkSession, told: Mapping[str, str]) -> None:
    """Refuse to work in a session that would give other rows."""
    found = spark.conf.getAll
    for key, value in relied_on(told).items():
        if found.get(key, "").lower() != value.lower():
            raise ConfigError(
                f"{key} must be {value} in the session that does the work, "
                f"and is {found.get(key, 'not set')}",
                hint="take what sets it out of the session, or let Deltaworks start Spark",
            )
