"""Start, borrow and stop Spark sessions that can work with Delta tables."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from deltaworks.config.cache import cache_dir
from deltaworks.config.object_stores import StoreAccess
from deltaworks.engines.spark.jars.compatibility import installed_versions, require_versions
from deltaworks.engines.spark.jars.resolve import ensure_jars
from deltaworks.engines.spark.java.class_archive import ClassArchive, archive_mode, class_archive
from deltaworks.engines.spark.java.find import JavaHome, find_java, find_spark_home
from deltaworks.engines.spark.java.jvm_options import (
    choose_compiler,
    collector_options,
    is_short,
    machine_memory_bytes,
    wanted_compiler,
)
from deltaworks.engines.spark.java.network import trust_options
from deltaworks.engines.spark.session.conf import (
    DELTA_EXTENSION,
    SCRATCH_KEY,
    SessionSettings,
    build_conf,
    refuse_contradictions,
    refuse_exposed,
    submitted_conf,
)
from deltaworks.engines.spark.session.connect import apart, connect, has_jvm, let_go
from deltaworks.engines.spark.session.event_log import (
    WANTED_KEY,
    event_log,
    publish_at_end,
    publish_events,
)
from deltaworks.engines.spark.session.jvm import end_jvm, forget_dead_jvm, is_submitted, launch
from deltaworks.engines.spark.session.required_conf import JAVA_ZONE, settle
from deltaworks.engines.spark.session.workers import reach_master, ship_package
from deltaworks.engines.spark.versions import CORE_JARS
from deltaworks.errors import ConfigError
from deltaworks.storage.engine_options import hadoop_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "SessionSettings",
    "adopt_session",
    "cancel_work",
    "is_up",
    "jvm_process",
    "reach_stores",
    "session_archive",
    "start_session",
    "stop_session",
]

_LOG = logging.getLogger(__name__)
_HADOOP = "spark.hadoop."
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_CANCEL_TRIES = 3
_ARCHIVE_SECONDS = 240


def start_session(
    settings: SessionSettings,
    *,
    environ: Mapping[str, str],
    notify: Callable[[str], None],
) -> SparkSession:
    """A session on a JVM of our own, or a new one on the JVM this process has already."""
    require_versions(installed_versions())
    refuse_contradictions(settings)
    refuse_exposed(settings)
    if settings.remote:
        return _connected(settings, notify)
    if is_up():
        return _share(_running(), settings)
    if is_submitted(environ):
        return _submitted(settings)
    reach_master(settings.master)
    cache = cache_dir(environ)
    spark_home = find_spark_home(environ)
    java = find_java(environ, cache=cache)
    for note in java.notes:
        notify(f"passed over {note}")
    jars = ensure_jars(settings.jars, java=java, cache=cache, environ=environ, notify=notify)
    scratch = _scratch()
    java_options = [*trust_options(environ, cache=cache), JAVA_ZONE]
    if settings.local:
        said = _said_to_java(settings, environ)
        java_options += collector_options(said, short=is_short(settings.input_bytes))
        java_options += _compiler_options(settings, environ, said)
        java_options += _archive_options(
            class_archive(java, jars=jars, spark_home=spark_home, cache=cache), environ
        )
    conf = build_conf(
        settings,
        jars=jars,
        scratch=scratch,
        java_options=java_options,
        memory_bytes=machine_memory_bytes(),
        cores=os.cpu_count() or 1,
    )
    events = event_log(conf, scratch=scratch, notify=notify)
    if events is not None:
        events.prepare()
        conf |= events.settings
    environment = _launch_environment(settings, java=java, spark_home=spark_home, environ=environ)
    log_file, hint = _log(settings, scratch)
    spark = launch(conf, environment=environment, log_file=log_file, hint=hint)
    if events is not None:
        publish_at_end(spark, events)
    _require_delta(spark)
    if not settings.local:
        ship_package(spark, scratch)
    return spark


def session_archive(
    settings: SessionSettings, *, environ: Mapping[str, str], notify: Callable[[str], None]
) -> ClassArchive:
    """The archive of classes that a local session with these settings uses."""
    cache = cache_dir(environ)
    java = find_java(environ, cache=cache)
    jars = ensure_jars(settings.jars, java=java, cache=cache, environ=environ, notify=notify)
    return class_archive(java, jars=jars, spark_home=find_spark_home(environ), cache=cache)


def is_up() -> bool:
    """Whether this process has a Spark already; one whose JVM has died does not count."""
    from pyspark import SparkContext

    forget_dead_jvm()
    return SparkContext._active_spark_context is not None


def adopt_session(existing: SparkSession, told: Mapping[str, str]) -> SparkSession:
    """A session of our own beside a user's, which stays as it is."""
    _require_delta(existing)
    spark = apart(existing)
    settle(spark, told)
    return spark


def jvm_process(spark: SparkSession) -> tuple[int, float] | None:
    """The id and start time of the session's JVM, or None when it is out of sight."""
    jvm = _jvm_of(spark)
    if jvm is None:
        return None
    pid = int(jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[attr-defined]
    try:
        return pid, psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:  # pragma: no cover - only a JVM in another process namespace
        return None


def cancel_work(spark: SparkSession) -> None:
    """Cancel everything the session's Spark is doing, for the moment after Ctrl-C."""
    from py4j.protocol import Py4JError

    if not has_jvm(spark):
        spark.interruptAll()
        return
    for _ in range(_CANCEL_TRIES):
        # Ctrl-C breaks py4j's connection, and the first call on a new one may get no answer.
        with suppress(Py4JError):
            spark.sparkContext.cancelAllJobs()
            return


def stop_session(spark: SparkSession) -> None:
    """Stop Spark and end its JVM, if we started it; leave a user's own session alone."""
    if not has_jvm(spark):
        let_go(spark)  # the server goes on
        return
    conf = spark.sparkContext.getConf()
    scratch, options = conf.get(SCRATCH_KEY), conf.get(_JAVA_OPTIONS, "") or ""
    events = conf.get(WANTED_KEY)
    if scratch is None:
        return
    spark.stop()
    publish_events(scratch, events)
    end_jvm(_ARCHIVE_SECONDS if "ArchiveClassesAtExit" in options else None)
    shutil.rmtree(scratch, ignore_errors=True)


def _connected(settings: SessionSettings, notify: Callable[[str], None]) -> SparkSession:
    spark = connect(settings, notify=notify)
    settle(spark, settings.conf)
    _require_delta(spark)
    return spark


def _submitted(settings: SessionSettings) -> SparkSession:
    """A session on the JVM that `spark-submit` started; what its command line says wins."""
    scratch = _scratch()
    log_file, hint = _log(settings, scratch)
    conf = submitted_conf(settings, scratch=scratch)
    spark = launch(conf, environment={}, log_file=log_file, hint=hint)
    settle(spark, settings.conf)
    _require_delta(spark)
    ship_package(spark, scratch)
    return spark


def _running() -> SparkSession:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    assert SparkContext._active_spark_context is not None
    return SparkSession(SparkContext._active_spark_context)


def _share(running: SparkSession, settings: SessionSettings) -> SparkSession:
    spark = adopt_session(running, settings.conf)
    for key, value in settings.conf.items():
        if key.startswith(_HADOOP):
            # Storage settings reach Hadoop from a session too, under their short names.
            spark.conf.set(key.removeprefix(_HADOOP), value)
        elif spark.conf.isModifiable(key):
            spark.conf.set(key, value)
        # The rest belongs to the JVM and was decided when it started.
    return spark


def reach_stores(spark: SparkSession, stores: Sequence[StoreAccess], *, theirs: bool) -> None:
    """Tell Hadoop how stores are reached; no page and no log of Spark's shows what is set so.

    In a session that its user brought, what its user has set stays.
    """
    settings = {key: value for one in stores for key, value in hadoop_settings(one).items()}
    if not has_jvm(spark):
        for key, value in settings.items():
            spark.conf.set(key, value)
        return
    if any(access.kind == "s3" for access in stores) and not _can_load(spark, _S3A):
        raise ConfigError(
            "the Spark of this process was started without the jars for S3",
            hint="run what needs S3 first, or in a process of its own",
        )
    configuration = spark._jsc.hadoopConfiguration()
    for key, value in settings.items():
        if not theirs or configuration.get(key) is None:
            configuration.set(key, value)


def _jvm_of(spark: SparkSession) -> object | None:
    # A Connect session refuses the attribute instead of not having it.
    return getattr(spark, "_jvm", None)


def _require_delta(spark: SparkSession) -> None:
    configured = spark.conf.get("spark.sql.extensions", "") or ""
    if DELTA_EXTENSION in configured and _can_load(spark, DELTA_EXTENSION):
        return
    raise ConfigError(
        "the running Spark session knows no Delta tables",
        hint=f"start it with --packages {CORE_JARS[0].coordinate} (spark.jars.packages) and "
        f"spark.sql.extensions={DELTA_EXTENSION}, or let Deltaworks start Spark",
    )


def _can_load(spark: SparkSession, name: str) -> bool:
    from py4j.protocol import Py4JJavaError

    jvm = _jvm_of(spark)
    if jvm is None:
        return True
    thread = jvm.java.lang.Thread.currentThread()  # type: ignore[attr-defined]
    try:
        thread.getContextClassLoader().loadClass(name)
    except Py4JJavaError:
        return False
    return True


def _archive_options(archive: ClassArchive, environ: Mapping[str, str]) -> list[str]:
    wish = archive_mode(environ)
    if wish == "make":
        archive.prepare()
    return archive.options(wish)


def _said_to_java(settings: SessionSettings, environ: Mapping[str, str]) -> list[str]:
    """The user's own options for Java, wherever they are written."""
    said = [environ.get(name, "") for name in ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")]
    names = (_JAVA_OPTIONS, "spark.driver.defaultJavaOptions")
    return [*said, *(settings.conf.get(name, "") for name in names)]


def _compiler_options(
    settings: SessionSettings, environ: Mapping[str, str], said: Sequence[str]
) -> tuple[str, ...]:
    wanted = wanted_compiler(environ, settings.compiler)
    choice = choose_compiler(wanted, input_bytes=settings.input_bytes, said=said)
    _LOG.debug(choice.reason)
    return choice.options


def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="deltaworks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _log(settings: SessionSettings, scratch: Path) -> tuple[Path, str]:
    if settings.log_file is not None:
        return settings.log_file, f"read {settings.log_file}"
    return scratch / "spark.log", "give the session a log file to keep what Spark says"


def _launch_environment(
    settings: SessionSettings, *, java: JavaHome, spark_home: Path, environ: Mapping[str, str]
) -> dict[str, str]:
    environment = {
        "JAVA_HOME": str(java.home),
        # Given, so that Spark's scripts do not search: they stumble over spaces in paths.
        "SPARK_HOME": str(spark_home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }
    # Spark's script asks a Java of its own for the command line, which is done in a moment.
    environment["SPARK_LAUNCHER_OPTS"] = environ.get("SPARK_LAUNCHER_OPTS") or _SHORT_LIVED
    if settings.local:
        environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    else:
        # Workers on other machines may keep their Python elsewhere.
        said = (settings.conf.get("spark.pyspark.python"), environ.get("PYSPARK_PYTHON"))
        environment["PYSPARK_PYTHON"] = next(filter(None, said), sys.executable)
    return environment
