"""What a run does with what the ledger says: finish, skip, or plan a batch of its own.

Pure: everything it needs to know is passed in, so that every case can be tested by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from deltaworks.errors import GuardError
from deltaworks.model.batch import Bounds, same_bounds
from deltaworks.runtime.ledger.state import DONE, REVERTED, UNDONE, BatchEntry, LedgerState


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
class Replace:
    """The batch stays as it is until a full refresh, which comes next, replaces all it landed.

    It is not given up before that: if the refresh fails, the batch must still be finished.
    """

    entry: BatchEntry


@dataclass(frozen=True)
class Reload:
    """Bring a batch that a restore took out back to the sinks that lost it."""

    entry: BatchEntry


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


Step = Complete | Redo | Replace | Reload | Abandon | Skip | PlanNew


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What this run would do if nothing had happened before."""

    bounds: Mapping[str, Bounds]
    spec: str
    batch_id: str | None = None
    again: bool = False
    full_refresh: bool = False
    is_append: bool = False
    incremental: bool = False
    nothing_new: bool = False
    starts_anew: bool = False
    """Whether the caller says where increments start, which is kept though nothing is there yet."""
    sinks: frozenset[str] = frozenset()
    """The sinks that the pipeline has now."""


@dataclass(frozen=True, kw_only=True)
class TableProbe:
    """How to find out what stands at the sinks and sources now."""

    landed: Callable[[BatchEntry], frozenset[str]]
    gone: Callable[[BatchEntry], str]


def decide(state: LedgerState, intent: Intent, look: TableProbe) -> tuple[Step, ...]:
    """The steps of this run, in order."""
    steps: list[Step] = []
    for entry in state.all_unfinished():
        step, goes_on = _finish(entry, intent, look)
        steps.append(step)
        if not goes_on:
            return tuple(steps)
        if entry.replaces and isinstance(step, Complete | Redo):
            break  # it replaces whatever older batches had landed
    if not intent.full_refresh and intent.incremental:
        steps.extend(Reload(entry) for entry in reloads(state, intent.sinks))
    skip = _skip(state, intent)
    return (*steps, skip or PlanNew())


def reloads(state: LedgerState, sinks: frozenset[str]) -> tuple[BatchEntry, ...]:
    """The batches that a sink of the pipeline lost, and that reading on would pass by."""
    return tuple(entry for entry in state.holes() if state.lacking(entry) & sinks)


def missed(state: LedgerState, sink: str, *, adds: bool) -> tuple[BatchEntry, ...]:
    """The batches that a sink lacks because it was not in the pipeline when they came.

    It may have kept a batch that others lost in a restore and read again meanwhile. One that read
    more than that cannot be told apart, so that a sink which adds rows would have some twice.
    """
    found = []
    for entry in _once((*_lost_replays(state, sink), *state.missed_by(sink))):
        kept = [one for n in entry.covers if sink in (one := state.batch(n)).kept]
        if any(same_bounds(one.bounds, entry.bounds) for one in kept):
            continue
        if kept and adds:
            raise GuardError(
                f'batch {entry.n} read batch {kept[0].n} again, which "{sink}" still has',
                hint=f'say --new-sinks from-now to leave batch {entry.n} out of "{sink}", '
                "or reload everything with --full-refresh",
            )
        found.append(entry)
    return tuple(found)


def _once(entries: tuple[BatchEntry, ...]) -> list[BatchEntry]:
    return list({entry.n: entry for entry in entries}.values())


def _lost_replays(state: LedgerState, sink: str) -> list[BatchEntry]:
    """Replays that others have, and whose backfill a restore took out of a sink."""
    fills = [entry for entry in state.batches if entry.backfill and entry.replay is not None]
    out = {n for e in fills if e.state == REVERTED and sink in e.reverted for n in e.covers}
    back = {n for e in fills if e.state in (DONE, UNDONE) and e.sink(sink) for n in e.covers}
    return [entry for entry in state.done() if entry.n in out - back]


def finish_only(state: LedgerState, spec: str, look: TableProbe) -> tuple[Step, ...]:
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


def _finish(entry: BatchEntry, intent: Intent, look: TableProbe) -> tuple[Step, bool]:
    try:
        landed = look.landed(entry)
    except GuardError:
        if not intent.full_refresh:
            raise
        return Replace(entry), True  # whatever a table holds of it
    is_retry = _is_retry(entry, intent)
    goes_on = intent.incremental or not is_retry
    if len(landed) == len(entry.sinks):
        return Complete(entry), goes_on
    if intent.full_refresh and not is_retry:
        given_up = Abandon(entry, "everything is reloaded")
        return Replace(entry) if landed else given_up, True
    if not landed:
        reason = _why_not_again(entry, intent)
        return (Abandon(entry, reason), True) if reason else (Redo(entry, landed), False)
    _refuse_half_landed(entry, intent, look.gone(entry))
    return Redo(entry, landed), goes_on


def _why_not_again(entry: BatchEntry, intent: Intent) -> str:
    """Why a batch that landed nowhere is not what this run wants; empty when it is."""
    if intent.nothing_new:
        return "there is nothing to read"
    if reason := _why_another_kind(entry, intent):
        return reason
    if intent.batch_id != entry.batch_id:
        return "this run has another batch id"
    if entry.spec != intent.spec:
        return "the pipeline has changed since"
    if not same_bounds(entry.bounds, intent.bounds):
        return "its sources have changed since"
    return ""


def _why_another_kind(entry: BatchEntry, intent: Intent) -> str:
    if entry.replay is not None:
        return "its rows are still in quarantine"
    if entry.backfill:
        return "it was to fill a new sink"
    if entry.replaces and not intent.full_refresh:
        return "it was a full refresh, which this run is not"
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
    if last is not None and intent.nothing_new and not intent.starts_anew:
        return Skip(last, f"nothing is new since batch {last.n}")
    if intent.again:
        return None
    return _skip_undone(state, intent) or _skip_same(last, intent)


def _skip_same(last: BatchEntry | None, intent: Intent) -> Skip | None:
    if last is None or not intent.is_append:
        return None
    if last.spec == intent.spec and same_bounds(last.bounds, intent.bounds):
        when = f"{last.at:%Y-%m-%d %H:%M:%S} UTC"
        return Skip(
            last, f"batch {last.n} loaded exactly this at {when}; --again loads it once more"
        )
    return None


def _skip_undone(state: LedgerState, intent: Intent) -> Skip | None:
    """What was undone on purpose does not come back by itself; increments pass it by anyhow."""
    last = state.counted()[-1:]
    if intent.incremental or not last or last[0].state != UNDONE:
        return None
    if last[0].spec != intent.spec or not same_bounds(last[0].bounds, intent.bounds):
        return None
    n = last[0].n
    return Skip(last[0], f"batch {n} loaded exactly this and was undone; --again loads it")
