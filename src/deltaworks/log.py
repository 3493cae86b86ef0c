"""Our own log: quiet by default, everything with --debug."""

from __future__ import annotations

import logging
import os
import sys

from deltaworks.redact import scrub

_WIRE = ("py4j", "py4j.clientserver", "py4j.java_gateway")
# PySpark prints every error a second time through these, with its Java stack, as one JSON line.
ERROR_ECHOES = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


class _Scrubbed(logging.Formatter):
    """Writes records, their tracebacks included, without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        return scrub(super().format(record))


def set_up_logging(*, debug: bool) -> None:
    """Warnings go to stderr; with debug everything does."""
    if not debug:
        os.environ.setdefault("RUST_LOG", "error")  # delta-rs logs what its error says once more
    logging.captureWarnings(capture=True)
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.DEBUG if debug else logging.ERROR,
        force=True,
    )
    for handler in logging.getLogger().handlers:
        handler.setFormatter(_Scrubbed("%(asctime)s %(levelname)s %(name)s %(message)s"))
    for noisy in _WIRE:
        logging.getLogger(noisy).setLevel(logging.WARNING if debug else logging.CRITICAL)
    for echo in ERROR_ECHOES:
        logging.getLogger(echo).setLevel(logging.CRITICAL)
