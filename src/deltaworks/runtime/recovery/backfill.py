"""What a few batches read, as the bounds of one batch that reads it again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import GuardError
from deltaworks.model.batch import OFFSETS, Bounds
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState

_STARTS = ("since_version", "since", "known", "repeats")


def bounds_of(
    plan: Plan, project_ctx: ProjectContext, entries: Sequence[BatchEntry]
) -> dict[str, Bounds]:
    """The bounds of batches that followed each other; whole sources are read as they are now."""
    found = {}
    for stage in plan.sources:
        read = [entry.bounds[stage.name] for entry in entries if stage.name in entry.bounds]
        if stage.plugin.reads_increments() and read:
            found[stage.name] = joined(read)
        else:
            found[stage.name] = stage.plugin.bounds(project_ctx, None)
    return found


def joined(read: Sequence[Bounds]) -> Bounds:
    """From where the first began to where the last ended."""
    first, last = read[0], read[-1].from_the_start()
    files = {stamp.key: stamp for bounds in read for stamp in bounds.files}
    starts = {key: first.position[key] for key in _STARTS if key in first.position}
    if first.kind == OFFSETS:
        starts = {"start": first.position["start"]}
    return replace(last, files=tuple(files.values()), position={**last.position, **starts})


def segments(entries: Iterable[BatchEntry], state: LedgerState) -> Iterator[list[BatchEntry]]:
    """Batches in runs without one that was undone or taken out between them; replays alone."""
    left = {entry.n for entry in (*state.counted(), *state.outstanding())}
    run: list[BatchEntry] = []
    for entry in entries:
        alone = entry.replay is not None or any(one.replay is not None for one in run)
        if run and (alone or left & set(range(run[-1].n + 1, entry.n))):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def new_sink(name: str, numbers: Iterable[int], state: LedgerState) -> GuardError:
    """What to say of a sink that lacks what the others have."""
    if state.is_stale(name):
        return GuardError(
            f'sink "{name}" still holds what was loaded before the last full refresh',
            hint="reload everything with --full-refresh, "
            "or say --new-sinks from-now to add to it what comes next",
        )
    was_out = f"was not in the pipeline when batch {', '.join(map(str, numbers))} came"
    is_new = "is new, and what was read so far is only in the others"
    return GuardError(
        f'sink "{name}" {is_new if state.is_new(name) else was_out}',
        hint="say --new-sinks backfill to load it there as well, "
        "or --new-sinks from-now to start with what comes next",
    )
