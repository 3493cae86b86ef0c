"""How Kafka is reached, in the words of both clients: librdkafka's and Java's.

Only options on a list are taken. What loads classes, reads files of the machine or says who one is
in a way of its own has no place there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from deltaworks.config.credentials.credential import Credential
from deltaworks.errors import ConfigError, StorageError
from deltaworks.redact import know_secret
from deltaworks.suggest import did_you_mean

PREFIX = "kafka."
SERVERS = "bootstrap.servers"
_PROTOCOL, _MECHANISM = "security.protocol", "sasl.mechanism"
_CA, _CERTIFICATE, _KEY = "ssl.ca.location", "ssl.certificate.location", "ssl.key.location"
_KEY_PASSWORD = "ssl.key.password"  # noqa: S105 - the name of an option
_HOST_CHECK = "ssl.endpoint.identification.algorithm"
_BOTH = (
    SERVERS,
    _PROTOCOL,
    _MECHANISM,
    _HOST_CHECK,
    "client.id",
    "client.rack",
    "client.dns.lookup",
    "connections.max.idle.ms",
    "metadata.max.age.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retry.backoff.ms",
)
_FILES = (_CA, _CERTIFICATE, _KEY, _KEY_PASSWORD)
_JAVA = (
    "default.api.timeout.ms",
    "fetch.max.bytes",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "max.partition.fetch.bytes",
    "max.poll.records",
    "receive.buffer.bytes",
    "request.timeout.ms",
    "send.buffer.bytes",
    "session.timeout.ms",
    "heartbeat.interval.ms",
)
_PRODUCER = (
    "batch.size",
    "buffer.memory",
    "compression.type",
    "delivery.timeout.ms",
    "linger.ms",
    "max.block.ms",
    "max.request.size",
)
KNOWN = (*_BOTH, *_FILES, *_JAVA, *_PRODUCER)
_LOGIN = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_LOGIN}.plain.PlainLoginModule",
    "SCRAM-SHA-256": f"{_LOGIN}.scram.ScramLoginModule",
    "SCRAM-SHA-512": f"{_LOGIN}.scram.ScramLoginModule",
}
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_OF_JAVA = ("ssl.truststore", "ssl.keystore")


def bare(option: str) -> str:
    """The name of an option as Kafka has it, without Spark's prefix."""
    return option.removeprefix(PREFIX)


def option_problem(option: str) -> str:
    """Why an option is not taken; empty when it is."""
    name = bare(option)
    if name in KNOWN:
        return ""
    if name.startswith(_OF_JAVA):
        return f'"{option}": certificates are given as PEM files, by {PREFIX}{_CA} and its like'
    if name.startswith(("sasl.jaas", "sasl.username")) or "password" in name:
        return f'"{option}": say who connects in a credential, by "user" and "password"'
    return f'option "{option}" is not taken; {did_you_mean(name, KNOWN)}'


@dataclass(frozen=True, kw_only=True)
class KafkaAccess:
    """Everything that is needed to reach a cluster; secrets among it."""

    servers: str
    user: str = ""
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def protocol(self) -> str:
        """How the connection is secured; encrypted where somebody logs in, unless said."""
        given = self.options.get(_PROTOCOL, "").upper()
        return given or ("SASL_SSL" if self.user else "SSL" if _CA in self.options else "PLAINTEXT")

    @property
    def mechanism(self) -> str:
        """How the user proves to be the one."""
        return self.options.get(_MECHANISM, "PLAIN").upper()

    def for_librdkafka(self) -> dict[str, str]:
        """Settings of the client that needs no JVM."""
        found = {name: self.options[name] for name in (*_BOTH, *_FILES) if name in self.options}
        found |= {SERVERS: self.servers, _PROTOCOL: self.protocol}
        if _HOST_CHECK in found:
            found[_HOST_CHECK] = found[_HOST_CHECK] or "none"
        if self.protocol.startswith("SASL"):
            found |= {_MECHANISM: self.mechanism}
            found |= {"sasl.username": self.user, "sasl.password": self.password}
        return found

    def for_spark(self) -> dict[str, str]:
        """Options of Spark's source and sink, each with its prefix."""
        plain = {name: text for name, text in self.options.items() if name not in _FILES}
        plain |= {SERVERS: self.servers, _PROTOCOL: self.protocol, **self._certificates()}
        if self.protocol.startswith("SASL"):
            plain |= {_MECHANISM: self.mechanism, "sasl.jaas.config": self._login()}
        return {f"{PREFIX}{name}": text for name, text in plain.items()}

    def _login(self) -> str:
        user, password = (_in_quotes(text) for text in (self.user, self.password))
        know_secret(password)
        return f"{_MODULES[self.mechanism]} required username={user} password={password};"

    def _certificates(self) -> dict[str, str]:
        """PEM texts, which Java takes as well; its own stores librdkafka cannot read."""
        found: dict[str, str] = {}
        if _CA in self.options:
            found["ssl.truststore.type"] = "PEM"
            found["ssl.truststore.certificates"] = _text_of(self.options[_CA])
        if _CERTIFICATE in self.options:
            key = _text_of(self.options.get(_KEY, self.options[_CERTIFICATE]))
            know_secret(key)
            found |= {"ssl.keystore.type": "PEM", "ssl.keystore.key": key}
            found["ssl.keystore.certificate.chain"] = _text_of(self.options[_CERTIFICATE])
        if _KEY_PASSWORD in self.options:
            found[_KEY_PASSWORD] = self.options[_KEY_PASSWORD]
        return found


def kafka_access(
    *, servers: str, options: Mapping[str, str], credential: Credential, name: str
) -> KafkaAccess:
    """What the file says, and for the rest its credential."""
    theirs = {bare(key): text for key, text in credential.options.items()}
    for key in theirs:
        if problem := option_problem(key):
            raise ConfigError(f'credential "{name}": {problem}')
    merged = {**theirs, **{bare(key): text for key, text in options.items()}}
    port = f":{credential.port}" if credential.port else ""
    host = f"{credential.host}{port}" if credential.host else ""
    found = KafkaAccess(
        servers=servers or merged.pop(SERVERS, "") or host,
        user=credential.user,
        password=credential.secret("password"),
        options=merged,
    )
    _require(found)
    return found


def _require(access: KafkaAccess) -> None:
    if not access.servers:
        raise ConfigError(
            "no broker is named", hint='say "servers: broker:9092", or name a credential with it'
        )
    if access.protocol not in _PROTOCOLS:
        hint = did_you_mean(access.protocol, _PROTOCOLS)
        raise ConfigError(f'there is no {_PROTOCOL} "{access.protocol}"', hint=hint)
    if not access.protocol.startswith("SASL"):
        return
    if access.mechanism not in _MODULES:
        hint = did_you_mean(access.mechanism, _MODULES)
        raise ConfigError(f'{_MECHANISM} "{access.mechanism}" is not supported', hint=hint)
    if not (access.user and access.password):
        raise ConfigError(
            f"{access.protocol} needs a user and a password",
            hint="name a credential that has both",
        )


def _in_quotes(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _text_of(path: str) -> str:
    from pathlib import Path

    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f'certificate "{path}" cannot be read: {error.strerror}', hint="correct its path"
        ) from None
