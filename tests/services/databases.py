"""One database server of a test, whichever kind it is, and the site that knows its password."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltaworks.config.vault.environment import EnvironmentVault
from deltaworks.config.vault.lookup import Vault
from deltaworks.contracts.context import Site
from deltaworks.contracts.registry import find_plugin
from tests.services.mariadb_server import MariaDbServer
from tests.services.postgres_server import PostgresServer


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

    def site(self, root: Path, **more: Any) -> Site:
        """A project whose credential `shop` opens the server."""
        vault = Vault((EnvironmentVault(self.environment(**more)),))
        return Site(root=root, warehouse=str(root / "warehouse"), vault=vault)

    def made(self, role: str, **options: Any) -> Any:
        """A source or a sink of this server."""
        plugin = find_plugin(role, self.kind)
        assert plugin is not None
        return plugin.model_validate({"credential": "shop", **options})
