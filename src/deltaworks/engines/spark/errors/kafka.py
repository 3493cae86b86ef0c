"""What Spark's connector to Kafka says when brokers are silent, refuse, or have lost messages."""

from __future__ import annotations

from deltaworks.errors import DeltaworksError, GuardError, StorageError

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
