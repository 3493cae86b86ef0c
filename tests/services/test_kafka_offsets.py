"""Which messages a batch reads, asked of a real broker without a JVM of ours."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deltaworks.config.credentials.environment import EnvironmentVault
from deltaworks.config.credentials.vault import Vault
from deltaworks.connectors.kafka.consumer import consumed
from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import ConfigError, DeltaworksError, GuardError, InputError, StorageError
from deltaworks.model.batch import Bounds
from deltaworks.sources.kafka import KafkaSource
from tests.services.kafka_broker import PASSWORD, USER, Broker
from tests.services.ports import free_port


@pytest.fixture
def project_ctx(tmp_path: Path) -> ProjectContext:
    return ProjectContext(root=tmp_path, warehouse=str(tmp_path))


def made(kafka: Broker, topic: str, **more: Any) -> KafkaSource:
    entry = {"topic": topic, "servers": kafka.servers, "incremental": True, **more}
    return KafkaSource.model_validate(entry)


def span(bounds: Bounds) -> dict[str, tuple[int, int]]:
    start, end = bounds.position["start"], bounds.position["end"]
    return {part: (start[part], end[part]) for part in start}


def test_offsets_are_pinned_and_go_on_from_the_last_ones(
    kafka: Broker, project_ctx: ProjectContext
) -> None:
    topic = kafka.topic(partitions=2)
    source = made(kafka, topic)
    kafka.send(topic, [1, 2, 3], partition=0)
    kafka.send(topic, [4], partition=1)
    first = source.bounds(project_ctx, None)
    assert span(first) == {"0": (0, 3), "1": (0, 1)}
    assert first.summary() == "4 offsets of 2 partitions"
    kafka.send(topic, [5], partition=1)
    second = source.bounds(project_ctx, first)
    assert span(second) == {"0": (3, 3), "1": (1, 2)}
    assert source.bounds(project_ctx, second).nothing
    assert span(second.from_the_start()) == {"0": (0, 3), "1": (0, 2)}
    assert Bounds.from_json(second.to_json()) == second
    assert source.still_there(project_ctx, first) == ""


def test_a_batch_may_be_no_larger_than_is_said(kafka: Broker, project_ctx: ProjectContext) -> None:
    topic = kafka.topic(partitions=2)
    kafka.send(topic, list(range(8)), partition=0)
    kafka.send(topic, [1], partition=1)
    source = made(kafka, topic, max_offsets_per_batch=4)
    first = source.bounds(project_ctx, None)
    assert (first.messages, first.waiting) == (4, 5)
    assert first.summary() == "4 offsets of 2 partitions, 5 more are waiting"
    second = source.bounds(project_ctx, first)
    third = source.bounds(project_ctx, second)
    assert (second.messages, third.messages, third.waiting) == (4, 1, 0)


def test_a_new_partition_is_read_from_its_beginning(
    kafka: Broker, project_ctx: ProjectContext
) -> None:
    from confluent_kafka.admin import AdminClient, NewPartitions

    topic = kafka.topic(partitions=1)
    kafka.send(topic, [1])
    source = made(kafka, topic)
    first = source.bounds(project_ctx, None)
    client = AdminClient({"bootstrap.servers": kafka.servers})
    client.create_partitions([NewPartitions(topic, 2)])[topic].result(30)
    deadline = time.monotonic() + 30
    while (
        len(source.bounds(project_ctx, first).position["start"]) < 2 and time.monotonic() < deadline
    ):
        time.sleep(0.2)
    kafka.send(topic, [2], partition=1)
    assert span(source.bounds(project_ctx, first)) == {"0": (1, 1), "1": (0, 1)}


def test_offsets_that_have_expired_are_an_error_with_the_choices(
    kafka: Broker, project_ctx: ProjectContext
) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [1, 2, 3, 4])
    source = made(kafka, topic, max_offsets_per_batch=1)
    first = source.bounds(project_ctx, None)
    kafka.expire(topic, {0: 3})
    with pytest.raises(GuardError, match="begins at offset 3, and the next one to read is 1: 2"):
        source.bounds(project_ctx, first)
    assert "has expired" in source.still_there(project_ctx, first)
    begun = source.start_at(project_ctx, "earliest")
    assert span(source.bounds(project_ctx, begun)) == {"0": (3, 4)}
    assert source.bounds(project_ctx, source.start_at(project_ctx, "latest")).nothing
    assert source.bounds(project_ctx, source.start_at(project_ctx, "2100-01-01")).nothing
    with pytest.raises(ValueError, match="not a timestamp"):
        source.start_at(project_ctx, "yesterday")


def test_a_topic_that_was_made_anew_is_told(kafka: Broker, project_ctx: ProjectContext) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [1, 2])
    source = made(kafka, topic)
    first = source.bounds(project_ctx, None)
    kafka.drop(topic)
    deadline = time.monotonic() + 30
    while "no topic" not in source.still_there(project_ctx, first) and time.monotonic() < deadline:
        time.sleep(0.2)
    kafka.topic(partitions=1, name=topic)
    with pytest.raises(GuardError, match="was recreated") as caught:
        source.bounds(project_ctx, first)
    assert "--from earliest" in caught.value.hint
    assert "is another one now" in source.still_there(project_ctx, first)
    assert source.bounds(project_ctx, source.start_at(project_ctx, "earliest")).nothing
    other = made(kafka, kafka.topic())
    assert other.bounds(project_ctx, first).nothing  # the offsets of another topic do not count


def test_what_a_file_asks_for_must_be_there(kafka: Broker, project_ctx: ProjectContext) -> None:
    topic = kafka.topic(partitions=2)
    kafka.send(topic, [1, 2], partition=0)
    plain = {"incremental": False}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"starting_offsets": {0: 0}}, "has a partition 1, for which no offset is named"),
        ({"starting_offsets": {0: 0, 1: 0, 7: 0}}, "has no partition 7"),
        ({"ending_offsets": {0: 9, 1: 0}}, "partition 0 has no offset 9"),
        (
            {"starting_offsets": "latest", "ending_offsets": {0: 1, 1: 0}},
            "the start of partition 0 lies after its end",
        ),
    ]
    for more, message in wrong:
        with pytest.raises(InputError, match=message):
            made(kafka, topic, **plain, **more).bounds(project_ctx, None)
    with pytest.raises(InputError, match='no topic "orders-x"'):
        made(kafka, "orders-x").bounds(project_ctx, None)


def test_what_was_read_must_not_be_ahead_of_the_topic(
    kafka: Broker, project_ctx: ProjectContext
) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [1])
    source = made(kafka, topic)
    found = source.bounds(project_ctx, None)
    ahead = Bounds.from_json(
        {**found.to_json(), "position": {**found.position, "end": {"0": 5, "3": 1}}}
    )
    with pytest.raises(GuardError, match="ends at offset 1, though all before 5 was read"):
        source.bounds(project_ctx, ahead)
    lost = Bounds.from_json(
        {**found.to_json(), "position": {**found.position, "end": {"0": 1, "3": 1}}}
    )
    with pytest.raises(GuardError, match="has lost partition 3"):
        source.bounds(project_ctx, lost)


def told(kafka: Broker, project_ctx: ProjectContext, **more: Any) -> DeltaworksError:
    """What is said where a cluster cannot be asked."""
    with pytest.raises(DeltaworksError) as caught:
        made(kafka, "orders", timeout="6s", **more).bounds(project_ctx, None)
    return caught.value


def test_who_is_not_let_in_is_told_so(kafka: Broker, project_ctx: ProjectContext) -> None:
    environ = {"DELTAWORKS_CREDENTIAL__B__USER": USER}
    silent = told(kafka, project_ctx, servers=f"127.0.0.1:{free_port()}")
    assert isinstance(silent, StorageError)
    assert "does not answer" in silent.message
    tls = {"servers": kafka.secure_servers, "options": {"kafka.security.protocol": "SSL"}}
    untrusted = told(kafka, project_ctx, **tls)
    assert "is not trusted" in untrusted.message
    project_ctx = replace(project_ctx, vault=Vault((EnvironmentVault(environ),)))
    assert isinstance(told(kafka, project_ctx, credential="b"), ConfigError)
    environ["DELTAWORKS_CREDENTIAL__B__PASSWORD"] = "wrong-" + PASSWORD
    secure = {"servers": kafka.secure_servers, "credential": "b"}
    options = {"ssl.ca.location": str(kafka.ca_file)}
    refused = told(kafka, project_ctx, **secure, options=options)
    assert "refuses the login" in refused.message
    assert "is not trusted" in told(kafka, project_ctx, **secure).message
    nowhere = {"servers": kafka.servers, "options": {"ssl.ca.location": "/nowhere/ca.pem"}}
    assert isinstance(told(kafka, project_ctx, **nowhere), ConfigError | StorageError)


def test_what_a_topic_does_not_have_cannot_be_asked_for(
    kafka: Broker, project_ctx: ProjectContext
) -> None:
    topic = kafka.topic(partitions=1)
    kafka.send(topic, [1])
    reader = made(kafka, topic).reader(project_ctx)
    with pytest.raises(DeltaworksError):
        reader.earliest([99])
    with pytest.raises(GuardError, match="went before they were read"):
        list(consumed(reader, {0: 50}, {0: 60}))
    silent = made(kafka, topic, servers=f"127.0.0.1:{free_port()}", timeout="2s").reader(
        project_ctx
    )
    with pytest.raises(StorageError, match="does not answer"):
        list(consumed(silent, {0: 0}, {0: 1}))
