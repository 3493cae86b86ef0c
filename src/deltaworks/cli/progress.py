"""Tells the person at the terminal how a run is going."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

from deltaworks.cli.output import error_line, output_text, stderr
from deltaworks.model.events import (
    BatchPlanned,
    Committed,
    EngineStarted,
    EngineStarting,
    Event,
    RunFinished,
    RunStarted,
    StageStarted,
    Warned,
)
from deltaworks.redact import scrub

if TYPE_CHECKING:
    from rich.status import Status

_REFRESH_S = 0.5


@dataclass
class _Doing:
    """What one run is doing, and since when."""

    text: str
    since: float


class Progress:
    """A living line on a terminal, plain lines elsewhere, nothing when asked to be quiet.

    Several runs may tell at once, each from a thread of its own; they share the line.
    """

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._live = stderr().is_terminal and not quiet
        self._status: Status | None = None
        self._doing: dict[str, _Doing] = {}
        self._lock = threading.Lock()
        self._rows: Callable[[], int] | None = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._live:
            self._status = stderr().status("")
            self._status.start()
            self._thread = threading.Thread(target=self._keep_fresh, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join(timeout=2)
        if self._status is not None:
            self._status.stop()

    def say(self, text: str, *, pipeline: str = "") -> None:
        """Show what is going on."""
        if self._quiet:
            return
        with self._lock:
            if self._live:
                self._doing.pop("", None)
                self._doing[pipeline] = _Doing(text, time.monotonic())
            else:
                error_line(text)

    def listen(self, event: Event) -> None:
        """Follow a run."""
        if isinstance(event, EngineStarted):
            self._rows = event.rows_so_far
        elif isinstance(event, RunFinished):
            with self._lock:
                self._doing.pop(event.pipeline, None)
                self._rows = self._rows if self._doing else None
        if text := event_text(event):
            self.say(text, pipeline=event.pipeline)

    def _keep_fresh(self) -> None:
        while not self._done.wait(_REFRESH_S):
            with self._lock:
                doing = list(self._doing.values())
            if self._status is not None and doing:
                rows = self._rows() if self._rows is not None else 0
                self._status.update(scrub(doing_text(doing, time.monotonic(), rows)))


def doing_text(doing: Sequence[_Doing], now: float, rows: int) -> str:
    """What every run is doing, in one line; Spark counts rows for all of them together."""
    shown = f", {rows:,} rows so far" if rows else ""
    parts = [f"{one.text} ({now - one.since:.0f} s" for one in doing]
    return f"{'); '.join(parts)}{shown})" if len(parts) == 1 else f"{'); '.join(parts)}){shown}"


def event_text(event: Event) -> str:  # noqa: PLR0911 - one line per kind of event
    """An event in a few words; empty for those nobody needs to hear of."""
    name = event.pipeline
    if isinstance(event, RunStarted):
        return f"{name}: run {event.run_id}"
    if isinstance(event, EngineStarting):
        return f"{name}: starting Spark"
    if isinstance(event, BatchPlanned):
        return f"{name}: batch {event.n} planned ({event.detail})"
    if isinstance(event, StageStarted):
        return f"{name}: {event.kind} {event.stage}"
    if isinstance(event, Committed):
        return f"{name}: landed in {output_text(event.output)}"
    if isinstance(event, Warned):
        return f"{name}: warning: {event.message}"
    return ""
