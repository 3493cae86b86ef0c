"""Regular expressions as the JVM reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltaworks.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def require_pattern(spark: SparkSession, pattern: str, *, where: str) -> None:
    """Refuse what Java does not read, before Spark meets it in the middle of a job."""
    from pyspark.errors import IllegalArgumentException

    jvm: Any = spark._jvm
    try:
        jvm.java.util.regex.Pattern.compile(pattern)
    except IllegalArgumentException as problem:
        said = str(problem).splitlines()[0].partition(" near index")[0]
        raise SpecError(
            f'{where}: "{pattern}" is not a regular expression: {said}',
            hint="a bracket that stands for itself is written with a backslash",
        ) from problem
