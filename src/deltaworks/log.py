"""Our own log: quiet by default, everything with --debug."""

from __future__ import annotations

import logging
import sys

_WIRE = ("py4j", "py4j.clientserver", "py4j.java_gateway")
# PySpark prints every error a second time through these, with its Java stack, as one JSON line.
ERROR_ECHOES = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


def set_up_logging(*, debug: bool) -> None:
    """Warnings go to stderr; with debug everything does."""
    logging.captureWarnings(capture=True)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if debug else logging.ERROR,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        force=True,
    )
    for noisy in _WIRE:
        logging.getLogger(noisy).setLevel(logging.WARNING if debug else logging.CRITICAL)
    for echo in ERROR_ECHOES:
        logging.getLogger(echo).setLevel(logging.CRITICAL)
