"""Write a table of MySQL or MariaDB."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.contracts.plugin import Example
from deltaworks.engines.database_sink import DatabaseSink
from deltaworks.engines.databases.mysql import MYSQL
from deltaworks.engines.databases.server import Server


class MysqlSink(DatabaseSink):
    """A table of MySQL or MariaDB; each batch is staged and moved in by one transaction."""

    connector: ClassVar[str] = "mysql"
    server: ClassVar[Server] = MYSQL
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
