"""Setting a table back with Spark, which knows every feature a table may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.delta.layout import USER_METADATA
from deltaworks.engines.spark.delta.tables import SparkEngine, table_sql
from deltaworks.engines.spark.errors.translate import translate
from deltaworks.engines.spark.session.connect import held, sibling
from deltaworks.engines.spark.session.temporary_conf import set_for_one_write
from deltaworks.redact import safe_json
from deltaworks.storage.durability import make_durable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def restore(spark: SparkSession, location: str, version: int, *, note: Mapping[str, Any]) -> int:
    """Make the table what it was at a version, in one commit; answers that commit's version."""
    from pyspark.errors import PySparkException

    told = {USER_METADATA: safe_json(dict(note))}
    with held(sibling(spark)) as session, set_for_one_write(session, told):
        try:
            statement = f"RESTORE TABLE {table_sql(location)} TO VERSION AS OF {version}"
            session.sql(statement).collect()
        except PySparkException as error:
            raise translate(error) from error
    made = SparkEngine(spark).history(location, limit=1)[0].version
    make_durable(location, made)
    return made
