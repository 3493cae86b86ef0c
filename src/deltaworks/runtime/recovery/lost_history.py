"""What a full refresh would drop for good, because the sources do not hold it any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from deltaworks.errors import GuardError
from deltaworks.model.batch import FILES, OFFSETS, Bounds
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.ledger.state import LedgerState

_MAX_TOLD = 3


def refuse_lost_history(plan: Plan, state: LedgerState, bounds: Mapping[str, Bounds]) -> None:
    """Refuse a full refresh that cannot bring back what earlier batches had loaded."""
    appends = any(load.plugin.is_append() for load in plan.loads)
    grows = {stage.name for stage in plan.sources if stage.plugin.reads_increments()}
    found: dict[str, int] = {}
    for entry in state.loaded():
        for name, read in entry.bounds.items():
            if appends or name in grows:
                same = (one for one in bounds.values() if one.is_of_source(read))
                now = bounds.get(name) or next(same, None)
                for loss in _lost(name, read, now, whole=name not in grows):
                    found.setdefault(loss, entry.n)
    if not found or not any(load.plugin.accepts_late_rows() for load in plan.loads):
        return
    told = [f"{loss} (batch {n})" for loss, n in found.items()]
    more = f", and {len(told) - _MAX_TOLD:,} more" if len(told) > _MAX_TOLD else ""
    raise GuardError(
        "--full-refresh would drop rows that the sources no longer hold: "
        f"{', '.join(told[:_MAX_TOLD])}{more}",
        hint="put them back, or add --drop-history to go on without these rows",
    )


def _lost(source: str, read: Bounds, now: Bounds | None, *, whole: bool) -> Iterator[str]:
    """What was read of a source and cannot be read again.

    A file that has changed counts as lost where every run reads the `whole` source: there each of
    its states was loaded. Else it was corrected, and the new one takes its place.
    """
    if now is None or now.kind != read.kind:
        yield f'source "{source}" is not in the pipeline any more'
    elif now.kind == FILES:
        there = {stamp.key: stamp for stamp in now.files}
        for stamp in read.files:
            if stamp.key not in there:
                yield f'file "{stamp.key}" is not read any more'
            elif whole and not stamp.same_content(there[stamp.key]):
                yield f'file "{stamp.key}" has changed'
    elif now.identity != read.identity:
        yield f'source "{source}" was {read.identity}'
    elif now.kind == OFFSETS:
        for part, start in read.position["start"].items():
            first = now.position["start"].get(part)
            if first is None or start < first:
                yield f"offsets of partition {part} of {source} from {start} on"
