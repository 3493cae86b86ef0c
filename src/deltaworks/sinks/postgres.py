"""Write a table of PostgreSQL."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.connectors.databases.dialect import Dialect
from deltaworks.connectors.databases.postgres import POSTGRES
from deltaworks.connectors.databases.sink import DatabaseSink
from deltaworks.contracts.plugin import Example


class PostgresSink(DatabaseSink):
    """A table of PostgreSQL; each batch is staged and moved in by one transaction."""

    connector: ClassVar[str] = "postgres"
    server: ClassVar[Dialect] = POSTGRES
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
