"""Which Spark is started."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from deltaworks.engines.spark.versions import PYSPARK, SCALA
from deltaworks.errors import ConfigError, MissingDependencyError


def find_spark_home(environ: Mapping[str, str]) -> Path:
    """The Spark to start: PySpark's own, or another of exactly the same version."""
    chosen = environ.get("SPARK_HOME", "").strip()
    if chosen:
        home = Path(chosen).expanduser().absolute()
        if (home / "jars" / f"spark-core_{SCALA}-{PYSPARK}.jar").is_file():
            return home
        raise ConfigError(
            f"SPARK_HOME is {home}, which is not Spark {PYSPARK}", hint="unset SPARK_HOME"
        )
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise MissingDependencyError(
            "PySpark is not installed", hint=f"pip install 'pyspark=={PYSPARK}'"
        )
    return Path(package.origin).parent
