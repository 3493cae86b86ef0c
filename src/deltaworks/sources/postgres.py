"""Read a table or a query of PostgreSQL."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.contracts.plugin import Example
from deltaworks.engines.database_source import DatabaseSource
from deltaworks.engines.databases.postgres import POSTGRES
from deltaworks.engines.databases.server import Server


class PostgresSource(DatabaseSource):
    """Rows of PostgreSQL, all as of one moment however many connections read them."""

    connector: ClassVar[str] = "postgres"
    server: ClassVar[Server] = POSTGRES
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
