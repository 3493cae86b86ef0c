"""What the sources of a plan hold now, and whether they still hold what they did."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Self

from deltaworks.config.object_stores import NO_STORES, Stores
from deltaworks.connectors.delta.source import table_info
from deltaworks.contracts.context import ProjectContext
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.errors import ConfigError, DeltaworksError, GuardError, InputError, SpecError
from deltaworks.model.batch import FILES, WATERMARK, Bounds, Pin, read_together
from deltaworks.model.table_ref import is_url
from deltaworks.pipeline.stages import Extract, Plan, Verify
from deltaworks.runtime.ledger.state import LedgerState

_LOOK_SECONDS = 0.2
_LOOK_SHARE = 20
"""Looking at many files may take its time, and a part of the whole only."""


def take_bounds(
    plan: Plan, project_ctx: ProjectContext, state: LedgerState, *, start: str = ""
) -> dict[str, Bounds]:
    """The bounds of every source, found without an engine.

    Increments go on from the last batch, or from a point that the caller names.
    """
    refuse_repeated_rows(plan)
    if start and not is_incremental(plan):
        raise ConfigError(
            "no source of this pipeline reads increments, so that there is no point to start from",
            hint="say `incremental: true` at the source, or run it without --from",
        )
    found = {}
    for stage in plan.sources:
        try:
            since = _since(plan, stage, project_ctx, state, start)
            found[stage.name] = stage.plugin.bounds(project_ctx, _for_sinks(plan, since))
        except DeltaworksError as error:
            raise error.at(plan.pipeline.origin.file, stage.line) from error.__cause__
    return found


def _since(
    plan: Plan, stage: Extract, project_ctx: ProjectContext, state: LedgerState, start: str
) -> Bounds | None:
    if not stage.plugin.reads_increments():
        return None
    if not start:
        return _read_before(plan, stage, project_ctx, state)
    try:
        return stage.plugin.start_at(project_ctx, start)
    except ValueError as problem:
        raise ConfigError(f"--from: {problem}") from None


def _for_sinks(plan: Plan, since: Bounds | None) -> Bounds | None:
    """What was read, and whether a row of it that came again would be there twice."""
    if since is None or since.kind != WATERMARK:
        return since
    adds = any(load.plugin.is_append() for load in plan.loads)
    return replace(since, position={**since.position, "adds": adds})


def _read_before(
    plan: Plan, stage: Extract, project_ctx: ProjectContext, state: LedgerState
) -> Bounds | None:
    """What was read of a source so far, also under a name that it no longer has."""
    read = state.read_so_far(stage.name)
    known = {name for entry in state.batches for name in entry.bounds}
    former = [state.read_so_far(name) for name in known - {one.name for one in plan.sources}]
    old = [bounds for bounds in former if bounds is not None]
    if not old or (read is not None and read.kind != FILES):
        return read
    now = stage.plugin.bounds(project_ctx, None)
    same = [bounds for bounds in old if now.is_of_source(bounds)]
    return read_together([(bounds, False) for bounds in (*same, *((read,) if read else ()))])


def bounds_here(
    plan: Plan, project_ctx: ProjectContext, bounds: Mapping[str, Bounds]
) -> dict[str, Bounds]:
    """Bounds on record as they are read now, where the project may have moved."""
    plugins = {stage.name: stage.plugin for stage in plan.sources}
    return {
        name: plugins[name].here(project_ctx, taken) if name in plugins else taken
        for name, taken in bounds.items()
    }


def read_bounds(plan: Plan, project_ctx: ProjectContext, state: LedgerState) -> dict[str, Bounds]:
    """All that was read so far, to be read once more."""
    found = {}
    for stage in plan.sources:
        read = _since(plan, stage, project_ctx, state, "")
        found[stage.name] = (
            read.from_the_start() if read else stage.plugin.bounds(project_ctx, None)
        )
    return found


def is_incremental(plan: Plan) -> bool:
    """Whether the pipeline reads only what is new."""
    return any(stage.plugin.reads_increments() for stage in plan.sources)


def nothing_new(plan: Plan, bounds: Mapping[str, Bounds]) -> bool:
    """Whether every source that reads only what is new has nothing new."""
    news = [stage.name for stage in plan.sources if stage.plugin.reads_increments()]
    return bool(news) and all(bounds[name].nothing for name in news)


def no_files(bounds: Mapping[str, Bounds]) -> bool:
    """Whether a source of files has none to read, so that nothing may tell its columns."""
    return any(taken.kind == FILES and not taken.files for taken in bounds.values())


def refuse_changed_files(plan: Plan, bounds: Mapping[str, Bounds]) -> None:
    """What was appended once and is different now cannot be appended again unasked."""
    if not any(load.plugin.is_append() for load in plan.loads):
        return
    for name, taken in bounds.items():
        if taken.repeats:
            raise GuardError(
                f'rows have come or changed in "{name}" at {taken.position["since"]}, where the '
                f"last batch ended; which of them were appended before cannot be determined",
                hint=f"leave them out by --from '{taken.position['since']}', use mode upsert, "
                "or reload everything with --full-refresh",
            )
    changed = [path for taken in bounds.values() for path in taken.changed]
    if changed:
        raise GuardError(
            f'file "{changed[0]}" was appended by an earlier batch and has changed since',
            hint="put the old file back, give the new rows a file of their own, "
            "or reload everything with --full-refresh",
        )


def refuse_repeated_rows(plan: Plan) -> None:
    """Rows that are read once more must find their first copy; an append looks for none."""
    for stage in plan.sources:
        for load in plan.loads:
            if stage.plugin.repeats_rows() and load.plugin.is_append():
                raise SpecError(
                    f'source "{stage.name}" reads late rows once more ("overlap"), '
                    f'and sink "{load.name}" would append them once more',
                    hint="use mode upsert, or leave the overlap out",
                ).at(plan.pipeline.origin.file, stage.line)


def take_pins(plan: Plan, project_ctx: ProjectContext) -> dict[str, Pin]:
    """The versions at which the checks of a batch look into tables, however often it is tried.

    A table that is not there is told by the check itself.
    """
    found = {}
    for stage in plan.stages:
        for place in stage.plugin.tables_read(project_ctx) if isinstance(stage, Verify) else ():
            if (identity := DeltaRsEngine(project_ctx.stores).identity(place)) is not None:
                found[place] = Pin(*identity)
    return found


def why_unpinned(pins: Mapping[str, Pin], stores: Stores = NO_STORES) -> str:
    """Why a table cannot be looked into as it was; empty when all can."""
    for place, pin in pins.items():
        try:
            if table_info(place, label=place, stores=stores).table_id != pin.table_id:
                return f'"{place}" is another table now'
            table_info(place, label=place, version=pin.version, stores=stores)
        except DeltaworksError as problem:
            return problem.message
    return ""


def why_changed(plan: Plan, project_ctx: ProjectContext, bounds: Mapping[str, Bounds]) -> str:
    """Why what was read just now is not what was planned; empty when it is."""
    for stage in plan.sources:
        if stage.name in bounds:
            problem = stage.plugin.changed_while_read(project_ctx, bounds[stage.name])
            if problem:
                return problem
    return ""


def source_changed(problem: str) -> InputError:
    """The error for a source that changed while it was read."""
    return InputError(
        f"a source changed while it was read: {problem}",
        hint="run it again when nobody writes there; nothing was committed",
    )


class FileWatch:
    """Looks after the files on disk that Spark reads while it writes, and has it stop in time.

    Between the last row that is read and its own commit Spark asks nobody. So files are looked at
    again and again while it works, and once more when it is done.
    """

    def __init__(
        self,
        plan: Plan,
        project_ctx: ProjectContext,
        bounds: Mapping[str, Bounds],
        stop: Callable[[], None],
    ) -> None:
        on_disk = {
            name: taken
            for name, taken in bounds.items()
            if taken.kind == FILES and taken.files and not is_url(taken.files[0].path)
        }
        self.problem = ""
        self._look = partial(why_changed, plan, project_ctx, on_disk)
        self._stop = stop
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True) if on_disk else None

    def confirm(self) -> None:
        """Raise when a file is not what was planned."""
        if problem := self.problem or self._look():
            raise source_changed(problem)

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        pause = _LOOK_SECONDS
        while not self._over.wait(pause):
            start = time.monotonic()
            self.problem = self.problem or self._look()
            if self.problem:
                self._stop()
            pause = max(_LOOK_SECONDS, _LOOK_SHARE * (time.monotonic() - start))


def why_gone(plan: Plan, project_ctx: ProjectContext, bounds: Mapping[str, Bounds]) -> str:
    """Why recorded bounds cannot be read again identically; empty when they can."""
    sources = {stage.name: stage.plugin for stage in plan.sources}
    for name, recorded in bounds.items():
        if name not in sources:
            return f'source "{name}" is no longer in the pipeline'
        if problem := sources[name].still_there(project_ctx, recorded):
            return problem
    return ""
