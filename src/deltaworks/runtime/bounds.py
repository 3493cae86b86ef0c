"""What the sources of a plan hold now, and whether they still hold what they did."""

from __future__ import annotations

from collections.abc import Mapping

from deltaworks.config.storage import NO_STORES, Stores
from deltaworks.contracts.context import Site
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.deltars.table_source import table_info
from deltaworks.errors import ConfigError, DeltaworksError, GuardError, SpecError
from deltaworks.model.batch import Bounds, Pin
from deltaworks.pipeline.stages import Extract, Plan, Verify
from deltaworks.runtime.ledger import LedgerState


def take_bounds(
    plan: Plan, site: Site, state: LedgerState, *, start: str = ""
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
            since = _since(stage, site, state, start)
            found[stage.name] = stage.plugin.bounds(site, since)
        except DeltaworksError as error:
            raise error.at(plan.pipeline.origin.file, stage.line) from error.__cause__
    return found


def _since(stage: Extract, site: Site, state: LedgerState, start: str) -> Bounds | None:
    if not stage.plugin.reads_increments():
        return None
    if not start:
        return state.read_so_far(stage.name)
    try:
        return stage.plugin.start_at(site, start)
    except ValueError as problem:
        raise ConfigError(f"--from: {problem}") from None


def read_bounds(plan: Plan, site: Site, state: LedgerState) -> dict[str, Bounds]:
    """All that was read so far, to be read once more."""
    found = {}
    for stage in plan.sources:
        read = state.read_so_far(stage.name) if stage.plugin.reads_increments() else None
        found[stage.name] = read.from_the_start() if read else stage.plugin.bounds(site, None)
    return found


def is_incremental(plan: Plan) -> bool:
    """Whether the pipeline reads only what is new."""
    return any(stage.plugin.reads_increments() for stage in plan.sources)


def nothing_new(plan: Plan, bounds: Mapping[str, Bounds]) -> bool:
    """Whether every source that reads only what is new has nothing new."""
    news = [stage.name for stage in plan.sources if stage.plugin.reads_increments()]
    return bool(news) and all(bounds[name].nothing for name in news)


def refuse_changed_files(plan: Plan, bounds: Mapping[str, Bounds]) -> None:
    """A file that was appended once and is different now cannot be appended again unasked."""
    changed = [path for taken in bounds.values() for path in taken.changed]
    if changed and any(load.plugin.adds_on_rerun() for load in plan.loads):
        raise GuardError(
            f'file "{changed[0]}" was appended by an earlier batch and has changed since',
            hint="put the old file back, give the new rows a file of their own, "
            "or load everything anew with --full-refresh",
        )


def refuse_repeated_rows(plan: Plan) -> None:
    """Rows that are read once more must find their first copy; an append looks for none."""
    for stage in plan.sources:
        for load in plan.loads:
            if stage.plugin.repeats_rows() and load.plugin.adds_on_rerun():
                raise SpecError(
                    f'source "{stage.name}" reads late rows once more ("overlap"), '
                    f'and sink "{load.name}" would append them once more',
                    hint="use mode upsert, or leave the overlap out",
                ).at(plan.pipeline.origin.file, stage.line)


def take_pins(plan: Plan, site: Site) -> dict[str, Pin]:
    """The versions at which the checks of a batch look into tables, however often it is tried.

    A table that is not there is told by the check itself.
    """
    found = {}
    for stage in plan.stages:
        for place in stage.plugin.tables_read(site) if isinstance(stage, Verify) else ():
            if (identity := DeltaRsEngine(site.stores).identity(place)) is not None:
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


def why_changed(plan: Plan, site: Site, bounds: Mapping[str, Bounds]) -> str:
    """Why what was read just now is not what was planned; empty when it is."""
    for stage in plan.sources:
        if stage.name in bounds:
            problem = stage.plugin.changed_while_read(site, bounds[stage.name])
            if problem:
                return problem
    return ""


def why_gone(plan: Plan, site: Site, bounds: Mapping[str, Bounds]) -> str:
    """Why recorded bounds cannot be read again identically; empty when they can."""
    sources = {stage.name: stage.plugin for stage in plan.sources}
    for name, recorded in bounds.items():
        if name not in sources:
            return f'source "{name}" is no longer in the pipeline'
        if problem := sources[name].still_there(site, recorded):
            return problem
    return ""
