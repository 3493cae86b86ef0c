"""What a replay would do: the same way back, with the sinks asked instead of told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from deltaworks.contracts.context import RunContext
from deltaworks.model.results import PlanResult
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.environment import RunEnv
from deltaworks.runtime.quarantine.later_rows import with_versions
from deltaworks.runtime.quarantine.replay import ReplayEvaluator, looked_up, replay_path
from deltaworks.runtime.quarantine.table import Choice, replayed_rows
from deltaworks.runtime.runs.plan import explained


def explain_replay(
    plan: Plan,
    place: RunEnv,
    *,
    choice: Choice | None = None,
    changes: Mapping[str, str] | None = None,
    overwrite: bool = False,
) -> PlanResult:
    """Read the rows that would come back, compare with the tables, write nothing."""
    name = plan.pipeline.name
    quarantine, state = place.quarantine(name), place.ledger(name).state()
    replay = quarantine.pick(choice or Choice(), dict(changes or {}))
    if replay is None:
        note = "no such row is in quarantine"
        return PlanResult(pipeline=name, offline=False, stages=(), outputs=(), notes=(note,))
    way = replay_path(plan, quarantine.entries(replay))
    sinks = [load.name for load in way.plan.loads]
    known = replace(with_versions(replay, state, sinks), overwrite=overwrite)

    def walker(ctx: RunContext, **common: Any) -> ReplayEvaluator:
        kept = replayed_rows(ctx, quarantine, known)
        return ReplayEvaluator(way, ctx, kept=kept, replay=known, **common)

    return explained(way.plan, place, looked_up(way, place.project_ctx), walker)
