"""What a run does with what the ledger says: finish, skip, or plan a batch of its own.

Pure: everything it needs to know is passed in, so that every case can be tested by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from deltaworks.errors import GuardError
from deltaworks.model.batch import Bounds, same_bounds
from deltaworks.runtime.ledger import BatchEntry, LedgerState


@dataclass(frozen=True)
class Complete:
    """The batch landed everywhere; only the ledger does not know yet."""

    entry: BatchEntry


@dataclass(frozen=True)
class Redo:
    """Land a recorded batch where it has not landed, from its recorded bounds."""

    entry: BatchEntry
    landed: frozenset[str]


@dataclass(frozen=True)
class Abandon:
    """The batch landed nowhere and will not."""

    entry: BatchEntry
    reason: str


@dataclass(frozen=True)
class Skip:
    """There is nothing to do."""

    entry: BatchEntry
    reason: str


@dataclass(frozen=True)
class PlanNew:
    """Plan and land a batch of this run's own."""


Step = Complete | Redo | Abandon | Skip | PlanNew


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What this run would do if nothing had happened before."""

    bounds: Mapping[str, Bounds]
    spec: str
    batch_id: str | None = None
    again: bool = False
    full_refresh: bool = False
    adds_on_rerun: bool = False
    incremental: bool = False
    nothing_new: bool = False


@dataclass(frozen=True, kw_only=True)
class Look:
    """How to find out what stands at the sinks and sources now."""

    landed: Callable[[BatchEntry], frozenset[str]]
    gone: Callable[[BatchEntry], str]


def decide(state: LedgerState, intent: Intent, look: Look) -> tuple[Step, ...]:
    """The steps of this run, in order."""
    steps: list[Step] = []
    if state.unfinished is not None:
        step, goes_on = _finish(state.unfinished, intent, look)
        steps.append(step)
        if not goes_on:
            return tuple(steps)
    skip = _skip(state, intent)
    return (*steps, skip or PlanNew())


def finish_only(state: LedgerState, spec: str, look: Look) -> tuple[Step, ...]:
    """The steps of a run that is only to finish what an earlier one left."""
    entry = state.unfinished
    if entry is None:
        raise GuardError("no batch of this pipeline is unfinished")
    landed = look.landed(entry)
    if len(landed) == len(entry.sinks):
        return (Complete(entry),)
    reason = "the pipeline has changed since" if entry.spec != spec else look.gone(entry)
    if reason:
        raise GuardError(
            f"batch {entry.n} cannot be finished: {reason}",
            hint=f"put it back and try again, or give it up: "
            f"deltaworks runs abandon {entry.run_id}",
        )
    return (Redo(entry, landed),)


def _finish(entry: BatchEntry, intent: Intent, look: Look) -> tuple[Step, bool]:
    landed = look.landed(entry)
    is_retry = _is_retry(entry, intent)
    goes_on = intent.incremental or not is_retry
    if len(landed) == len(entry.sinks):
        return Complete(entry), goes_on
    if intent.full_refresh and not is_retry:
        return Abandon(entry, "everything is loaded anew"), True
    if not landed:
        reason = _why_not_again(entry, intent)
        return (Abandon(entry, reason), True) if reason else (Redo(entry, landed), False)
    _refuse_half_landed(entry, intent, look.gone(entry))
    return Redo(entry, landed), goes_on


def _why_not_again(entry: BatchEntry, intent: Intent) -> str:
    """Why a batch that landed nowhere is not what this run wants; empty when it is."""
    if entry.replay is not None:
        return "its rows are still in quarantine"
    if entry.backfill:
        return "it was to fill a new sink"
    if intent.batch_id != entry.batch_id:
        return "this run has another batch id"
    if entry.spec != intent.spec:
        return "the pipeline has changed since"
    if not same_bounds(entry.bounds, intent.bounds):
        return "its sources have changed since"
    return ""


def _is_retry(entry: BatchEntry, intent: Intent) -> bool:
    """Whether the run that was cut off wanted just what this one wants."""
    if intent.full_refresh != entry.replaces or not entry.reads_on:
        return False
    if intent.batch_id is not None or entry.batch_id is not None:
        return intent.batch_id == entry.batch_id
    return entry.spec == intent.spec and same_bounds(entry.bounds, intent.bounds)


def _refuse_half_landed(entry: BatchEntry, intent: Intent, gone: str) -> None:
    reason = "the pipeline has changed since" if entry.spec != intent.spec else gone
    if reason:
        raise GuardError(
            f"batch {entry.n} landed in some of its sinks only, and cannot be finished: {reason}",
            hint="put the old file or data back and run once, or start over with --full-refresh",
        )


def _skip_known_id(done: tuple[BatchEntry, ...], batch_id: str) -> Skip | None:
    for entry in done:
        if entry.batch_id == batch_id:
            when = f"{entry.at:%Y-%m-%d %H:%M:%S} UTC"
            return Skip(entry, f'batch id "{batch_id}" is done since {when} (batch {entry.n})')
    return None


def _skip(state: LedgerState, intent: Intent) -> Skip | None:
    done = state.loaded()
    if intent.full_refresh:
        return None
    if intent.batch_id is not None:
        return _skip_known_id(done, intent.batch_id)
    last = done[-1] if done else None
    if last is not None and intent.nothing_new:
        return Skip(last, f"nothing is new since batch {last.n}")
    if last is None or intent.again or not intent.adds_on_rerun:
        return None
    if last.spec == intent.spec and same_bounds(last.bounds, intent.bounds):
        when = f"{last.at:%Y-%m-%d %H:%M:%S} UTC"
        return Skip(
            last, f"batch {last.n} loaded exactly this at {when}; --again loads it once more"
        )
    return None
