"""Rows that come back from quarantine must not overwrite what later batches wrote, unless told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from deltaworks.contracts.context import RunContext
from deltaworks.engines.deltars.engine import DeltaRsEngine
from deltaworks.engines.spark.rejects import refusal
from deltaworks.errors import GuardError, VersionNotFound
from deltaworks.model.batch import Replay
from deltaworks.pipeline.merge_order import order_of
from deltaworks.pipeline.stages import Apply, Load, Plan
from deltaworks.runtime.frames import Count, Keeper, Rejects
from deltaworks.runtime.ledger_state import LedgerState
from deltaworks.runtime.walk import Walked

RULE = "written later"
OVERWRITE = "--overwrite brings them back all the same"


def with_versions(replay: Replay, state: LedgerState, sinks: Collection[str]) -> Replay:
    """A replay that knows the versions of its tables when its rows were refused."""
    known = {entry.n: entry for entry in state.batches}
    since: dict[str, int] = {}
    for name in sinks:
        entries = [known[n].sink(name) if n in known else None for n in replay.batches]
        made = [
            None if one is None else one.version if one.committed else one.version_found
            for one in entries
        ]
        versions = [version for version in made if version is not None]
        if versions and len(versions) == len(made):
            since[name] = min(versions)
    return replace(replay, since=since)


def hold_back(
    plan: Plan, ctx: RunContext, replay: Replay, walked: Walked, keeper: Keeper
) -> list[str]:
    """Part rows that would overwrite newer ones from the others; what to say about them."""
    told: list[str] = []
    for load in plan.loads:
        words = load.plugin.document()
        if replay.overwrite or words.get("mode") != "upsert":
            continue
        place = load.plugin.target(ctx.site).location
        if DeltaRsEngine(ctx.site.stores).identity(place) is None:
            continue
        since = _version(ctx, place, replay.since.get(load.name))
        rows = _part(load, ctx, walked, keeper, since=since)
        if rows:
            _require_last_step(plan, load)
            told.append(
                f'{rows:,} rows stay in quarantine: "{load.name}" has newer rows with their keys; '
                f"{OVERWRITE}"
            )
    return told


def _part(load: Load, ctx: RunContext, walked: Walked, keeper: Keeper, *, since: int | None) -> int:
    from pyspark.sql import functions as F

    from deltaworks.engines.spark.later_rows import later_rows

    step, words = walked.frames[load.inputs[0]], load.plugin.document()
    place, keys = load.plugin.target(ctx.site).location, words["merge_keys"]
    frame = step.frame if step.kept else keeper.keep(step.frame)
    lands, held = later_rows(ctx.spark, place, frame, keys, since=since, by=_newest_by(words))
    held = keeper.keep(held)
    rows = held.count()
    if not rows:
        step.frame, step.kept = frame, True
        return 0
    reason = F.lit(f'"{load.name}" has a newer row with this key')
    told = held.select(*refusal(held, rule=RULE, reason=reason))
    walked.rejects.append(Rejects(frame=told, stage=load.inputs[0], kind="check", rows=rows))
    lands = keeper.keep(lands)
    count = Count(known=lands.count())
    walked.frames[load.inputs[0]] = replace(
        step, frame=lands, kept=True, count=count, holds_rows=False
    )
    return rows


def _version(ctx: RunContext, place: str, version: int | None) -> int | None:
    """The version, if the table still has it."""
    try:
        found = version is not None and DeltaRsEngine(ctx.site.stores).info(place, version=version)
    except VersionNotFound:
        return None
    return version if found else None


def _newest_by(words: Mapping[str, Any]) -> str:
    """The column that says which of two rows is newer; empty when the file names none."""
    duplicates = words.get("duplicates")
    if isinstance(duplicates, Mapping) and duplicates.get("keep") == "newest":
        return str(duplicates["by"])
    condition = words.get("update_condition")
    order = order_of(str(condition)) if condition else None
    return order.by if order is not None and order.keep == "newest" else ""


def _require_last_step(plan: Plan, load: Load) -> None:
    """Rows that were held back for a table must not have gone on elsewhere."""
    for stage in plan.stages:
        if isinstance(stage, Apply) and load.inputs[0] in stage.inputs:
            raise GuardError(
                f'"{load.name}" has newer rows with the keys of rows that come back, and '
                f'step "{stage.name}" gets these rows too',
                hint=f"choose others with --batch or --rule; {OVERWRITE}",
            )
