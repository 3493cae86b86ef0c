"""Give Java the certificates and proxies that Python's tools take from the environment."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from deltaworks.config.cache import write_atomically
from deltaworks.errors import ConfigError, StorageError

CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
# Java's own default, which is lost as soon as the property is set.
_NEVER_PROXIED = ("localhost", "127.*", "[::1]")
# Not a secret: a store of public certificates is only checked for damage with it.
_STORE_PASSWORD = "changeit"  # noqa: S105


def java_network_options(environ: Mapping[str, str], *, cache: Path) -> list[str]:
    """Everything a Java program needs to reach the network the way pip does."""
    return [*trust_options(environ, cache=cache), *proxy_options(environ)]


def trust_options(environ: Mapping[str, str], *, cache: Path) -> list[str]:
    """Java options for the certificates the environment names, or none."""
    if "javax.net.ssl.trustStore" in environ.get("JAVA_TOOL_OPTIONS", ""):
        return []
    certificates = list(dict.fromkeys(_named_certificates(environ)))
    if not certificates:
        return []
    store = _key_store(certificates)
    path = cache / "trust" / f"{hashlib.sha256(store).hexdigest()[:16]}.jks"
    try:
        if not path.is_file():
            write_atomically(path, store)
    except OSError as error:
        raise StorageError(
            f"cannot write Java's certificate store {path}: {error.strerror}",
            hint="set DELTAWORKS_CACHE to a folder that can be written to",
        ) from error
    return [f"-Djavax.net.ssl.trustStore={path}", "-Djavax.net.ssl.trustStoreType=jks"]


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Java options for the proxies the environment names, or none."""
    exceptions = _split(_either(environ, "NO_PROXY"))
    if "*" in exceptions:
        return []
    options: list[str] = []
    for scheme in ("http", "https"):
        variable = f"{scheme.upper()}_PROXY"
        value = _either(environ, variable)
        if value:
            options.extend(_proxy(scheme, _parse_proxy(variable, value)))
    if options:
        hosts = "|".join(dict.fromkeys([*_patterns(exceptions), *_NEVER_PROXIED]))
        options.append(f"-Dhttp.nonProxyHosts={hosts}")
    return options


def _named_certificates(environ: Mapping[str, str]) -> Iterator[bytes]:
    paths = dict.fromkeys(environ.get(variable, "") for variable in CERTIFICATE_VARIABLES)
    for path in paths:
        if path and Path(path).is_file():
            yield from _read_pem(Path(path))


def _read_pem(path: Path) -> Iterator[bytes]:
    for block in _PEM.findall(path.read_text(encoding="ascii", errors="replace")):
        try:
            yield base64.b64decode("".join(block.split("-----")[2].split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ConfigError(
                f"{path} holds a damaged certificate",
                hint=f"repair the file that {' / '.join(CERTIFICATE_VARIABLES)} names",
            ) from error


def _key_store(certificates: Iterable[bytes]) -> bytes:
    """A Java key store of trusted certificates, in the format every Java reads.

    Written here because keytool starts a JVM for each certificate, and bundles hold
    more than a hundred: this takes milliseconds.
    """
    entries = [
        struct.pack(">I", 2)
        + _text(f"ca-{number}")
        + struct.pack(">Q", 0)
        + _text("X.509")
        + struct.pack(">I", len(der))
        + der
        for number, der in enumerate(certificates)
    ]
    body = struct.pack(">III", 0xFEEDFEED, 2, len(entries)) + b"".join(entries)
    # The format fixes this digest; it guards against damage, not against an attacker.
    salt = _STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(salt + body, usedforsecurity=False).digest()


def _text(value: str) -> bytes:
    return struct.pack(">H", len(value)) + value.encode("ascii")


def _either(environ: Mapping[str, str], name: str) -> str:
    return (environ.get(name.lower()) or environ.get(name) or "").strip()


def _split(value: str) -> list[str]:
    return [part for part in re.split(r"[,\s]+", value) if part]


def _parse_proxy(variable: str, value: str) -> SplitResult:
    parts = urlsplit(value if "://" in value else f"http://{value}")
    try:
        usable = bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        # The value may hold a password, so it is not repeated.
        raise ConfigError(
            f"{variable} is not a proxy address", hint=f"write it as {variable}=http://host:port"
        )
    return parts


def _proxy(scheme: str, parts: SplitResult) -> list[str]:
    # A user and password in the address are left out: Java would need them on its
    # command line, where every user of the machine can read them.
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if parts.scheme.startswith("socks"):
        return [f"-DsocksProxyHost={parts.hostname}", f"-DsocksProxyPort={parts.port or 1080}"]
    return [f"-D{scheme}.proxyHost={parts.hostname}", f"-D{scheme}.proxyPort={port}"]


def _patterns(exceptions: Iterable[str]) -> Iterator[str]:
    for exception in exceptions:
        if "/" in exception:
            continue  # Java knows no address ranges.
        name = exception.removeprefix("*").removeprefix(".")
        yield name
        yield f"*.{name}"
