"""Sessions on a Spark Connect server: no JVM of ours, and so no handle to one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from deltaworks.engines.reach import reach
from deltaworks.engines.spark.confs import SessionSettings
from deltaworks.errors import EngineError, MissingDependencyError, UnsupportedOperation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PORT = 15002
_GUESSED_CORES = 4
_HADOOP = "spark.hadoop."


def has_jvm(spark: SparkSession) -> bool:
    """Whether a session's JVM can be spoken to; over Connect it cannot."""
    # Asked of the class: a session whose JVM has died has no handle any more either.
    return not type(spark).__module__.startswith("pyspark.sql.connect")


def sibling(spark: SparkSession) -> SparkSession:
    """Another session on the same Spark, with settings and views of its own."""
    if has_jvm(spark):
        return spark.newSession()
    other: Any = cast("Any", spark).cloneSession()
    other.release_session_on_close = True  # PySpark 4.2 forgets to set it on a clone
    return cast("SparkSession", other)


def let_go(session: SparkSession) -> None:
    """End a session that a server would otherwise keep for an hour."""
    if not has_jvm(session):
        session.stop()


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once; over Connect nobody tells, so it is guessed."""
    return spark.sparkContext.defaultParallelism if has_jvm(spark) else _GUESSED_CORES


def require_jvm(spark: SparkSession, what: str, *, instead: str) -> None:
    """Refuse what only a driver's own JVM can do, before anything is read."""
    if not has_jvm(spark):
        raise UnsupportedOperation(f"{what} does not work over Spark Connect", hint=instead)


def connect(settings: SessionSettings, *, notify: Callable[[str], None]) -> SparkSession:
    """A session on the server that `sc://host:port` names."""
    address = urlsplit(settings.master)
    host = address.hostname or "localhost"
    reach(host, address.port or _PORT)
    spark = _opened(settings.master)
    for key, value in settings.conf.items():
        short = key.removeprefix(_HADOOP)
        if short != key or spark.conf.isModifiable(key):
            spark.conf.set(short, value)
        else:
            notify(f"passed over {key}: over Spark Connect the server decides it")
    return spark


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
