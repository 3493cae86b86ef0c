"""One database server of a test, whichever kind it is, and the site that knows its password."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltaworks.config.credentials.environment import EnvironmentVault
from deltaworks.config.credentials.vault import Vault
from deltaworks.contracts.context import BatchWrite, ProjectContext, RunContext
from deltaworks.contracts.registry import find_plugin
from deltaworks.model.commit import Txn
from tests.services.mariadb_server import MariaDbServer
from tests.services.postgres_server import PostgresServer
from tests.workbench import Workbench

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXTRACT = "extract: {{type: {kind}, credential: shop, {what}}}\n"
TO_DELTA = "load: {type: delta, table: out}\n"


@dataclass(frozen=True)
class Database:
    """A kind of server, by the name that plug-ins have for it, and one of it that runs."""

    kind: str
    server: PostgresServer | MariaDbServer

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """Carry out statements by a client that is not ours."""
        return self.server.sql(*statements)

    def environment(self, **more: Any) -> dict[str, str]:
        """The variable that holds the credential `shop`."""
        return {"DELTAWORKS_CREDENTIAL__SHOP": json.dumps(self.server.record(**more))}

    def project_ctx(self, root: Path, **more: Any) -> ProjectContext:
        """A project whose credential `shop` opens the server."""
        vault = Vault((EnvironmentVault(self.environment(**more)),))
        return ProjectContext(root=root, warehouse=str(root / "warehouse"), vault=vault)

    def made(self, role: str, **options: Any) -> Any:
        """A source or a sink of this server."""
        plugin = find_plugin(role, self.kind)
        assert plugin is not None
        return plugin.model_validate({"credential": "shop", **options})

    def numbers(self, name: str, rows: int) -> None:
        """Make a table of so many rows."""
        values = ", ".join(f"({n}, 'row {n}')" for n in range(1, rows + 1))
        self.sql(
            f"DROP TABLE IF EXISTS {name}",
            f"CREATE TABLE {name} (id int PRIMARY KEY, name varchar(40))",
            f"INSERT INTO {name} VALUES {values}",
        )

    def read(self, ctx: RunContext, **options: Any) -> DataFrame:
        """What a source of this server reads."""
        source = self.made("source", **options)
        frame: DataFrame = source.read(ctx, source.bounds(ctx.project_ctx, None))
        return frame

    def land(self, ctx: RunContext, frame: DataFrame, n: int, **options: Any) -> Any:
        """Land rows as batch `n` of one writer."""
        batch = BatchWrite(n=n, txn=Txn("writer", n), user_metadata="{}")
        return self.made("sink", **options).write(ctx, frame, batch)

    def pipeline(self, bench: Workbench, what: str, load: str = TO_DELTA) -> None:
        """Write the pipeline `p`, which reads from this server."""
        bench.pipeline("p", EXTRACT.format(kind=self.kind, what=what) + load)
