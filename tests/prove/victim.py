"""A process to be killed: it starts Spark, waits to be told its part, runs and strikes.

Run as a program. It says "ready" once Spark is up and then reads one line: the project, the phase
to die in, who dies (`python`, `jvm` or `both`), and the table whose files it watches. Started
early, the next one gets ready while the work of the last is looked at.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from deltaworks.api import Project
from deltaworks.engines.spark.session.start import SessionSettings, start_session
from deltaworks.model.events import Event

_QUICK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
_MOMENTS = {
    ("BatchPlanned", ""): "planned",
    ("StageStarted", "check"): "reading",
    ("StageStarted", "load"): "quarantined",
    ("Committed", ""): "committed",
    ("RunFinished", ""): "finished",
}


def java_processes() -> list[int]:
    """The JVMs of this process."""
    children = psutil.Process().children(recursive=True)
    return [process.pid for process in children if process.name() == "java"]


def strike(victim: str, java: list[int]) -> None:
    """Kill, and leave word of it first."""
    os.write(sys.stderr.fileno(), b"struck\n")
    if victim in ("jvm", "both"):
        for pid in java:
            os.kill(pid, signal.SIGKILL)
    if victim in ("python", "both"):
        os.kill(os.getpid(), signal.SIGKILL)


def strike_between(folder: Path, victim: str) -> None:
    """Kill once a data file is there that was not, unless its commit is there as well.

    It looks without a pause, and at nothing else: delta-rs makes its commit within a millisecond
    of the file.
    """
    log, files = folder / "_delta_log", _count(folder, ".parquet")
    commits, java = _count(log, ".json"), java_processes()
    while _count(folder, ".parquet") == files:
        pass
    if _count(log, ".json") == commits:
        strike(victim, java)


def _count(folder: Path, suffix: str) -> int:
    with os.scandir(folder) as found:
        return sum(entry.name.endswith(suffix) for entry in found)


def listener(phase: str, victim: str, folder: Path) -> Callable[[Event], None]:
    """What listens to the run until the moment comes."""

    def listen(event: Event) -> None:
        moment = _MOMENTS.get((type(event).__name__, getattr(event, "kind", "")))
        if moment == phase:
            strike(victim, java_processes())
        if moment == "quarantined" and phase == "files_written":
            watch = threading.Thread(target=strike_between, args=(folder, victim), daemon=True)
            watch.start()

    return listen


def main() -> None:
    """Get ready, wait, run."""
    with tempfile.TemporaryDirectory() as folder:
        settings = SessionSettings(
            app_name="victim",
            master="local[2]",
            conf=_QUICK,
            log_file=Path(folder) / "spark.log",
        )
        start_session(settings, environ=os.environ, notify=lambda _: None)
    print("ready", flush=True)
    part = json.loads(sys.stdin.readline())
    root, phase, victim = Path(part["root"]), part["phase"], part["victim"]
    listen = listener(phase, victim, root / "warehouse" / part["table"])
    result = Project.open(root, listeners=[listen]).run("p")
    print(result.error, file=sys.stderr, flush=True)
    sys.exit(0 if result.error is None else 4)


if __name__ == "__main__":
    main()
