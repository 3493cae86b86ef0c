"""Sessions on a Spark Connect server: no JVM of ours, and so no handle to one."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit
from weakref import WeakSet

from deltaworks.engines.spark.session.conf import SessionSettings
from deltaworks.engines.spark.session.required_conf import JAVA_ZONE
from deltaworks.errors import (
    ConfigError,
    EngineError,
    MissingDependencyError,
    UnsupportedOperation,
)
from deltaworks.storage.tcp_check import reach

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PORT = 15002
_GUESSED_CORES = 4
_HADOOP = "spark.hadoop."
_ours: WeakSet[SparkSession] = WeakSet()


def has_jvm(spark: SparkSession) -> bool:
    """Whether a session's JVM can be spoken to; over Connect it cannot."""
    # Asked of the class: a session whose JVM has died has no handle any more either.
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def sibling(spark: SparkSession) -> SparkSession:
    """Another session that works as one of ours does: its settings, and views of its own."""
    other = apart(spark)
    if has_jvm(spark):  # a new session knows only what the JVM was started with
        _own_settings(other).putAll(_own_settings(spark))
    return other


def _own_settings(spark: SparkSession) -> Any:
    """The settings of a session in its JVM, where one call carries all of them."""
    return cast("Any", spark)._jsparkSession.sessionState().conf().settings()


def apart(spark: SparkSession) -> SparkSession:
    """Another session on the same Spark, which does not touch that one."""
    if has_jvm(spark):
        return spark.newSession()
    other: Any = cast("Any", spark).cloneSession()
    other.release_session_on_close = True  # PySpark 4.2 forgets to set it on a clone
    return _remembered(other)


def let_go(session: SparkSession) -> None:
    """End a session that a server would otherwise keep for an hour."""
    if not has_jvm(session):
        cast("Any", session).client.set_retry_policies([])  # a server that is gone is asked once
        session.stop()
        _ours.discard(session)


@contextmanager
def held(session: SparkSession) -> Iterator[SparkSession]:
    """A session that is let go at the end of the block."""
    try:
        yield session
    finally:
        let_go(session)


def let_go_of_all() -> None:
    """End what is still open: grpc waits forever for a channel that Python itself cleans up."""
    for session in list(_ours):
        let_go(session)


def resolved(frame: DataFrame) -> DataFrame:
    """The frame, its columns looked up now; over Connect that waits until somebody asks."""
    if not has_jvm(frame.sparkSession):
        frame.schema  # noqa: B018 - a column that does not exist is told here
    return frame


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once; over Connect nobody tells, so it is guessed."""
    return spark.sparkContext.defaultParallelism if has_jvm(spark) else _GUESSED_CORES


def require_jvm(spark: SparkSession, what: str, *, instead: str) -> None:
    """Refuse what only a driver's own JVM can do, before anything is read."""
    if not has_jvm(spark):
        raise UnsupportedOperation(f"{what} does not work over Spark Connect", hint=instead)


def require_java_zone(spark: SparkSession) -> None:
    """Refuse to talk to a database from a JVM where the clock changes.

    What a driver reads without a zone goes through Java's own, in which some hours do not exist.
    """
    zone = cast("Any", spark)._jvm.java.time.ZoneId.systemDefault()
    if not zone.getRules().isFixedOffset():
        raise ConfigError(
            f"Java runs in the time zone {zone.getId()}, where the clock changes, so timestamps "
            "of a database could be read an hour off",
            hint=f"start it with {JAVA_ZONE} (spark.driver.extraJavaOptions), or let Deltaworks "
            "start Spark",
        )


def connect(settings: SessionSettings, *, notify: Callable[[str], None]) -> SparkSession:
    """A session on the server that `sc://host:port` names."""
    address = urlsplit(settings.master)
    host = address.hostname or "localhost"
    reach(host, address.port or _PORT)
    spark = _remembered(_opened(settings.master))
    for key, value in settings.conf.items():
        short = key.removeprefix(_HADOOP)
        if short != key or spark.conf.isModifiable(key):
            spark.conf.set(short, value)
        else:
            notify(f"passed over {key}: over Spark Connect the server decides it")
    return spark


def _remembered(session: SparkSession) -> SparkSession:
    """A session that ends with Python at the latest, before PySpark's own farewell to it."""
    _ours.add(session)
    atexit.unregister(let_go_of_all)
    atexit.register(let_go_of_all)
    return session


def _opened(url: str) -> SparkSession:
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    try:
        spark = SparkSession.builder.remote(url).getOrCreate()
        spark.version  # noqa: B018 - the first word to the server, which may be somebody else
    except ImportError as error:
        raise MissingDependencyError(
            f"Spark Connect needs packages that are not installed: {error}",
            hint="pip install 'deltaworks[connect]'",
        ) from error
    except PySparkException as error:
        raise EngineError(
            f"the Spark Connect server at {url.partition(';')[0]} opens no session: "
            f"{str(error).splitlines()[0]}",
            hint="check the address, and that a Spark Connect server listens there",
        ) from error
    return spark


def add_jars(spark: SparkSession, files: Collection[Path]) -> None:
    """Let a Spark that runs already load classes from jars, its executors included."""
    if files:
        require_jvm(
            spark,
            "a connector's jar",
            instead="start the server with the jar, or use a master that is not sc://",
        )
    for file in files:
        place = str(file).replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(f"ADD JAR '{place}'")
