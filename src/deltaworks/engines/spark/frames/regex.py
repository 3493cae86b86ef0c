"""Regular expressions as the JVM reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaworks.engines.spark.session.connect import has_jvm
from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_pattern(spark: SparkSession, pattern: str, *, where: str) -> None:
    """Refuse what Java does not read, before Spark meets it in the middle of a job."""
    if problem := _problem(spark, pattern):
        raise SpecError(
            f'{where}: "{pattern}" is not a regular expression: {problem}',
            hint="a bracket that stands for itself is written with a backslash",
        )


def _problem(spark: SparkSession, pattern: str) -> str:
    """What Java says against a pattern; empty when it reads it."""
    from pyspark.errors import IllegalArgumentException, SparkRuntimeException
    from pyspark.sql import functions as F

    if not has_jvm(spark):
        try:
            spark.range(1).select(F.lit("").rlike(pattern)).collect()
        except SparkRuntimeException:
            return "Java does not read it"
        return ""
    jvm: Any = spark._jvm
    try:
        jvm.java.util.regex.Pattern.compile(pattern)
    except IllegalArgumentException as problem:
        return str(problem).splitlines()[0].partition(" near index")[0]
    return ""
