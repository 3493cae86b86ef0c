"""The jars of connectors to databases and the like: Spark gets them when a pipeline needs them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from deltaworks.engines.spark.jars.resolve import missing_jars
from deltaworks.engines.spark.versions import Jar

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
    # Spark's own connector, whose token provider of the same version the resolver did not find.
    # What this mix reads and writes, over TLS with a password too, is tested in tests/services;
    # delegation tokens, which are what the older part is for, are not used.
    "kafka": (
        Jar(
            group="org.apache.spark",
            artifact="spark-sql-kafka-0-10_2.13",
            version="4.2.0",
            sha256="64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
            size_bytes=494_879,
        ),
        Jar(
            group="org.apache.spark",
            artifact="spark-token-provider-kafka-0-10_2.13",
            version="4.0.0",
            sha256="f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
            size_bytes=64_975,
        ),
        Jar(
            group="org.apache.kafka",
            artifact="kafka-clients",
            version="3.9.1",
            sha256="7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
            size_bytes=9_215_194,
        ),
        Jar(
            group="org.apache.commons",
            artifact="commons-pool2",
            version="2.12.1",
            sha256="5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
            size_bytes=152_289,
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
