"""No secret at all: the cloud's own libraries find who they are."""

from __future__ import annotations

from deltaworks.config.credentials.credential import Credential


class CloudVault:
    """Answers every name with an empty record, so that roles and identities apply."""

    name = "cloud"
    lists_at_once = False

    def get(self, name: str) -> Credential | None:
        """A record that names no secret."""
        return Credential()

    def names(self) -> tuple[str, ...]:
        """None that could be listed."""
        return ()

    def has(self, name: str) -> bool:
        """Every name will do."""
        return True
