"""Turn session settings into Spark's own configuration, as a value that can be tested."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from deltaworks.engines.spark.java.jvm_options import Compiler, driver_memory_mebibytes
from deltaworks.engines.spark.session.required_conf import (
    ALWAYS,
    CATALOG_KEY,
    DELTA_CATALOG,
    JAVA_ZONE,
    UNLESS_TOLD,
)
from deltaworks.engines.spark.versions import CORE_JARS, Jar
from deltaworks.errors import ConfigError
from deltaworks.redact import holds_secret, secret_pattern

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"
SCRATCH_KEY = "spark.deltaworks.scratch"
"""Set on sessions that we started: the folder to remove when they stop."""
_LOOPBACK = "127.0.0.1"
_ONLY_AT_START = (
    "spark.driver.extraJavaOptions",
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraLibraryPath",
)
_REDACTION = "spark.redaction"
_SECRET = re.compile(
    r"secret|password|token|credential|access[._-]?key|account\.key", re.IGNORECASE
)


@dataclass(frozen=True, kw_only=True)
class SessionSettings:
    """What a project says about its Spark session."""

    app_name: str
    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[Jar, ...] = CORE_JARS
    log_file: Path | None = None
    compiler: Compiler = "auto"
    input_bytes: int | None = None
    """What a process that ends with its first command will read; None where more may come."""

    @property
    def local(self) -> bool:
        """Whether everything runs in the driver's own JVM."""
        return self.master == "local" or self.master.startswith("local[")

    @property
    def remote(self) -> bool:
        """Whether Spark is reached through a Connect server, without a JVM of our own."""
        return self.master.startswith("sc://")


def build_conf(
    settings: SessionSettings,
    *,
    jars: Sequence[Path],
    scratch: Path,
    java_options: Sequence[str],
    memory_bytes: int,
    cores: int,
) -> dict[str, str]:
    """The whole configuration: ours, then the user's, then what we cannot do without."""
    conf = _defaults(settings, scratch)
    if settings.local:
        memory = driver_memory_mebibytes(memory_bytes, settings.input_bytes)
        conf |= _local_defaults(memory, cores)
    conf |= settings.conf
    conf |= _fixed(settings)
    conf[SCRATCH_KEY] = str(scratch)
    _append(conf, "spark.sql.extensions", [DELTA_EXTENSION], separator=",")
    _append(
        conf, "spark.driver.extraJavaOptions", [_quoted(o) for o in java_options], separator=" "
    )
    if settings.local:
        # A class loader of Spark's own, which spark.jars would use, starts slower.
        _append(conf, "spark.driver.extraClassPath", map(str, jars), separator=os.pathsep)
    else:
        _append(conf, "spark.executor.extraJavaOptions", [JAVA_ZONE], separator=" ")
        _append(conf, "spark.jars", [jar.as_uri() for jar in jars], separator=",")
    return conf


def submitted_conf(settings: SessionSettings, *, scratch: Path) -> dict[str, str]:
    """What a JVM is told that `spark-submit` started, as far as its command line does not."""
    fixed = _fixed(settings)
    del fixed["spark.master"]
    extension = {"spark.sql.extensions": DELTA_EXTENSION}
    ours = {**_defaults(settings, scratch), **extension, SCRATCH_KEY: str(scratch)}
    return {**ours, **settings.conf, **fixed}


def command_line_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """What may stand on the JVM's command line, which every user of the machine can read."""
    return {key: value for key, value in conf.items() if not is_secret_setting(key, value)}


def is_secret_setting(key: str, value: str) -> bool:
    """Whether a setting is a secret, by its name or because its value is known as one."""
    # a pattern that finds secrets spells them, with backslashes in between
    return _SECRET.search(key) is not None or key.startswith(_REDACTION) or holds_secret(value)


def refuse_contradictions(settings: SessionSettings) -> None:
    """Refuse a setting of the user's that we would have to overrule."""
    for key, value in _fixed(settings).items():
        wanted = settings.conf.get(key, value)
        if wanted.lower() != value.lower():
            raise ConfigError(
                f"{key} is always {value} here, but the Spark settings say {wanted}",
                hint=f"remove {key} from the Spark settings",
            )


def refuse_exposed(settings: SessionSettings) -> None:
    """Refuse a secret in a setting that only the JVM's command line can carry."""
    for key in _ONLY_AT_START:
        if holds_secret(settings.conf.get(key, "")):
            raise ConfigError(
                f"{key} holds a secret, and every user of this machine could read it",
                hint="give it to Java by a file, or keep it in a credential",
            )


def _fixed(settings: SessionSettings) -> dict[str, str]:
    return {
        **ALWAYS,
        "spark.master": settings.master,
        CATALOG_KEY: DELTA_CATALOG,
    }


def _defaults(settings: SessionSettings, scratch: Path) -> dict[str, str]:
    return {
        "spark.app.name": settings.app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # PySpark would send Java the line of our code behind each expression: ten calls for one.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **redaction_settings(),
        "spark.sql.catalogImplementation": "in-memory",
        **UNLESS_TOLD,
        # Otherwise Spark makes a folder in the user's working directory.
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
    }


def redaction_settings() -> dict[str, str]:
    """What Spark itself leaves out of its pages: settings by name or value, and parts of plans."""
    known = secret_pattern()
    names = f"(?i){_SECRET.pattern}|sas|jaas|{_REDACTION}"
    if not known:
        return {"spark.redaction.regex": names}
    return {
        "spark.redaction.regex": f"{names}|(?-i:{known})",
        f"{_REDACTION}.string.regex": known,
    }


def _local_defaults(memory_mebibytes: int, cores: int) -> dict[str, str]:
    return {
        "spark.driver.memory": f"{memory_mebibytes}m",
        # Nobody outside this machine has business with a local driver.
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        # Spark's and Delta's defaults are made for clusters: on a few cores most of
        # the time of a small job would go into starting empty tasks.
        "spark.sql.shuffle.partitions": str(max(4, cores)),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(max(2, cores)),
    }


def _append(conf: dict[str, str], key: str, values: Iterable[str], *, separator: str) -> None:
    present = [conf[key]] if conf.get(key) else []
    added = [value for value in values if not present or value not in present[0].split(separator)]
    if present or added:
        conf[key] = separator.join([*present, *added])


def _quoted(option: str) -> str:
    # Spark splits this setting the way a shell would.
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if re.search(r"\s", option) else escaped


@contextmanager
def temporary_conf(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session, put back afterwards: the whole run shares it."""
    before = {key: spark.conf.get(key, None) for key in settings}
    try:
        for key, value in settings.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
