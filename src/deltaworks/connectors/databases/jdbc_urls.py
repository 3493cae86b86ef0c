"""Database systems that are reached by JDBC alone: how their URLs are built."""

from __future__ import annotations

import re
from dataclasses import dataclass

from deltaworks.errors import ConfigError

_DATABASE = re.compile(r"[\w$.-]+")
ALLOWED_OPTIONS = frozenset(("connectTimeout", "encrypt", "loginTimeout", "socketTimeout"))


@dataclass(frozen=True)
class System:
    """One kind of database."""

    url: str
    """The URL, with places for host, port and database."""
    port: int
    driver: str

    def address(self, host: str, port: int | None, database: str) -> str:
        """The URL of a database."""
        if not _DATABASE.fullmatch(database):
            raise ConfigError(
                f'"{database}" cannot be the name of a database in a URL',
                hint='letters, digits, "_", "-", "." and "$" can',
            )
        return self.url.format(host=host, port=port or self.port, database=database)


SYSTEMS = {
    "postgresql": System(
        "jdbc:postgresql://{host}:{port}/{database}", 5432, "org.postgresql.Driver"
    ),
    # Behind its own scheme Spark would quote names as this server does not.
    "mariadb": System(
        "jdbc:mysql://{host}:{port}/{database}?permitMysqlScheme", 3306, "org.mariadb.jdbc.Driver"
    ),
    "sqlserver": System(
        "jdbc:sqlserver://{host}:{port};databaseName={database}",
        1433,
        "com.microsoft.sqlserver.jdbc.SQLServerDriver",
    ),
    "oracle": System(
        "jdbc:oracle:thin:@//{host}:{port}/{database}", 1521, "oracle.jdbc.OracleDriver"
    ),
    "db2": System("jdbc:db2://{host}:{port}/{database}", 50000, "com.ibm.db2.jcc.DB2Driver"),
}
"""By the word that a pipeline has for them."""
