"""A real Kafka broker on free ports of this machine, which can be killed and started again."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from deltaworks.config.cache import cache_dir
from deltaworks.engines.spark.java.find import find_java
from tests.services.ports import free_port, wait_until
from tools.service_jars import KAFKA_BROKER, fetched

USER, PASSWORD = "orders-reader", 'canary\\kafka"secret-1'
_JAVA = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
)


@dataclass
class Broker:
    """One node: a listener for everybody, and one for a user with a password over TLS."""

    folder: Path
    java: str
    class_path: str
    ports: tuple[int, int, int]
    process: subprocess.Popen[bytes] | None = None
    made: int = field(default=0)

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self.ports[0]}"

    @property
    def secure_servers(self) -> str:
        return f"127.0.0.1:{self.ports[1]}"

    @property
    def ca_file(self) -> Path:
        return self.folder / "ca.pem"

    def format(self) -> None:
        """Make what a new node needs on disk."""
        write_certificate(self.folder)
        (self.folder / "server.properties").write_text(self._settings())
        name = base64.urlsafe_b64encode(os.urandom(16)).decode()[:22]
        self._java("kafka.tools.StorageTool", "format", "--standalone", "-t", name)

    def start(self) -> None:
        """Start it, and wait until it answers; one that somebody killed is let go first."""
        self.kill()
        command = [self.java, *_JAVA, "-cp", self.class_path, "kafka.Kafka"]
        with (self.folder / "broker.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, str(self.folder / "server.properties")], stdout=log, stderr=log
            )
        wait_until(self._refusal, self.folder / "broker.log")

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def topic(self, *, partitions: int = 2, name: str = "", **settings: str) -> str:
        """A new topic, with a name of its own."""
        from confluent_kafka.admin import AdminClient, NewTopic

        self.made += 1
        name = name or f"orders-{self.made}"
        client = AdminClient({"bootstrap.servers": self.servers})  # lives until it has its answer
        new = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
        client.create_topics([new])[name].result(30)
        return name

    def drop(self, topic: str) -> None:
        from confluent_kafka.admin import AdminClient

        client = AdminClient({"bootstrap.servers": self.servers})
        client.delete_topics([topic])[topic].result(30)

    def expire(self, topic: str, before: Mapping[int, int]) -> None:
        """Let the messages before an offset of each partition go."""
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import AdminClient

        parts = [TopicPartition(topic, part, offset) for part, offset in before.items()]
        client = AdminClient({"bootstrap.servers": self.servers})
        for later in client.delete_records(parts).values():
            later.result(30)

    def send(self, topic: str, messages: Sequence[Any], *, partition: int = -1) -> None:
        """Send values: bytes and None as they are, all else as JSON; (key, value) has a key."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers, "linger.ms": 5})
        for message in messages:
            key, value = message if isinstance(message, tuple) else (None, message)
            if value is not None and not isinstance(value, bytes):
                value = json.dumps(value).encode()
            headers: Any = {"from": b"test"}
            producer.produce(topic, value, key=key, partition=partition, headers=headers)
            producer.poll(0)
        assert producer.flush(60) == 0

    def received(self, topic: str) -> list[Any]:
        """All messages of a topic, as another client sees them."""
        from confluent_kafka import Consumer, TopicPartition

        settings = {
            "bootstrap.servers": self.servers,
            "group.id": "tests",
            "enable.auto.commit": False,
        }
        consumer = Consumer(settings)
        try:
            parts = consumer.list_topics(topic, timeout=30).topics[topic].partitions
            spans = {p: consumer.get_watermark_offsets(TopicPartition(topic, p)) for p in parts}
            consumer.assign([TopicPartition(topic, p, low) for p, (low, _) in spans.items()])
            wanted = sum(high - low for low, high in spans.values())
            found: list[Any] = []
            deadline = time.monotonic() + 60
            while len(found) < wanted and time.monotonic() < deadline:
                found.extend(consumer.consume(min(10_000, wanted - len(found)), timeout=1))
            return found
        finally:
            consumer.close()

    def _java(self, *arguments: str) -> None:
        settings = str(self.folder / "server.properties")
        command = [self.java, *_JAVA, "-cp", self.class_path, *arguments, "-c", settings]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def _refusal(self) -> str:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        client = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        try:
            return "" if client.list_topics(timeout=1).brokers else "no broker is there yet"
        except KafkaException as problem:
            return str(problem)

    def _settings(self) -> str:
        plain, secure, control = (f"127.0.0.1:{port}" for port in self.ports)
        listeners = f"OPEN://{plain},SECURE://{secure},CONTROL://{control}"
        module = "org.apache.kafka.common.security.plain.PlainLoginModule"
        quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": control,
            "listeners": listeners,
            "advertised.listeners": listeners,
            "controller.listener.names": "CONTROL",
            "inter.broker.listener.name": "OPEN",
            "listener.security.protocol.map": "OPEN:PLAINTEXT,SECURE:SASL_SSL,CONTROL:PLAINTEXT",
            "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secure.plain.sasl.jaas.config": (
                f'{module} required user_{USER}="{quoted}";'
            ),
            "listener.name.secure.ssl.keystore.type": "PEM",
            "listener.name.secure.ssl.keystore.location": str(self.folder / "server.pem"),
            "log.dirs": str(self.folder / "data"),
            "num.partitions": "2",
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        return "".join(f"{name}={value}\n" for name, value in lines.items())


def broker_jars() -> tuple[Path, ...]:
    """The broker's jars, which `make setup` has brought; an error when they cannot be had."""
    return fetched(KAFKA_BROKER)


@contextmanager
def kafka_broker(folder: Path) -> Iterator[Broker]:
    """A broker with its data in a folder; it ends with the block, whatever happens in it."""
    java = find_java(os.environ, cache=cache_dir(os.environ))
    path = ":".join(map(str, broker_jars()))
    broker = Broker(folder, str(java.executable), path, (free_port(), free_port(), free_port()))
    try:
        broker.format()
        broker.start()
        yield broker
    finally:
        broker.kill()


def write_certificate(folder: Path) -> None:
    """A key and a certificate for 127.0.0.1, which is its own authority."""
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "tests")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("127.0.0.1")]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    (folder / "ca.pem").write_bytes(public)
    (folder / "server.pem").write_bytes(private + public)
