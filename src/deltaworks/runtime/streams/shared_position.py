"""`run` and `stream run` of one pipeline: what one of them has read, the other must not read again.

Batches are in the ledger, epochs in books of their own. Both are looked at before anything is read.
On an object store a table has one committer, so that a pipeline and a stream never share one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import GuardError
from deltaworks.model.batch import FILES, OFFSETS, Bounds, FileStamp
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.environment import RunEnv
from deltaworks.runtime.ledger.state import LedgerState


def refuse_streamed(
    plan: Plan, place: RunEnv, state: LedgerState, bounds: Mapping[str, Bounds]
) -> None:
    """Refuse a run that would read what a stream has brought to the same table."""
    known = {stamp.key for entry in state.counted() for stamp in _files(entry.bounds.values())}
    for load in plan.loads:
        label = load.plugin.target(place.project_ctx).label
        for epoch, read in _streamed(place, load.plugin.target(place.project_ctx).location):
            if any(_again(read, taken, known) for taken in bounds.values()):
                raise GuardError(
                    f'`deltaworks stream run` has read what this run would read into "{label}" '
                    f"(epoch {epoch}): it would be there twice",
                    hint=f"go on with `deltaworks stream run {plan.pipeline.name}`, "
                    "or reload everything with --full-refresh",
                )


def read_by_runs(plan: Plan, place: RunEnv, table_id: str) -> tuple[Bounds, ...]:
    """What batches of a pipeline have brought to a table."""
    state = place.ledger(plan.pipeline.name).state()
    return tuple(
        bounds
        for entry in state.counted()
        if any(sink.identity == table_id for sink in entry.sinks)
        for bounds in entry.bounds.values()
    )


def refuse_run_before(pipeline: str, now: Bounds, read: Iterable[Bounds]) -> None:
    """Refuse a stream that would read what batches of the same pipeline have read."""
    if any(_again(before, now, set()) for before in read):
        raise GuardError(
            f'`deltaworks run` has read what this stream of pipeline "{pipeline}" would read: '
            "it would be there twice",
            hint=f"go on with `deltaworks run {pipeline}`, "
            "or add --after-runs to begin after what runs have read",
        )


def without_read(files: Iterable[FileStamp], read: Iterable[Bounds]) -> list[FileStamp]:
    """The files that no batch has read."""
    known = {stamp.key for stamp in _files(read)}
    return [stamp for stamp in files if stamp.key not in known]


def _files(parts: Iterable[Bounds]) -> Iterable[FileStamp]:
    return (stamp for bounds in parts for stamp in bounds.files)


def _again(read: Bounds, now: Bounds, known: set[str]) -> bool:
    """Whether something was read before and would be read now; `known` files are not meant."""
    if read.kind != now.kind:
        return False
    if now.kind == FILES:
        return bool({stamp.key for stamp in read.files} & {s.key for s in now.files} - known)
    if now.kind != OFFSETS or read.identity != now.identity:
        return False
    start, end = now.position["start"], now.position["end"]
    return any(
        read.position["start"][part] < end[part] and start[part] < until
        for part, until in read.position["end"].items()
        if part in start
    )


def _streamed(place: RunEnv, location: str) -> list[tuple[int, Bounds]]:
    """The epochs of streams in a table, each with what it read."""
    from deltaworks.runtime.streams import files as streaming
    from deltaworks.runtime.streams import messages as message_stream

    engine = DeltaRsEngine(place.config.stores)
    found = engine.identity(location)
    if found is None:
        return []
    pages = [*streaming.pages(place, found[0]), *message_stream.pages(place, found[0])]
    writers = {page["writer"] for page in pages}
    landed = {name for name in writers if engine.transaction(location, f"{name}:seen") is not None}
    return [
        (int(page["epoch"]), _bounds_of(page))
        for page in sorted(pages, key=lambda page: int(page["epoch"]))
        if page["writer"] in landed
    ]


def _bounds_of(page: Mapping[str, str]) -> Bounds:
    if "bounds" in page:
        return Bounds.from_json(json.loads(page["bounds"]))
    files = tuple(FileStamp(*one) for one in json.loads(page["files"]))
    return Bounds(kind=FILES, identity="", files=files)
