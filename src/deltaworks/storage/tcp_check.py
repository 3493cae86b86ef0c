"""Whether a server answers at all, and if not, at which step it ends."""

from __future__ import annotations

import socket

from deltaworks.errors import StorageError
from deltaworks.model.probe import Reason

_SECONDS = 10.0


def reach(host: str, port: int, *, tls: bool = False, wait_seconds: float = _SECONDS) -> None:
    """Connect and hang up; an error says whether name, port or certificate is at fault."""
    import ssl

    place = f"{host}:{port}"
    try:
        with socket.create_connection((host, port), timeout=wait_seconds) as connection:
            if tls:
                ssl.create_default_context().wrap_socket(connection, server_hostname=host).close()
    except socket.gaierror:
        raise unreached("dns", f'there is no machine "{host}"', "correct the name") from None
    except TimeoutError:
        raise unreached(
            "timeout",
            f"{place} does not answer within {wait_seconds:g} s",
            "check the address, and that no firewall is in between",
        ) from None
    except ssl.SSLError as problem:
        said = getattr(problem, "verify_message", "") or problem.reason or "no TLS is spoken there"
        raise unreached(
            "tls",
            f"{place} has no TLS that can be trusted: {said}",
            "set SSL_CERT_FILE to the certificates of your network",
        ) from None
    except OSError as problem:
        raise unreached(
            "refused",
            f"{place} does not accept connections: {problem.strerror or problem}",
            "start the server, or correct the port",
        ) from None


def unreached(reason: Reason, message: str, hint: str = "") -> StorageError:
    """The error for what cannot be reached; programs find the reason in its context."""
    return StorageError(message, hint=hint, context={"reason": reason})
