"""What goes wrong at a database, in our words, by the kind of trouble and not by the driver."""

from __future__ import annotations

import re

from deltaworks.connectors.databases.connection_params import Address
from deltaworks.errors import (
    CommitConflict,
    CommitUnknown,
    ConfigError,
    ConstraintViolated,
    DeltaworksError,
    EngineError,
    SpecError,
    TableNotFound,
    Unreachable,
)

_TROUBLE = {
    "login": (ConfigError, "correct user and password of the credential"),
    "database": (ConfigError, "correct the name of the database"),
    "rights": (ConfigError, "let the database's owner grant this user the right"),
    "table": (TableNotFound, "correct the table's name, with its schema where it has one"),
    "statement": (SpecError, "correct the query or the names in it"),
    "writes": (SpecError, "a source only reads: leave out what would write"),
    "rule": (ConstraintViolated, "quarantine such rows with a check; nothing was written"),
    "value": (ConstraintViolated, "cast the column, or quarantine such rows; nothing was written"),
    "conflict": (CommitConflict, "run it again; nothing was written"),
    "connection": (Unreachable, "see that the server is up and can be reached, then run it again"),
}
"""Kinds of trouble -> the error, and what to do about it."""


def database_error(
    kind: str, said: str, address: Address, *, committing: bool = False
) -> DeltaworksError:
    """The error for a kind of trouble; what the server said is part of it."""
    line = first_line(said)
    where = f"database {address.label}"
    if committing and kind == "connection":
        return CommitUnknown(
            f"{where} went away while a batch was committed: {line}",
            hint="run it again: the next run looks whether the batch is in",
        )
    if kind not in _TROUBLE:
        return EngineError(f"{where}: {line}", hint="the message is the server's own")
    make, hint = _TROUBLE[kind]
    return make(f"{where}: {line}", hint=hint)


def first_line(text: str) -> str:
    """The first line of what a server said, without the driver's trimmings."""
    line = next((part.strip() for part in text.splitlines() if part.strip()), "no reason given")
    return re.sub(r"^(ERROR|FATAL):\s*", "", line)
