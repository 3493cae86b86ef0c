"""Restoring a table by Spark, and rows of our own tables where only Spark may commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.delta.layout import USER_METADATA
from deltaworks.engines.spark.delta.tables import SparkEngine, table_sql
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.engines.spark.session.conf import temporary_conf
from deltaworks.engines.spark.session.connect import held, sibling
from deltaworks.redact import safe_json
from deltaworks.storage.durability import make_durable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def restore(spark: SparkSession, location: str, version: int, *, note: Mapping[str, Any]) -> int:
    """Make the table what it was at a version, in one commit; answers that commit's version."""
    from pyspark.errors import PySparkException

    told = {USER_METADATA: safe_json(dict(note))}
    with held(sibling(spark)) as session, temporary_conf(session, told):
        try:
            statement = f"RESTORE TABLE {table_sql(location)} TO VERSION AS OF {version}"
            session.sql(statement).collect()
        except PySparkException as error:
            raise translate(error) from error
    made = SparkEngine(spark).history(location, limit=1)[0].version
    make_durable(location, made)
    return made


def delete_rows(spark: SparkSession, location: str, where: str, *, note: Mapping[str, Any]) -> int:
    """Remove rows and say why in the commit; answers how many."""
    from pyspark.errors import PySparkException

    told = {USER_METADATA: safe_json(dict(note))}
    with held(sibling(spark)) as session, temporary_conf(session, told):
        try:
            statement = f"DELETE FROM {table_sql(location)} WHERE {where}"  # noqa: S608 - our own words
            answer = session.sql(statement).collect()
        except PySparkException as error:
            raise translate(error) from error
    make_durable(location, SparkEngine(spark).history(location, limit=1)[0].version)
    return int(answer[0]["num_affected_rows"])


def return_rows(
    spark: SparkSession,
    location: str,
    where: str,
    *,
    version: int,
    key: str,
    note: Mapping[str, Any],
) -> None:
    """Append the rows that a version of the table had, once for each key."""
    from pyspark.errors import PySparkException

    with held(sibling(spark)) as session:
        try:
            rows = session.read.format("delta").option("versionAsOf", version).load(location)
            stamp = {
                "txnAppId": key,
                "txnVersion": "1",
                "userMetadata": safe_json(dict(note)),
            }
            writer = rows.filter(where).write.format("delta").mode("append")
            writer.option("mergeSchema", "true").options(**stamp).save(location)
        except PySparkException as error:
            raise translate(error) from error
    make_durable(location, SparkEngine(spark).history(location, limit=1)[0].version)
