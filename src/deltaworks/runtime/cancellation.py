"""A request that a run stops: its Spark jobs are cancelled, and it ends at its next stage."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType
from typing import TYPE_CHECKING

from deltaworks.errors import DeltaworksError, GuardError, Interrupted, TimedOut
from deltaworks.pipeline.stages import Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AGAIN_S = 0.2
BY_USER = "by_user"
"""In the context of the error of a run that its user stopped: the next one is not to begin."""
_GO_ON = "run it again: it goes on where it stopped"

Why = Callable[[str], DeltaworksError]
"""The error for a run that was stopped at a place."""


class CancellationToken:
    """Lets other threads stop one run; the run itself asks at every stage."""

    def __init__(self) -> None:
        self._why: Why | None = None
        self._place = "at its start"
        self._spark: SparkSession | None = None
        self._tag = ""
        self._ended = threading.Event()

    @property
    def asked(self) -> bool:
        """Whether the run is to stop."""
        return self._why is not None

    def ask(self, why: Why) -> None:
        """Ask the run to stop, and cancel what it does in Spark until it has."""
        if self._why is None:
            self._why = why
            threading.Thread(target=self._keep_cancelling, daemon=True).start()

    @contextmanager
    def handle_sigint(self) -> Iterator[None]:
        """Remember Ctrl-C inside and cancel what Spark does, besides raising it.

        An exception that comes up while Python cleans up, as it does at any moment, is swallowed,
        and the run would go on to its end. And PySpark, when it collects rows, waits for the end of
        its job before it lets an exception through.
        """
        before = signal.getsignal(signal.SIGINT)
        here = threading.current_thread() is threading.main_thread()
        if not here or not callable(before) or not _interrupts(before):
            yield
            return

        def heard(number: int, frame: FrameType | None) -> None:
            self.ask(by_ctrl_c)
            before(number, frame)

        signal.signal(signal.SIGINT, heard)
        try:
            yield
        finally:
            if signal.getsignal(signal.SIGINT) is heard:
                signal.signal(signal.SIGINT, before)

    def raise_if_cancelled(self) -> None:
        """Raise if the run is to stop."""
        if self._why is not None:
            raise self._why(self._place)

    def pause(self, length: timedelta) -> None:
        """Wait; raises if the run is to stop meanwhile."""
        end = time.monotonic() + length.total_seconds()
        while (left := end - time.monotonic()) > 0:
            self.raise_if_cancelled()
            time.sleep(min(left, _AGAIN_S))

    def enter(self, stage: Stage) -> None:
        """A stage begins, unless the run is to stop."""
        self.raise_if_cancelled()
        self._place = f'in {stage.kind} "{stage.name}"'

    def take(self, spark: SparkSession, run_id: str) -> None:
        """Jobs of this thread belong to the run from now on."""
        from deltaworks.engines.spark.session.jobs import mark_jobs

        self._spark, self._tag = spark, job_tag(run_id)
        mark_jobs(spark, self._tag)
        self.raise_if_cancelled()

    @contextmanager
    def within(self, limit: timedelta | None) -> Iterator[None]:
        """Stop what happens inside when it takes longer than the limit."""
        timer = None
        if limit is not None:
            timer = threading.Timer(limit.total_seconds(), self.ask, [_too_long(limit)])
            timer.daemon = True
            timer.start()
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            self._end()

    def _end(self) -> None:
        from deltaworks.engines.spark.session.jobs import unmark_jobs

        self._ended.set()
        if self._spark is not None:
            unmark_jobs(self._spark, self._tag)

    def _keep_cancelling(self) -> None:
        """One call is not enough: it misses a run that is just between two jobs."""
        from deltaworks.engines.spark.session.jobs import cancel_jobs

        while not self._ended.wait(_AGAIN_S):
            if self._spark is not None:
                cancel_jobs(self._spark, self._tag)


def job_tag(run_id: str) -> str:
    """What marks the Spark jobs of a run."""
    return f"deltaworks-{run_id}"


def _interrupts(handler: object) -> bool:
    """Whether a handler raises KeyboardInterrupt: Python's own does, and Spark's."""
    is_sparks = getattr(handler, "__module__", "").startswith("pyspark.")
    return handler is signal.default_int_handler or is_sparks


def _too_long(limit: timedelta) -> Why:
    return lambda place: TimedOut(
        f"stopped after {limit.total_seconds():g} s, {place}; no table was left half written",
        hint=f"{_GO_ON}; --timeout gives it more time",
    )


def by_ctrl_c(place: str) -> Interrupted:
    """The error of a run that its user stopped."""
    return Interrupted(
        f"stopped by Ctrl-C, {place}; no table was left half written",
        hint=_GO_ON,
        context={BY_USER: True},
    )


def by_another_driver(place: str) -> GuardError:
    """The error of a run that stood still for too long in a bucket, and was overtaken."""
    return GuardError(
        f"stopped, {place}: another driver has taken over its locks, "
        "because this run was paused for too long",
        hint=_GO_ON,
    )
