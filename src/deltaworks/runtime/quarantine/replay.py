"""Quarantined rows come back: each at the step it left, and on from there."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any

from deltaworks.contracts.context import ProjectContext, RunContext
from deltaworks.engines.spark.frames.columns import EXACT_TIMES, require_columns
from deltaworks.errors import GuardError
from deltaworks.model.batch import Bounds, Replay
from deltaworks.pipeline.stages import Apply, Extract, Load, Plan, Stage, Verify
from deltaworks.runtime.evaluation.evaluator import Evaluation, PlanEvaluator, counted
from deltaworks.runtime.evaluation.frames import Count, StepFrame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

Entries = Collection[tuple[str, str]]
"""Steps at which rows come back, each with what had refused them: the step itself, or a check."""
_ANEW = "run the pipeline once more instead: with --again, or --full-refresh"


@dataclass(frozen=True)
class ReplayPath:
    """The part of a plan that returning rows pass, and what is looked up on the way."""

    plan: Plan
    steps: frozenset[str]


def replay_path(plan: Plan, entries: Entries) -> ReplayPath:
    """The way of returning rows, or why there is none."""
    names = {stage.name for stage in plan.stages if isinstance(stage, Extract | Apply)}
    for step, _ in entries:
        if step not in names:
            raise GuardError(
                f'rows were quarantined by step "{step}", which the pipeline no longer has',
                hint="choose others with --step or --rule, or discard them",
            )
    passed = {step for step, _ in entries}
    refused_by_step = {step for step, kind in entries if kind != "check"}
    for stage in plan.stages:
        if isinstance(stage, Apply):
            _refuse_lookup(stage, passed)
            if stage.inputs[0] in passed or stage.name in refused_by_step:
                _require_row_wise(stage)
                passed.add(stage.name)
        if isinstance(stage, Load) and stage.inputs[0] in passed:
            _require_taker(stage)
    needed = passed | _looked_up(plan, passed)
    return ReplayPath(replace(plan, stages=tuple(_kept(plan, passed, needed))), frozenset(passed))


def looked_up(way: ReplayPath, project_ctx: ProjectContext) -> dict[str, Bounds]:
    """What rows that come back are joined with, as it is now."""
    return {
        stage.name: stage.plugin.bounds(project_ctx, None)
        for stage in way.plan.sources
        if stage.name not in way.steps
    }


def _refuse_lookup(stage: Apply, passed: set[str]) -> None:
    for name in stage.inputs[1:]:
        if name in passed:
            raise GuardError(
                f'step "{stage.name}" looks up rows of "{name}", so that rows which come back '
                "there would concern rows that are loaded already",
                hint=_ANEW,
            )


def _require_row_wise(stage: Apply) -> None:
    if not stage.plugin.row_wise():
        raise GuardError(
            f'step "{stage.name}" ({stage.plugin.plugin_type()}) looks at all rows together, '
            "so that a few of them cannot come later",
            hint=_ANEW,
        )


def _require_taker(load: Load) -> None:
    if not load.plugin.accepts_late_rows():
        raise GuardError(
            f'sink "{load.name}" replaces what it holds, so that a few rows cannot come later',
            hint=_ANEW,
        )


def _looked_up(plan: Plan, passed: set[str]) -> set[str]:
    """Steps that are needed only because steps on the way look rows up in them."""
    found: set[str] = set()
    for stage in reversed(plan.stages):
        if isinstance(stage, Apply) and stage.name in passed:
            found |= set(stage.inputs[1:])
        elif isinstance(stage, Apply) and stage.name in found:
            found |= set(stage.inputs)
    return found - passed


def _kept(plan: Plan, passed: set[str], needed: set[str]) -> list[Stage]:
    kept: list[Stage] = []
    for stage in plan.stages:
        if isinstance(stage, Load):
            if stage.inputs[0] in passed:
                kept.append(stage)
        elif stage.name in needed or (isinstance(stage, Verify) and stage.inputs[0] in needed):
            kept.append(stage)
    return kept


class ReplayEvaluator(PlanEvaluator):
    """Walks the way of returning rows."""

    def __init__(
        self, way: ReplayPath, ctx: RunContext, *, kept: DataFrame, replay: Replay, **more: Any
    ) -> None:
        super().__init__(way.plan, ctx, **more)
        self.way = way
        self.kept = self.keeper.keep(kept)
        self.replay = replay
        self.changes = replay.changes
        self.held_back: list[str] = []
        self.looked_ahead = True  # rows enter in the middle; the pipeline has run before

    def walk(self) -> Evaluation:
        found = super().walk()
        rows = Count(known=self.kept.count())
        found.sources = {"quarantine": StepFrame(frame=self.kept, count=rows)}
        found.rejects = [part for part in found.rejects if part.stage in self.way.steps]
        from deltaworks.runtime.quarantine.later_rows import hold_back

        self.held_back = hold_back(self.plan, self.ctx, self.replay, found, self.keeper)
        return found

    def _extract(self, stage: Extract) -> StepFrame:
        if stage.name not in self.way.steps:
            return super()._extract(stage)
        left = self._left(stage.name, "extract")
        if left and self.changes:
            raise GuardError(
                "rows that could not be read have no columns yet that could be set",
                hint=f'choose others with --step; these left at "{stage.name}"',
            )
        parts = [
            stage.plugin.reread(self.ctx, rows.select("raw", "row"), columns)
            for rows, columns in left
        ]
        return counted(_union([*parts, *self._rows(stage.name, "check")]), known_rows=None)

    def _apply(self, stage: Apply) -> StepFrame:
        if stage.name not in self.way.steps:
            return super()._apply(stage)
        before = [self.found.frames[name].frame for name in stage.inputs[:1] if self._passed(name)]
        entering = [*before, *self._rows(stage.name, stage.kind)]
        after = self._rows(stage.name, "check")
        if not entering:
            return counted(_union(after), known_rows=None)
        step = self._applied(stage, counted(_union(entering), known_rows=None))
        if not after:
            return step
        behind = counted(_union(after), known_rows=None)
        self.came = (*self.came, behind.count)
        return counted(_union([step.frame, behind.frame]), known_rows=None)

    def _passed(self, name: str) -> bool:
        return name in self.way.steps and name in self.found.frames

    def _left(self, step: str, kind: str) -> list[tuple[DataFrame, StructType]]:
        """Rows that left at a step, one frame for each set of columns they had."""
        from pyspark.sql import functions as F
        from pyspark.sql.types import StructType

        rows = self.kept.filter((F.col("stage") == step) & (F.col("kind") == kind))
        kinds = [row[0] for row in rows.select("columns").distinct().collect()]
        return [
            (rows.filter(F.col("columns") == text), StructType.fromJson(json.loads(text)))
            for text in sorted(kinds)
        ]

    def _rows(self, step: str, kind: str) -> list[DataFrame]:
        """The same with their values back in columns, corrected where the user says so."""
        from pyspark.sql import functions as F

        options = {"mode": "FAILFAST", **EXACT_TIMES}
        return [
            self._changed(
                rows.select(F.from_json("row", columns, options).alias("r")).select("r.*")
            )
            for rows, columns in self._left(step, kind)
        ]

    def _changed(self, rows: DataFrame) -> DataFrame:
        from pyspark.sql import functions as F

        require_columns(rows, self.changes, where="--set", nested=False)
        kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
        return rows.withColumns(
            {name: F.expr(sql).cast(kinds[name.lower()]) for name, sql in self.changes.items()}
        )


def _union(parts: list[DataFrame]) -> DataFrame:
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
