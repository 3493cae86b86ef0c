"""Where a database is and who connects, as one value from which every driver is told."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from deltaworks.errors import ConfigError
from deltaworks.suggest import did_you_mean

Tls = Literal["disable", "require", "verify-ca", "verify-full"]
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})")


@dataclass(frozen=True, kw_only=True)
class Address:
    """A database on a server, and how to get in."""

    host: str
    port: int
    database: str
    user: str
    password: str = field(default="", repr=False)
    tls: Tls | None = None
    tls_ca: str = ""
    """The file with the certificates that the server's must be signed by."""
    timeout_seconds: int = 10
    options: Mapping[str, str] = field(default_factory=dict)
    """Further options of the JDBC driver, all of them allowed."""

    @property
    def label(self) -> str:
        """The database for people."""
        return f"{self.host}:{self.port}/{self.database}"

    @property
    def url_host(self) -> str:
        """The host as a URL wants it."""
        return f"[{self.host}]" if ":" in self.host else self.host


def require_host(host: str) -> str:
    """The host, if it is a name or an address and nothing that could end the host in a URL."""
    if _HOST.fullmatch(host):
        return host
    try:
        return str(ipaddress.ip_address(host.strip("[]")))
    except ValueError:
        raise ConfigError(
            f'"{host}" is not the name or address of a server', hint="such as db.example.org"
        ) from None


def require_allowed(options: Mapping[str, str], allowed: frozenset[str], *, server: str) -> None:
    """Refuse an option of a driver that is not known to be harmless."""
    for name in options:
        if name not in allowed:
            raise ConfigError(
                f'"{name}" is not an option that a {server} connection may have',
                hint=did_you_mean(name, sorted(allowed)),
            )
