"""Spark's event log, written where the user wants it by us, so that no secret is in it.

Spark hides settings by their names. Plans, failed tasks and what users' code raises it writes as
they are, so it writes them to a folder of the session's own, and we copy them line by line.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from deltaworks.engines.spark.errors.lost_jvm import letting_go
from deltaworks.errors import StorageError
from deltaworks.redact import scrub

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENABLED, _DIR = "spark.eventLog.enabled", "spark.eventLog.dir"
WANTED_KEY = "spark.deltaworks.eventLog.dir"
"""Set on sessions whose events we publish: where to."""
_FOLDER = "events"
_SPARKS_OWN = "/tmp/spark-events"  # noqa: S108 - what Spark takes when nothing is said


@dataclass(frozen=True)
class EventLog:
    """Where Spark writes its events, and where they are to be in the end."""

    raw: Path
    wanted: Path

    @property
    def settings(self) -> dict[str, str]:
        """What Spark is told: one plain file, so that every line of it can be read."""
        return {
            _DIR: self.raw.as_uri(),
            WANTED_KEY: str(self.wanted),
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.compress": "false",
        }

    def prepare(self) -> None:
        """Make the folders; nobody else may look into Spark's own."""
        try:
            self.raw.mkdir(mode=0o700, parents=True)
            self.wanted.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(
                f"the event log cannot be written to {self.wanted}: {error.strerror}",
                hint=f"name a folder that can be written to: {_DIR}",
            ) from error

    def publish(self) -> None:
        """Copy what Spark has written, without secrets, once it has written all."""
        for file in sorted(self.raw.glob("*")):
            target = self.wanted / file.name.removesuffix(".inprogress")
            with file.open(encoding="utf-8") as events, target.open("w", encoding="utf-8") as out:
                out.writelines(scrub(line) for line in events)
            file.unlink()


def event_log(
    conf: Mapping[str, str], *, scratch: Path, notify: Callable[[str], None]
) -> EventLog | None:
    """The log that settings ask for; None for none, or for one that only Spark can write."""
    if conf.get(_ENABLED, "").lower() != "true":
        return None
    place = urlsplit(conf.get(_DIR, _SPARKS_OWN))
    if place.scheme not in ("", "file"):
        notify(f"Spark writes its event log to {place.geturl()} itself: keep secrets out of steps")
        return None
    return EventLog(raw=scratch / _FOLDER, wanted=Path(unquote(place.path)))


def publish_events(scratch: str, wanted: str | None) -> None:
    """Publish the events of a session that has been stopped, if it has any."""
    if wanted:
        EventLog(raw=Path(scratch) / _FOLDER, wanted=Path(wanted)).publish()


def publish_at_end(spark: SparkSession, log: EventLog) -> None:
    """See to the log when this process ends, however the session is left."""

    def finish() -> None:
        if log.raw.exists():  # else it was published when the session was stopped
            with letting_go():
                spark.stop()
            log.publish()

    atexit.register(finish)
