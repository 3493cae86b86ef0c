"""What happens during a run, told to whoever listens. Names are in the past tense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from deltaworks.model.epochs import EpochCommit
from deltaworks.model.results import OutputResult, RunResult


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a run of a pipeline."""

    run_id: str
    pipeline: str


@dataclass(frozen=True, kw_only=True)
class RunStarted(Event):
    """A run took its lock and looked at its ledger."""


@dataclass(frozen=True, kw_only=True)
class EngineStarting(Event):
    """Spark is being started, which takes seconds."""


@dataclass(frozen=True, kw_only=True)
class EngineStarted(Event):
    """Spark answers; the probe tells how many rows its running work has read."""

    rows_so_far: Callable[[], int]


@dataclass(frozen=True, kw_only=True)
class BatchPlanned(Event):
    """A batch and its bounds stand in the ledger."""

    n: int
    detail: str


@dataclass(frozen=True, kw_only=True)
class StageStarted(Event):
    """A stage of the batch began."""

    stage: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Committed(Event):
    """A batch landed in a sink."""

    n: int
    output: OutputResult


@dataclass(frozen=True, kw_only=True)
class Warned(Event):
    """Something the user should know, though the run goes on."""

    message: str


@dataclass(frozen=True, kw_only=True)
class RunFinished(Event):
    """The run ended, well or not."""

    result: RunResult


@dataclass(frozen=True, kw_only=True)
class EpochCommitted(Event):
    """An epoch of a stream landed; the stream stands for the pipeline, its session for the run."""

    writer_id: str
    commit: EpochCommit
    buffered_bytes: int


@dataclass(frozen=True, kw_only=True)
class RowsFlushed(Event):
    """Rows of a stream were put into storage; they are not visible before their epoch."""

    writer_id: str
    rows: int
    size_bytes: int
    """In memory, before they were packed."""
    seconds: float
    buffered_bytes: int = 0
    """What waits in memory now."""
    lag_seconds: float = 0.0
    """How old the oldest row is that no epoch has yet."""
