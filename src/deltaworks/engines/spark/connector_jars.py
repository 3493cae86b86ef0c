"""The jars of connectors to databases and the like: Spark gets them when a pipeline needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.engines.spark.jars import missing_jars
from deltaworks.engines.spark.versions import Jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECTOR_JARS: Mapping[str, tuple[Jar, ...]] = {
    "postgres": (
        Jar(
            group="org.postgresql",
            artifact="postgresql",
            version="42.7.14",
            sha256="73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c",
            size_bytes=1_221_004,
        ),
    ),
    # This driver speaks to MySQL as well as to MariaDB.
    "mysql": (
        Jar(
            group="org.mariadb.jdbc",
            artifact="mariadb-java-client",
            version="3.5.11",
            sha256="42604178b9e57ec08ee0035079961516f086e455d0141f0b22c6eff29fb2fff4",
            size_bytes=793_387,
        ),
    ),
}
"""By the name that a plug-in has for its connector."""


def connector_jars(names: Collection[str]) -> tuple[Jar, ...]:
    """The jars of some connectors, each once."""
    return tuple(dict.fromkeys(jar for name in sorted(names) for jar in CONNECTOR_JARS[name]))


def connectors_missing(*, cache: Path) -> tuple[str, ...]:
    """The connectors whose jars are not in the cache yet."""
    return tuple(name for name, jars in CONNECTOR_JARS.items() if missing_jars(jars, cache=cache))


def add_jars(spark: SparkSession, files: Collection[Path]) -> None:
    """Let a Spark that runs already load classes from jars, its executors included."""
    for file in files:
        place = str(file).replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"ADD JAR '{place}'")
