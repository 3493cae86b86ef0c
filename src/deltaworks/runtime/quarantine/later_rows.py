"""Rows that come back from quarantine must not overwrite what later batches wrote, unless told."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from deltaworks.contracts.context import RunContext
from deltaworks.engines.deltars.tables import DeltaRsEngine
from deltaworks.engines.spark.delta.merge.scd2 import IS_CURRENT, VALID_TO
from deltaworks.engines.spark.frames.rejects import refusal
from deltaworks.errors import GuardError, VersionNotFound
from deltaworks.model.batch import Replay
from deltaworks.pipeline.classic.merge_order import order_of
from deltaworks.pipeline.stages import Apply, Load, Plan
from deltaworks.runtime.evaluation.evaluator import Evaluation
from deltaworks.runtime.evaluation.frames import Count, FrameCache, Rejects
from deltaworks.runtime.ledger.state import BatchEntry, LedgerState

RULE = "written later"
_WHY = {
    "upsert": "has a newer row with this key, or deleted it later",
    "scd2": "has a newer row with this key",
    "changelog": "was changed later, and this key may have been changed or deleted then",
}
_KEYED = tuple(_WHY)
OVERWRITE = "--overwrite brings them back all the same"


def with_versions(replay: Replay, state: LedgerState, sinks: Collection[str]) -> Replay:
    """A replay that knows the versions of its tables when its rows were refused."""
    known = {entry.n: entry for entry in state.batches}
    since: dict[str, int] = {}
    for name in sinks:
        made = [_version_of(known.get(n), name) for n in replay.batches]
        versions = [version for version in made if version is not None]
        if versions and len(versions) == len(made):
            since[name] = min(versions)
    return replace(replay, since=since)


def _version_of(entry: BatchEntry | None, sink: str) -> int | None:
    """The version of a table when a batch refused rows; those of a replay are as old as it was."""
    if entry is not None and entry.replay is not None:
        return entry.replay.since.get(sink)
    one = None if entry is None else entry.sink(sink)
    if one is None:
        return None
    return one.version if one.committed else one.version_found


def hold_back(
    plan: Plan, ctx: RunContext, replay: Replay, walked: Evaluation, keeper: FrameCache
) -> list[str]:
    """Part rows that would overwrite newer ones from the others; what to say about them."""
    told: list[str] = []
    for load in plan.loads:
        words = load.plugin.document()
        if replay.overwrite or words.get("mode") not in _KEYED:
            continue
        place = load.plugin.target(ctx.project_ctx).location
        stands = DeltaRsEngine(ctx.project_ctx.stores).identity(place)
        since = _version(ctx, place, replay.since.get(load.name))
        if stands is None or stands[1] == since:
            continue
        rows = _part(load, ctx, walked, keeper, since=since)
        if rows:
            _require_last_step(plan, load)
            told.append(
                f'{rows:,} rows stay in quarantine: "{load.name}" has newer rows with their keys; '
                f"{OVERWRITE}"
            )
    return told


def _part(
    load: Load, ctx: RunContext, walked: Evaluation, keeper: FrameCache, *, since: int | None
) -> int:
    from pyspark.sql import functions as F

    from deltaworks.engines.spark.delta.later_rows import later_rows

    step, words = walked.frames[load.inputs[0]], load.plugin.document()
    place, compared = load.plugin.target(ctx.project_ctx).location, _compared(words)
    frame = step.frame if step.kept else keeper.keep(step.frame)
    _require_keys(load, frame.columns, compared["keys"])
    lands, held = later_rows(ctx.spark, place, frame, since=since, **compared)
    held = keeper.keep(held)
    rows = held.count()
    if not rows:
        step.frame, step.kept = frame, True
        return 0
    reason = F.lit(f'"{load.name}" {_WHY[words["mode"]]}')
    told = held.select(*refusal(held, rule=RULE, reason=reason))
    walked.rejects.append(Rejects(frame=told, stage=load.inputs[0], kind="check", rows=rows))
    lands = keeper.keep(lands)
    count = Count(known=lands.count())
    walked.frames[load.inputs[0]] = replace(
        step, frame=lands, kept=True, count=count, holds_rows=False
    )
    return rows


def _compared(words: Mapping[str, Any]) -> dict[str, Any]:
    """How the rows of a sink are compared with those of its table."""
    keys, moment, by = words["merge_keys"], words.get("sequence_by"), _newest_by(words)
    if words["mode"] == "scd2":
        # a row with a time of its own replaces only the version of that time
        return {"keys": [*keys, *([moment] if moment else [])], "apart": (VALID_TO, IS_CURRENT)}
    return {"keys": keys, "by": by, "wants_key": words["mode"] == "changelog"}


def _require_keys(load: Load, columns: Collection[str], keys: Collection[str]) -> None:
    """Rows without their keys in columns cannot be compared."""
    if not {key.lower() for key in keys} <= {name.lower() for name in columns}:
        raise GuardError(
            f'later batches wrote to "{load.name}", and the rows that come back cannot be compared '
            "with theirs: their keys are inside change records",
            hint=f"choose others with --batch or --rule; {OVERWRITE}",
        )


def _version(ctx: RunContext, place: str, version: int | None) -> int | None:
    """The version, if the table still has it."""
    try:
        found = version is not None and DeltaRsEngine(ctx.project_ctx.stores).info(
            place, version=version
        )
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
