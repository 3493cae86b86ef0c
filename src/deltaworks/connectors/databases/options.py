"""What sources and sinks of databases have in common: where the server is, and who connects."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from deltaworks.connectors.databases.connection_params import (
    Address,
    Tls,
    require_allowed,
    require_host,
)
from deltaworks.connectors.databases.dialect import Dialect
from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.credentials import NeedsCredential
from deltaworks.contracts.plugin import TextMap
from deltaworks.errors import ConfigError


class DatabaseOptions(NeedsCredential):
    """A plug-in that speaks to a database; put it before `Source` or `Sink`."""

    server: ClassVar[Dialect]

    host: str = ""
    """The server; what its credential says when left out."""
    port: int | None = Field(default=None, ge=1, le=65535)
    """The server's port; the usual one when neither this nor the credential says it."""
    database: str = ""
    """The database on the server; what the credential says when left out."""
    tls: Tls | None = None
    """Whether the connection is encrypted, and the server's certificate looked at."""
    tls_ca: str = ""
    """The file with the certificates that the server's must be signed by."""
    connect_timeout_seconds: int = Field(default=10, ge=1, le=600)
    """How long to wait for the server."""
    options: TextMap = Field(default_factory=dict)
    """Further options of the JDBC driver; only those that can do no harm are taken."""

    def address(self, project_ctx: ProjectContext) -> Address:
        """Where to connect: what the file says, then what its credential says."""
        record, server = self.connection(project_ctx), self.server
        host = self.host or record.host
        database = self.database or record.database
        for name, value in (("host", host), ("database", database)):
            if not value:
                raise ConfigError(
                    f'a {self.plugin_type()} connection needs "{name}"',
                    hint=f'say "{name}" in the file or keep it in the credential',
                )
        ca = project_ctx.path(self.tls_ca) if self.tls_ca else ""
        if ca and not Path(ca).is_file():
            raise ConfigError(f'there is no file "{self.tls_ca}" with certificates')
        options = {**record.options, **self.options}
        require_allowed(options, server.allowed_options, server=server.title)
        return Address(
            host=require_host(host),
            port=self.port or record.port or server.default_port,
            database=database,
            user=record.user,
            password=record.secret("password"),
            tls=self.tls,
            tls_ca=ca,
            timeout_seconds=self.connect_timeout_seconds,
            options=options,
        )

    def option_problems(self) -> list[str]:
        """What is wrong with the connection as far as the file tells."""
        try:
            require_allowed(self.options, self.server.allowed_options, server=self.server.title)
            if self.host:
                require_host(self.host)
        except ConfigError as problem:
            return [f"{problem.message}{f'; {problem.hint}' if problem.hint else ''}"]
        return []
