"""When Spark's JVM is gone in the middle of a run: killed, or out of memory."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from deltaworks.errors import EngineError

_DYING_SECONDS = 0.2
"""How long a JVM may take to die before it counts as alive."""


def lost_jvm() -> EngineError:
    """The error for a JVM that does not answer any more."""
    return EngineError(
        "Spark's JVM ended while it was at work; it may have run out of memory, or been killed",
        hint="run it again: it goes on where it stopped "
        "(more memory: engine: {conf: {spark.driver.memory: 4g}})",
    )


def has_died(wait_seconds: float = 0) -> bool:
    """Whether the JVM that this process started is gone, now or after a moment."""
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(wait_seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def is_lost() -> bool:
    """The same after an error; PySpark has many for this."""
    return has_died(_DYING_SECONDS)


@contextmanager
def reaching_jvm() -> Iterator[None]:
    """Calls to a JVM outside of any step: one that does not answer is told as such."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, ConnectionError) as error:
        raise lost_jvm() from error
    except PySparkException as error:
        if is_lost():
            raise lost_jvm() from error
        raise


@contextmanager
def letting_go() -> Iterator[None]:
    """Clean up in a JVM; one that is gone has nothing left to clean."""
    from py4j.protocol import Py4JError

    try:
        yield
    except (Py4JError, ConnectionError):
        return
