"""Read a table or a query of MySQL or MariaDB."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.contracts.plugin import Example
from deltaworks.engines.database_source import DatabaseSource
from deltaworks.engines.databases.mysql import MYSQL
from deltaworks.engines.databases.server import Server


class MysqlSource(DatabaseSource):
    """Rows of MySQL or MariaDB; one connection reads them as of one moment."""

    connector: ClassVar[str] = "mysql"
    server: ClassVar[Server] = MYSQL
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
