"""What the JVM prints goes to its log through us, so that no secret is ever written there."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import IO

from deltaworks.redact import scrub

_SETTLE_SECONDS = 5


class PrintedLog:
    """The end of a pipe that a JVM prints into; a thread writes the rest to the log.

    Lines are scrubbed one by one before they reach the disk, so a run that fails or is killed
    leaves none behind. After the death of this process nobody reads, and nothing is written.
    """

    def __init__(self, log: IO[bytes]) -> None:
        self._log = log
        reading, self.end = os.pipe()
        self._thread = threading.Thread(
            target=self._copy, args=(reading,), name="spark-log", daemon=True
        )
        self._thread.start()

    def handed_over(self) -> None:
        """The JVM has the end now; when it dies, so does the pipe."""
        os.close(self.end)

    def settle(self, seconds: float = _SETTLE_SECONDS) -> None:
        """Wait until all that was printed is in the log, as far as the JVM has ended."""
        self._thread.join(seconds)

    def _copy(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as printed, self._log as log:
            for line in printed:
                text = scrub(line.decode("utf-8", errors="surrogateescape"))
                with suppress(OSError):  # on a full disk too, or the JVM would wait for a reader
                    log.write(text.encode("utf-8", errors="surrogateescape"))
