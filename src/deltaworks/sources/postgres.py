"""Read a table or a query of PostgreSQL."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.connectors.databases.dialect import Dialect
from deltaworks.connectors.databases.postgres import POSTGRES
from deltaworks.connectors.databases.source import DatabaseSource
from deltaworks.contracts.plugin import Example


class PostgresSource(DatabaseSource):
    """Rows of PostgreSQL, all as of one point in time however many connections read them."""

    connector: ClassVar[str] = "postgres"
    server: ClassVar[Dialect] = POSTGRES
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
