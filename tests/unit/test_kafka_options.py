"""What may be said of Kafka, and what both of its clients are told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from deltaworks.config.credentials.credential import parse_credential
from deltaworks.connectors.kafka.client_config import KafkaAccess, kafka_access, option_problem
from deltaworks.connectors.kafka.errors import translated
from deltaworks.connectors.kafka.offsets import identity_of, same_name
from deltaworks.connectors.kafka.topics import TopicInfo
from deltaworks.engines.spark.errors.connectors import kafka_error
from deltaworks.errors import (
    ConfigError,
    GuardError,
    InputError,
    MissingDependencyError,
    StorageError,
)
from deltaworks.redact import scrub
from deltaworks.sinks.kafka import KafkaSink
from deltaworks.sources.kafka import KafkaSource


def access(servers: str = "", said: dict[str, str] | None = None, **record: Any) -> KafkaAccess:
    """What a file says, and its credential."""
    credential = parse_credential(record, name="broker")
    return kafka_access(servers=servers, options=said or {}, credential=credential, name="broker")


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("kafka.interceptor.classes", "is not taken"),
        ("kafka.config.providers", "is not taken"),
        ("kafka.ssl.engine.factory.class", "is not taken"),
        ("kafka.sasl.login.callback.handler.class", "is not taken"),
        ("kafka.key.deserializer", "is not taken"),
        ("kafka.client.idd", 'did you mean "client.id"?'),
        ("kafka.sasl.jaas.config", "in a credential"),
        ("kafka.sasl.password", "in a credential"),
        ("kafka.ssl.truststore.location", "PEM files"),
        ("kafka.client.id", ""),
        ("fetch.max.bytes", ""),
    ],
)
def test_only_options_that_are_known_to_be_safe_are_taken(option: str, said: str) -> None:
    found = option_problem(option)
    assert said in found if said else found == ""


def test_a_plain_cluster_needs_its_brokers_only() -> None:
    found = access("b:9092", {"kafka.client.id": "me", "fetch.max.bytes": "9"})
    assert found.for_librdkafka() == {
        "bootstrap.servers": "b:9092",
        "security.protocol": "PLAINTEXT",
        "client.id": "me",
    }
    assert found.for_spark() == {
        "kafka.bootstrap.servers": "b:9092",
        "kafka.security.protocol": "PLAINTEXT",
        "kafka.client.id": "me",
        "kafka.fetch.max.bytes": "9",
    }


def test_who_logs_in_does_so_over_tls_unless_said_otherwise(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"PEM of the {name}")
    options = {
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "cert"),
        "ssl.key.location": str(tmp_path / "key"),
        "ssl.key.password": "open-the-key",
        "ssl.endpoint.identification.algorithm": "",
    }
    record: dict[str, Any] = {
        "host": "b",
        "port": 9093,
        "user": "me",
        "password": 'a\\"b-secret',
        "options": options,
    }
    found = access(**record)
    theirs = found.for_librdkafka()
    assert theirs["security.protocol"] == "SASL_SSL"
    assert (theirs["sasl.username"], theirs["sasl.password"]) == ("me", 'a\\"b-secret')
    assert theirs["ssl.endpoint.identification.algorithm"] == "none"
    spark = found.for_spark()
    assert spark["kafka.bootstrap.servers"] == "b:9093"
    assert spark["kafka.ssl.truststore.certificates"] == "PEM of the ca"
    assert spark["kafka.ssl.keystore.key"] == "PEM of the key"
    assert spark["kafka.ssl.key.password"] == "open-the-key"
    assert spark["kafka.sasl.jaas.config"].endswith('password="a\\\\\\"b-secret";')
    told = " ".join(map(scrub, (str(found), *theirs.values(), *spark.values())))
    assert "b-secret" not in told
    assert "open-the-key" not in told
    assert "PEM of the key" not in told
    plain = access(**{**record, "options": {"security.protocol": "sasl_plaintext"}})
    assert plain.protocol == "SASL_PLAINTEXT"
    assert access("b:1", {"ssl.ca.location": "x"}).protocol == "SSL"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({}, "no broker is named"),
        ({"host": "b", "options": {"security.protocol": "TLS"}}, "no security.protocol"),
        ({"host": "b", "options": {"security.protocol": "SASL_SSL"}}, "needs a user"),
        ({"host": "b", "user": "u", "options": {"sasl.mechanism": "GSSAPI"}}, "not supported"),
        ({"host": "b", "options": {"sasl.jaas.config": "x"}}, 'credential "broker"'),
    ],
)
def test_a_connection_that_cannot_work_is_told_before_it_is_tried(
    record: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        access(**record)


def test_a_certificate_that_is_not_there_is_named() -> None:
    with pytest.raises(StorageError, match="cannot be read: No such file"):
        access("b", {"ssl.ca.location": "/nowhere/ca.pem"}).for_spark()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"servers": ""}, 'say "servers"'),
        ({"options": {"kafka.bootstrap.servers": "c:1"}}, "leave one out"),
        ({"options": {"kafka.group.id": "x"}}, "is not taken"),
        ({"message_columns": ["ofset"]}, 'did you mean "offset"?'),
        ({"format": "avro"}, "belong together"),
        ({"format": "raw", "schema": "id int"}, "are for JSON"),
        ({"schema": "id int", "schema_of": "t"}, "exclude each other"),
        ({"starting_timestamp": "2026-01-01", "starting_offsets": "latest"}, '"starting_offsets"'),
        ({"ending_timestamp": "2026-01-01", "ending_offsets": {0: 1}}, '"ending_offsets"'),
        ({"incremental": True, "ending_timestamp": "2026-01-01"}, "reads up to the end"),
        ({"max_offsets_per_batch": 5}, 'needs "incremental: true"'),
    ],
)
def test_what_contradicts_itself_is_told(more: dict[str, Any], said: str) -> None:
    source = KafkaSource.model_validate({"topic": "t", "servers": "b:1", **more})
    assert said in " ".join(source.problems())


def test_a_moment_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="not a timestamp"):
        KafkaSource.model_validate({"topic": "t", "starting_timestamp": "soon"})


@pytest.mark.parametrize("field", [{"order_by": ["id"]}, {"tombstone_where": "gone"}])
def test_order_and_tombstones_need_a_key(field: dict[str, Any]) -> None:
    sink = KafkaSink.model_validate({"topic": "t", "servers": "b:1", **field})
    assert 'say "merge_keys"' in " ".join(sink.problems())


@pytest.mark.parametrize("topic_id", ["9K/JTGlvQh+Ihz64CRvxuQ", "/a/b/", "plain"])
def test_a_topic_is_known_again_whatever_signs_its_id_has(topic_id: str) -> None:
    found = identity_of("shop.orders_1", TopicInfo("a/b+c", topic_id, (0,)))
    assert same_name(found, "shop.orders_1")
    assert not same_name(found, "orders_1")
    assert found != identity_of("shop.orders_1", TopicInfo("a/b+c", "another", (0,)))


class Fault:
    """What librdkafka raises, as far as it is looked at."""

    def __init__(self, name: str) -> None:
        self._name = name

    def name(self) -> str:
        return self._name

    def str(self) -> str:
        return "so it says"


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("_AUTHENTICATION", StorageError, "refuses the login"),
        ("TOPIC_AUTHORIZATION_FAILED", StorageError, "may not look into"),
        ("_SSL", StorageError, "is not trusted"),
        ("_AUTO_OFFSET_RESET", GuardError, "went before they were read"),
        ("_INVALID_ARG", ConfigError, "does not take its settings"),
        ("UNKNOWN_TOPIC_OR_PART", InputError, "no topic"),
        ("_TRANSPORT", StorageError, "does not answer: so it says"),
    ],
)
def test_the_python_client_is_put_into_words(name: str, kind: type[Exception], said: str) -> None:
    found = translated(Fault(name), servers="b:1", topic="t")  # type: ignore[arg-type]
    assert isinstance(found, kind)
    assert said in str(found)


@pytest.mark.parametrize(
    ("class_name", "condition", "kind"),
    [
        ("org.apache.spark.sql.kafka010.X", "KAFKA_DATA_LOSS.START_OFFSET_RESET", GuardError),
        ("org.apache.kafka.common.errors.SaslAuthenticationException", "", StorageError),
        ("org.apache.kafka.common.errors.TopicAuthorizationException", "", StorageError),
        ("org.apache.kafka.common.errors.TimeoutException", "", StorageError),
    ],
)
def test_the_java_client_is_put_into_words(
    class_name: str, condition: str, kind: type[Exception]
) -> None:
    assert isinstance(kafka_error(class_name=class_name, condition=condition, line="x"), kind)
    assert kafka_error(class_name="java.lang.Error", condition="", line="x") is None
    unknown = "org.apache.kafka.common.errors.InvalidTopicException"
    assert kafka_error(class_name=unknown, condition="", line="x") is None


def test_a_missing_client_is_told_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from deltaworks.connectors.kafka.topics import kafka_package

    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(MissingDependencyError) as caught:
        kafka_package()
    assert caught.value.hint == "pip install 'deltaworks[kafka]'"
