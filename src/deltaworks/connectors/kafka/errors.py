"""librdkafka's errors in our words; nowhere else is one of them read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltaworks.errors import ConfigError, DeltaworksError, GuardError, InputError, StorageError

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

_KINDS = {
    "_AUTHENTICATION": "refused",
    "SASL_AUTHENTICATION_FAILED": "refused",
    "TOPIC_AUTHORIZATION_FAILED": "forbidden",
    "CLUSTER_AUTHORIZATION_FAILED": "forbidden",
    "GROUP_AUTHORIZATION_FAILED": "forbidden",
    "_SSL": "untrusted",
    "_AUTO_OFFSET_RESET": "expired",
    "OFFSET_OUT_OF_RANGE": "expired",
    "_INVALID_ARG": "settings",
    "UNKNOWN_TOPIC_OR_PART": "missing",
}
_FINAL = ("refused", "untrusted")


def translated(error: KafkaError, *, servers: str, topic: str) -> DeltaworksError:
    """The error a user should read."""
    said = error.str()
    known: dict[str, DeltaworksError] = {
        "refused": StorageError(
            f"Kafka at {servers} refuses the login",
            hint="correct the user and the password of the credential, or its sasl.mechanism",
        ),
        "forbidden": StorageError(
            f'this user may not look into topic "{topic}"', hint="ask for the right to read it"
        ),
        "untrusted": StorageError(
            f"the connection to Kafka at {servers} is not trusted: {said}",
            hint="name the certificates of its authority by kafka.ssl.ca.location",
        ),
        "expired": GuardError(
            f'messages of topic "{topic}" went before they were read: {said}',
            hint="go on with what is left by --from earliest",
        ),
        "settings": ConfigError(f"Kafka's client does not take its settings: {said}"),
        "missing": InputError(f'there is no topic "{topic}" at {servers}', hint="make it first"),
    }
    silent = StorageError(
        f"Kafka at {servers} does not answer: {said}",
        hint="see that the brokers are up and their addresses right; nothing was read",
    )
    return known.get(_KINDS.get(error.name(), ""), silent)


def is_final(error: KafkaError) -> bool:
    """Whether asking again would not help."""
    return _KINDS.get(error.name()) in _FINAL
