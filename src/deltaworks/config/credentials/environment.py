"""Credentials in environment variables."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from deltaworks.config.credentials.credential import FIELDS, Credential, parse_credential
from deltaworks.errors import ConfigError

PREFIX = "DELTAWORKS_CREDENTIAL__"
"""Before `LAKE` for a whole record as JSON, or before `LAKE__SECRET_KEY` for one field."""


class EnvironmentVault:
    """Reads `DELTAWORKS_CREDENTIAL__LAKE__SECRET_KEY` and the like; nothing is written there."""

    name = "env"
    lists_at_once = True

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ

    def get(self, name: str) -> Credential | None:
        """The credential, if any variable of it is set."""
        start = f"{PREFIX}{_variable(name)}"
        values = _whole(self._environ.get(start, ""), start)
        for variable, value in self._environ.items():
            field = variable.removeprefix(f"{start}__").lower()
            if variable.startswith(f"{start}__") and field in FIELDS:
                values[field] = value
        return parse_credential(values, name=name) if values else None

    def names(self) -> tuple[str, ...]:
        """Names as variables spell them, in small letters."""
        found = [key.removeprefix(PREFIX) for key in self._environ if key.startswith(PREFIX)]
        return tuple(sorted({text.partition("__")[0].lower() for text in found}))

    def has(self, name: str) -> bool:
        """Whether variables of the credential are set."""
        return _variable(name).lower() in self.names()


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name).upper()


def _whole(text: str, variable: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise ConfigError(
            f"environment variable {variable} is not a JSON object",
            hint=f"write one, or set fields one by one, such as {variable}__PASSWORD",
        )
    return values
