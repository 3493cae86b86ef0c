"""Rows of tables of our own, removed by Spark where only Spark may commit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.connection import held, sibling
from deltaworks.engines.spark.engine import table_sql
from deltaworks.engines.spark.errors import translate
from deltaworks.engines.spark.layout import USER_METADATA, set_for_one_write
from deltaworks.redact import safe_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delete_rows(spark: SparkSession, location: str, where: str, *, note: Mapping[str, Any]) -> int:
    """Remove rows and say why in the commit; answers how many."""
    from pyspark.errors import PySparkException

    told = {USER_METADATA: safe_json(dict(note))}
    with held(sibling(spark)) as session, set_for_one_write(session, told):
        try:
            statement = f"DELETE FROM {table_sql(location)} WHERE {where}"  # noqa: S608 - our own words
            answer = session.sql(statement).collect()
        except PySparkException as error:
            raise translate(error) from error
    return int(answer[0]["num_affected_rows"])
