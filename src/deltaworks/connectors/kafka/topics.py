"""What a topic holds now: its partitions, and the offsets they begin and end at."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

from deltaworks.connectors.kafka.client_config import KafkaAccess
from deltaworks.connectors.kafka.errors import is_final, translated
from deltaworks.errors import InputError, MissingDependencyError
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import AdminClient

Isolation = Literal["read_committed", "read_uncommitted"]
Offsets = Mapping[int, int]
"""Partition -> offset."""
_TRY_SECONDS = 2.0


@dataclass(frozen=True)
class TopicInfo:
    """A topic as it is now."""

    cluster: str
    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class TopicReader:
    """Asks a cluster about one topic."""

    access: KafkaAccess
    topic: str
    isolation: Isolation
    wait_seconds: float
    _faults: list[KafkaError] = field(default_factory=list, repr=False)

    def info(self) -> TopicInfo:
        """The topic; an error with a suggestion when there is none."""
        client = self._client()
        found = self._metadata(client)
        named = found.topics.get(self.topic)
        if named is None or named.error is not None:
            names = [name for name in found.topics if not name.startswith("__")]
            raise InputError(
                f'there is no topic "{self.topic}" at {self.access.servers}',
                hint=did_you_mean(self.topic, names),
            )
        return TopicInfo(
            cluster=str(found.cluster_id),
            topic_id=self._topic_id(client),
            partitions=tuple(sorted(named.partitions)),
        )

    def earliest(self, partitions: Iterable[int]) -> dict[int, int]:
        """The first offset that is kept of each partition."""
        return self._offsets(partitions, lambda spec: spec.earliest())

    def latest(self, partitions: Iterable[int]) -> dict[int, int]:
        """The offset after the last message of each partition."""
        return self._offsets(partitions, lambda spec: spec.latest())

    def at(self, partitions: Iterable[int], moment: datetime) -> dict[int, int]:
        """The offset of the first message from a timestamp on; the end where there is none."""
        wanted = tuple(partitions)
        since_ms = int(moment.timestamp() * 1000)
        found = self._offsets(wanted, lambda spec: spec.for_timestamp(since_ms))
        ends = self.latest(wanted)
        return {part: ends[part] if offset < 0 else offset for part, offset in found.items()}

    def _topic_id(self, client: AdminClient) -> str:
        from confluent_kafka import TopicCollection

        asked = client.describe_topics(
            TopicCollection([self.topic]), request_timeout=self.wait_seconds
        )
        return str(self._answer(client, asked[self.topic]).topic_id)

    def _offsets(self, partitions: Iterable[int], spec: Callable[[Any], Any]) -> dict[int, int]:
        from confluent_kafka import IsolationLevel, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        chosen = spec(OffsetSpec)
        wanted = {TopicPartition(self.topic, part): chosen for part in partitions}
        level = (
            IsolationLevel.READ_COMMITTED
            if self.isolation == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED
        )
        client = self._client()
        asked = client.list_offsets(
            wanted, isolation_level=level, request_timeout=self.wait_seconds
        )
        return {
            part.partition: int(self._answer(client, later).offset) for part, later in asked.items()
        }

    def _client(self) -> AdminClient:
        confluent = kafka_package()
        settings: dict[str, Any] = dict(self.access.for_librdkafka())
        settings |= {"error_cb": self._faults.append, "log_level": 0}
        try:
            return confluent.admin.AdminClient(settings)  # type: ignore[no-any-return]
        except confluent.KafkaException as error:
            raise self._told(error.args[0]) from None

    def _metadata(self, client: AdminClient) -> Any:
        """All topics; asked again while brokers start, and not at all once they have refused."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self.wait_seconds
        while True:
            try:
                return client.list_topics(timeout=min(_TRY_SECONDS, self.wait_seconds))
            except KafkaException as error:
                client.poll(0)
                final = next((fault for fault in self._faults if is_final(fault)), None)
                if final is not None or time.monotonic() > deadline:
                    raise self._told(final or error.args[0]) from None

    def _answer(self, client: AdminClient, later: Any) -> Any:
        from confluent_kafka import KafkaException

        try:
            return later.result()
        except KafkaException as error:
            client.poll(0)
            final = next((fault for fault in self._faults if is_final(fault)), error.args[0])
            raise self._told(final) from None

    def _told(self, error: KafkaError) -> Exception:
        return translated(error, servers=self.access.servers, topic=self.topic)


def kafka_package() -> Any:
    """The client that needs no JVM, or the command that installs it."""
    try:
        import confluent_kafka
        import confluent_kafka.admin
    except ModuleNotFoundError:
        raise MissingDependencyError(
            "Kafka needs the package confluent-kafka, which is not installed",
            hint="pip install 'deltaworks[kafka]'",
        ) from None
    return confluent_kafka
