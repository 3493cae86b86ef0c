"""What a source and a sink of Kafka have in common: a topic, and how its cluster is reached."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from deltaworks.connectors.kafka.client_config import (
    PREFIX,
    SERVERS,
    KafkaAccess,
    kafka_access,
    option_problem,
)
from deltaworks.connectors.kafka.topics import Isolation, TopicReader
from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.duration import Duration, duration
from deltaworks.contracts.plugin import TextMap


class KafkaTopic(NeedsCredential):
    """A topic of a cluster."""

    connector: ClassVar[str] = "kafka"

    topic: str
    """The topic's name."""
    servers: str = ""
    """Brokers to begin with, such as `broker-1:9092,broker-2:9092`; the credential's otherwise."""
    options: TextMap = Field(default_factory=dict)
    """Options of Kafka's client by its own names, such as `kafka.security.protocol`."""
    timeout: Duration = "60s"
    """How long the brokers may be silent before the run fails."""

    def problems(self) -> tuple[str, ...]:
        found = [problem for key in self.options if (problem := option_problem(key))]
        said = {SERVERS, f"{PREFIX}{SERVERS}"} & set(self.options)
        if self.servers and said:
            found.append(f'"servers" and the option "{min(said)}" say the same: leave one out')
        if not (self.servers or said or self.credential):
            found.append('say "servers", or name a "credential" that has the brokers')
        return tuple(found)

    def access(self, project_ctx: ProjectContext) -> KafkaAccess:
        """How the cluster is reached; the vault is opened for it."""
        return kafka_access(
            servers=self.servers,
            options=self.options,
            credential=self.connection(project_ctx),
            name=self.credential,
        )

    @property
    def wait_ms(self) -> int:
        """The same as a number."""
        return int(duration(self.timeout).total_seconds() * 1000)

    def reader(
        self, project_ctx: ProjectContext, isolation: Isolation = "read_committed"
    ) -> TopicReader:
        """Who asks the cluster about the topic."""
        wait_seconds = self.wait_ms / 1000
        return TopicReader(
            access=self.access(project_ctx),
            topic=self.topic,
            isolation=isolation,
            wait_seconds=wait_seconds,
        )
