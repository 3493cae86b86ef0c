"""How a plug-in names a credential, and how it gets the record when it is at work."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator

from deltaworks.config.credentials.credential import NAME, NAME_RULE, Credential
from deltaworks.contracts.context import ProjectContext
from deltaworks.contracts.plugin import Plugin


def _well_formed(name: str) -> str:
    if name and NAME.fullmatch(name) is None:
        raise ValueError(f"expected a name: {NAME_RULE}")
    return name


CredentialName = Annotated[str, AfterValidator(_well_formed)]
"""The name of a credential; empty for none."""


class NeedsCredential(Plugin):
    """A plug-in that connects to something; put it before `Source` or `Sink`.

    While files are checked only the name is looked at. `connection` opens the vault, so it is for
    the verbs that connect. What the file itself says wins over the record.
    """

    credential: CredentialName = ""
    """The credential that opens the connection, by its name."""

    def credentials(self) -> tuple[str, ...]:
        return (self.credential,) if self.credential else ()

    def connection(self, project_ctx: ProjectContext) -> Credential:
        """The record behind the name; an empty one when none is named."""
        return project_ctx.credential(self.credential) if self.credential else Credential()
