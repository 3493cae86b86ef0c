"""Errors of databases, Kafka and Python workers, as Spark reports them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from deltaworks.errors import (
    ConfigError,
    ConstraintViolated,
    DeltaworksError,
    EngineError,
    GuardError,
    StorageError,
    Unreachable,
)

_DRIVERS = ("java.sql.", "org.postgresql.", "org.mariadb.jdbc.")
_QUOTED = re.compile(r"((?:java\.sql|org\.postgresql|org\.mariadb\.jdbc)\.[\w.]+Exception): (.+)")
_LOST = re.compile(
    r"I/O error|connection.*(closed|refused|reset|lost|attempt failed)|terminating connection"
    r"|server closed|Broken pipe|Socket|is closing|shutting down|unexpected end of stream",
    re.IGNORECASE,
)
_RULE = re.compile(r"violates|constraint|duplicate|cannot be null|out of range|too long|invalid")


def jdbc_error(class_name: str, message: str) -> DeltaworksError | None:
    """The error for what a driver raised; None when it was not a driver."""
    if not class_name.startswith(_DRIVERS):
        # A task that failed elsewhere is told in words, where its classes are not at hand.
        quoted = _QUOTED.search(message)
        return jdbc_error(quoted[1], quoted[2]) if quoted else None
    said = re.sub(r"^(\(conn=\d+\)\s*|Batch entry .*? was aborted: )?(ERROR:\s*)?", "", message)
    line = next((part.strip() for part in said.splitlines() if part.strip()), class_name)
    if _LOST.search(message) or "Connection" in class_name.rpartition(".")[2]:
        return Unreachable(
            f"the database went away: {line}",
            hint="see that the server is up and can be reached, then run it again",
        )
    if _RULE.search(line):
        return ConstraintViolated(
            f"the database refuses a row: {line}",
            hint="quarantine such rows with a check; nothing was written",
        )
    return EngineError(f"the database says: {line}", hint="the message is the server's own")


_PACKAGE = "org.apache.kafka."
_REFUSED = ("SaslAuthenticationException", "SslAuthenticationException")
_FORBIDDEN = ("TopicAuthorizationException", "ClusterAuthorizationException")
_SILENT = ("TimeoutException", "NetworkException", "DisconnectException", "KafkaException")
_DATA_LOSS = "KAFKA_DATA_LOSS"
_NO_ANSWER = "Cannot fetch record"


def kafka_error(*, class_name: str, condition: str, line: str) -> DeltaworksError | None:
    """The error a user should read; None for what has nothing to do with Kafka."""
    if condition.startswith(_DATA_LOSS):
        return GuardError(
            f"messages went while they were read: {line}",
            hint="go on with what is left by --from earliest; nothing was committed",
        )
    short = class_name.rpartition(".")[2]
    if not class_name.startswith(_PACKAGE) and not line.startswith(_NO_ANSWER):
        return None
    if short in _REFUSED:
        return StorageError(
            f"Kafka refuses the connection: {line}",
            hint="correct the credential, or the certificates it names",
        )
    if short in _FORBIDDEN:
        return StorageError(f"Kafka refuses: {line}", hint="ask for the right to this topic")
    if short in _SILENT:
        return StorageError(
            f"Kafka does not answer: {line}",
            hint="see that the brokers are up, then run it again: it goes on where it stopped",
        )
    return None


_OTHER_VERSION = re.compile(
    r"Python in worker has different version: (\S+) than that in driver: ([\d.]+\d)"
)
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_HINT = "name one that they have: engine: {conf: {spark.pyspark.python: /path/to/python}}"


def worker_trouble(messages: Iterable[str]) -> ConfigError | None:
    """The error for workers that cannot run Python as this driver needs it, if that is it."""
    for message in messages:
        if found := _OTHER_VERSION.search(message):
            return ConfigError(
                f"the workers run Python {found[1]}, and the driver Python {found[2]}",
                hint=_HINT,
            )
        if found := _NO_PROGRAM.search(message):
            return ConfigError(f'the workers have no "{found[1]}"', hint=_HINT)
    return None
