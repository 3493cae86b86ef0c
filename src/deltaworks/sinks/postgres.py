"""Write a table of PostgreSQL."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.contracts.plugin import Example
from deltaworks.engines.database_sink import DatabaseSink
from deltaworks.engines.databases.postgres import POSTGRES
from deltaworks.engines.databases.server import Server


class PostgresSink(DatabaseSink):
    """A table of PostgreSQL; each batch is staged and moved in by one transaction."""

    connector: ClassVar[str] = "postgres"
    server: ClassVar[Server] = POSTGRES
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
