"""The versions that were tested together; whatever starts Spark reads them here."""

from __future__ import annotations

from dataclasses import dataclass

PYSPARK = "4.2.0"
DELTA_SPARK = "4.4.0"
SPARK_AVRO = "4.1.1"
SCALA = "2.13"
JAVA_VERSIONS = (17, 21, 25)


@dataclass(frozen=True, kw_only=True)
class Jar:
    """One file of a Maven repository, known by its checksum."""

    group: str
    artifact: str
    version: str
    sha256: str
    size_bytes: int = 0

    @property
    def coordinate(self) -> str:
        """`group:artifact:version`, as build tools write it."""
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """The name of the file in the cache."""
        return f"{self.artifact}-{self.version}.jar"


# These are enough. Their transitive dependencies would put older copies of
# what PySpark ships already in front of it on the class path.
CORE_JARS = (
    Jar(
        group="io.delta",
        artifact=f"delta-spark_4.2_{SCALA}",
        version=DELTA_SPARK,
        sha256="27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
        size_bytes=9_515_916,
    ),
    Jar(
        group="io.delta",
        artifact="delta-storage",
        version=DELTA_SPARK,
        sha256="c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
        size_bytes=113_863,
    ),
    # Not PySpark's own version: when this was locked, the resolver found no spark-avro 4.2.0.
    # What the older one reads and writes is tested in tests/pipelines/test_file_formats.py.
    Jar(
        group="org.apache.spark",
        artifact=f"spark-avro_{SCALA}",
        version=SPARK_AVRO,
        sha256="6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
        size_bytes=92_354,
    ),
)
