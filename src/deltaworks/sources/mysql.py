"""Read a table or a query of MySQL or MariaDB."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.connectors.databases.dialect import Dialect
from deltaworks.connectors.databases.mysql import MYSQL
from deltaworks.connectors.databases.source import DatabaseSource
from deltaworks.contracts.plugin import Example


class MysqlSource(DatabaseSource):
    """Rows of MySQL or MariaDB; one connection reads them as of one point in time."""

    connector: ClassVar[str] = "mysql"
    server: ClassVar[Dialect] = MYSQL
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
