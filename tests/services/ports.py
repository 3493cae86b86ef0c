"""Free ports, and waiting for who opens them."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

_START_SECONDS = 60


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(refusal: Callable[[], str], log: Path) -> None:
    """Wait until a server answers, or show the end of its log."""
    deadline = time.monotonic() + _START_SECONDS
    while reason := refusal():
        if time.monotonic() > deadline:
            tail = log.read_text(errors="replace")[-2000:]
            raise RuntimeError(f"the server does not start: {reason}\n{tail}")
        time.sleep(0.1)
