"""Write a table of MySQL or MariaDB."""

from __future__ import annotations

from typing import ClassVar

from deltaworks.connectors.databases.dialect import Dialect
from deltaworks.connectors.databases.mysql import MYSQL
from deltaworks.connectors.databases.sink import DatabaseSink
from deltaworks.contracts.plugin import Example


class MysqlSink(DatabaseSink):
    """A table of MySQL or MariaDB; each batch is staged and moved in by one transaction."""

    connector: ClassVar[str] = "mysql"
    server: ClassVar[Dialect] = MYSQL
    example: ClassVar[Example] = {"credential": "shop", "table": "orders"}
