"""What a JDBC driver says when a server refuses or goes away, in our words."""

from __future__ import annotations

import re

from deltaworks.errors import ConstraintViolated, DeltaworksError, EngineError, Unreachable

_DRIVERS = ("java.sql.", "org.postgresql.", "org.mariadb.jdbc.")
_QUOTED = re.compile(r"((?:java\.sql|org\.postgresql|org\.mariadb\.jdbc)\.[\w.]+Exception): (.+)")
_LOST = re.compile(
    r"I/O error|connection.*(closed|refused|reset|lost|attempt failed)|terminating connection"
    r"|server closed|Broken pipe|Socket|is closing|shutting down|unexpected end of stream",
    re.IGNORECASE,
)
_RULE = re.compile(r"violates|constraint|duplicate|cannot be null|out of range|too long|invalid")


def jdbc_error(class_name: str, message: str) -> DeltaworksError | None:
    """The error for what a driver raised; None when it was not a driver."""
    if not class_name.startswith(_DRIVERS):
        # A task that failed elsewhere is told in words, where its classes are not at hand.
        quoted = _QUOTED.search(message)
        return jdbc_error(quoted[1], quoted[2]) if quoted else None
    said = re.sub(r"^(\(conn=\d+\)\s*|Batch entry .*? was aborted: )?(ERROR:\s*)?", "", message)
    line = next((part.strip() for part in said.splitlines() if part.strip()), class_name)
    if _LOST.search(message) or "Connection" in class_name.rpartition(".")[2]:
        return Unreachable(
            f"the database went away: {line}",
            hint="see that the server is up and can be reached, then run it again",
        )
    if _RULE.search(line):
        return ConstraintViolated(
            f"the database refuses a row: {line}",
            hint="set such rows aside with a check; nothing was written",
        )
    return EngineError(f"the database says: {line}", hint="the message is the server's own")
