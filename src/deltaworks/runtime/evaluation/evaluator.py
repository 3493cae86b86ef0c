"""Walks a plan up to its sinks: extract, transform, check. Nothing is written here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from deltaworks.clock import Clock
from deltaworks.contracts.context import RunContext
from deltaworks.engines.spark.frames.rejects import is_marked, unmarked
from deltaworks.engines.spark.frames.row_counter import RowCounter, may_stop_early, settle
from deltaworks.engines.spark.session.connect import resolved
from deltaworks.errors import DeltaworksError
from deltaworks.model.batch import Bounds
from deltaworks.model.results import CheckResult, StepResult
from deltaworks.pipeline.stages import Apply, Extract, Load, Plan, Stage, Verify
from deltaworks.runtime.error_boundary import step_boundary
from deltaworks.runtime.evaluation.checks import check_step, parts_too, require_conditions
from deltaworks.runtime.evaluation.frames import Count, FrameCache, Rejects, StepFrame, split
from deltaworks.runtime.evaluation.row_fates import Passed, total
from deltaworks.runtime.source_bounds import bounds_here

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from deltaworks.contracts.sink import Beside

_log = logging.getLogger("deltaworks")


@dataclass(kw_only=True)
class Evaluation:
    """What a walk found: frames by step, rows refused, checks, and what was read."""

    frames: dict[str, StepFrame] = field(default_factory=dict)
    sources: dict[str, StepFrame] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)
    rejects: list[Rejects] = field(default_factory=list)
    checks: list[CheckResult] = field(default_factory=list)

    def rows_read(self) -> int | None:
        """Rows of all sources; None when one of them could not be counted."""
        return total(step.rows() for step in self.sources.values())

    def why_unread(self) -> str:
        """Why nobody knows how many rows were read; empty when somebody does."""
        for name, step in self.sources.items():
            if why := step.count.why_unknown():
                return f'source "{name}": {why}'
        return ""

    def count_all(self, rows: int | None) -> None:
        """Every step had so many rows, where nothing was counted yet: the sink has counted them."""
        for count in self.counts():
            count.known = rows if count.known is None else count.known

    def counts(self) -> list[Count]:
        """The counts of all steps."""
        steps = (*self.sources.values(), *self.frames.values(), *(one.step for one in self.passed))
        return [*(step.count for step in steps), *(n for one in self.passed for n in one.came)]

    def rows_quarantined(self) -> int:
        """Quarantined rows."""
        return sum(part.rows for part in self.rejects)

    def steps(self) -> tuple[StepResult, ...]:
        """The steps for the result; rows are asked for now, when they have passed."""
        return tuple(item.result() for item in self.passed)


class PlanEvaluator:
    """Walks one plan once."""

    def __init__(
        self,
        plan: Plan,
        ctx: RunContext,
        *,
        bounds: Mapping[str, Bounds],
        clock: Clock,
        keeper: FrameCache,
        on_stage: Callable[[Stage], None],
        observe: bool = True,
        settled: frozenset[str] = frozenset(),
    ) -> None:
        self.plan = plan
        self.ctx = ctx
        self.bounds = bounds_here(plan, ctx.project_ctx, bounds)
        self.clock = clock
        self.keeper = keeper
        self.on_stage = on_stage
        self.observe = observe
        self.looked_ahead = False
        self.read: dict[str, DataFrame] = {}
        self.settled = settled
        """Sinks whose standing rows do not count: they have the batch, or it replaces all."""
        self.file = plan.pipeline.origin.file
        self.found = Evaluation()
        self.came: tuple[Count, ...] = ()
        """Rows that come into the step at work."""
        self.left_out: Count | None = None
        """Counts what the step at work leaves out."""
        self.applied = False
        """Whether the step at work is a transform that rows go through."""

    def walk(self) -> Evaluation:
        """Go through every stage but the loads."""
        try:
            for stage in self.plan.stages:
                if isinstance(stage, Extract):
                    self._timed(stage, self._extract)
                elif isinstance(stage, Apply):
                    self._timed(stage, self._apply)
        except DeltaworksError as error:
            raise self.explained(error) from error.__cause__
        for stage in self.plan.sources:
            if stage.name in self.bounds:
                self._locate(stage, self.bounds[stage.name])
        return self.found

    def _locate(self, stage: Extract, bounds: Bounds) -> None:
        """Add the line to rows that a source refused, where they are few."""
        from deltaworks.engines.spark.read.line_numbers import MAX_ROWS

        for i, part in enumerate(self.found.rejects):
            if (part.stage, part.kind) == (stage.name, stage.kind) and 0 < part.rows <= MAX_ROWS:
                with step_boundary(stage, self.file):
                    frame = stage.plugin.located(self.ctx, bounds, part.frame)
                self.found.rejects[i] = replace(part, frame=frame)

    def explained(self, error: DeltaworksError) -> DeltaworksError:
        """The error with the data file, line and value at fault, where a source can tell."""
        for stage in self.plan.stages:
            if stage.name == error.context.get("raised_by"):
                error.at(self.file, stage.line)
        suspects = [
            name
            for stage in self.plan.stages
            if isinstance(stage, Apply)
            for name in stage.plugin.columns_converted()
        ]
        error.context.setdefault("columns", suspects)
        for stage in self.plan.sources:
            if stage.name in self.bounds:
                error = _explained(stage, self.ctx, self.bounds[stage.name], error)
        return error

    def _timed(self, stage: Stage, do: Callable[..., StepFrame]) -> None:
        self.on_stage(stage)
        start = self.clock.monotonic()
        self._forget_step()
        with step_boundary(stage, self.file):
            step = do(stage)
            resolved(step.frame)
        came, rows_refused = self.came or (step.count,), 0
        self._look_ahead(stage, step)
        checks = self._checks(stage)
        if not parts_too(step, checks):
            with step_boundary(stage, self.file):
                step, refused = split(step, stage, self.keeper)
            if refused is not None:
                self.found.rejects.append(refused)
                rows_refused = refused.rows
        self.found.frames[stage.name] = step
        self.found.passed.append(
            Passed(
                stage=stage,
                came=came,
                step=step,
                duration_s=self.clock.monotonic() - start,
                rows_refused=rows_refused,
                left_out=self.left_out,
                was_applied=self.applied,
            )
        )
        if checks:
            self._check(stage, checks)

    def _forget_step(self) -> None:
        self.came, self.left_out, self.applied = (), None, False

    def _extract(self, stage: Extract) -> StepFrame:
        bounds = self.bounds[stage.name]
        rows = stage.plugin.rows(self.ctx.project_ctx, bounds)
        frame = self._read(stage)
        if self.observe:
            step = counted(frame, known_rows=rows)
        else:
            step = StepFrame(frame=frame, count=Count(known=rows))
        step.holds_rows = bool(rows) or stage.plugin.holds_rows(self.ctx.project_ctx, bounds)
        self.found.sources[stage.name] = step
        return step

    def _apply(self, stage: Apply) -> StepFrame:
        return self._applied(stage, self.found.frames[stage.inputs[0]])

    def _applied(self, stage: Apply, before: StepFrame) -> StepFrame:
        others = {name: self.found.frames[name] for name in stage.inputs[1:]}
        added = [step.count for step in others.values()] if stage.plugin.adds_inputs else []
        self.came, self.applied = (before.count, *added), True
        ctx = replace(self.ctx, step=stage.name, watch_left_out=self._watch)
        frames = {name: step.frame for name, step in others.items()}
        with self._doubting(stage):
            frame = stage.plugin.apply(ctx, self._watched(stage, before.frame), frames)
        if stage.plugin.leaves_out() == "unknown" and may_stop_early(frame):
            self._doubt(stage, self._counts_before(stage))
        if stage.plugin.keeps_every_row():
            return replace(before, frame=frame, kept=False)
        return counted(frame, known_rows=None)

    def _watched(self, stage: Apply, frame: DataFrame) -> DataFrame:
        """The step's input, counting what the step says it will leave out."""
        where = stage.plugin.left_out(frame)
        return frame if where is None else self._watch(frame, where)

    def _watch(self, frame: DataFrame, where: Column) -> DataFrame:
        counter = RowCounter()
        self.left_out = Count(counter=counter)
        return counter.watch(frame, where=where)

    @contextmanager
    def _doubting(self, stage: Apply) -> Iterator[None]:
        """Trust no count that code of the user's brings about: it may have read a few rows only."""
        is_unknown = stage.plugin.leaves_out() == "unknown"
        counts = self._counts_before(stage) if is_unknown else []
        waiting = [one for one in counts if one.counter and not one.counter.has_counted()]
        yield
        if waiting:
            settle(self.ctx.spark)
        self._doubt(stage, [one for one in waiting if one.counter and one.counter.has_counted()])

    def _doubt(self, stage: Apply, counts: Sequence[Count]) -> None:
        for count in counts:
            count.doubt = f'step "{stage.name}" may have read only some of these rows'

    def _counts_before(self, stage: Apply) -> list[Count]:
        """The counts of all steps that a step depends on, as far as they are not known yet."""
        names = set(stage.inputs)
        for earlier in reversed(self.plan.stages):
            if earlier.name in names:
                names |= set(earlier.inputs)
        before = [one for one in self.found.passed if one.stage.name in names]
        found = [n for one in before for n in (*one.came, one.step.count, one.left_out) if n]
        return [count for count in (*found, *self.came) if count.known is None]

    def _look_ahead(self, stage: Stage, step: StepFrame) -> None:
        """Before the first job: describe what follows, so that a wrong column is told at once."""
        if self.looked_ahead or not self._starts_job(stage, step):
            return
        self.looked_ahead = True
        frames = {name: found.frame for name, found in self.found.frames.items()}
        frames[stage.name] = unmarked(step.frame)
        for later in self.plan.stages[self.plan.stages.index(stage) + 1 :]:
            if isinstance(later, Load) or not set(later.inputs) <= frames.keys():
                continue  # its columns are known only when it runs
            with step_boundary(later, self.file):
                if isinstance(later, Extract):
                    frames[later.name] = resolved(unmarked(self._read(later)))
                elif isinstance(later, Verify):
                    require_conditions(self.ctx, frames[later.inputs[0]], later)
                elif later.plugin.columns_known():
                    frame, *others = (frames[name] for name in later.inputs)
                    named = dict(zip(later.inputs[1:], others, strict=True))
                    described = later.plugin.apply(self.ctx, frame, named)
                    frames[later.name] = resolved(unmarked(described))

    def _starts_job(self, stage: Stage, step: StepFrame) -> bool:
        """Whether rows are read as soon as the step is described: refused ones, or for a check."""
        checks = (later for later in self.plan.stages if isinstance(later, Verify))
        return is_marked(step.frame) or any(check.inputs[0] == stage.name for check in checks)

    def _read(self, stage: Extract) -> DataFrame:
        if stage.name not in self.read:
            self.read[stage.name] = stage.plugin.read(self.ctx, self.bounds[stage.name])
        return self.read[stage.name]

    def _checks(self, stage: Stage) -> list[Verify]:
        return [
            check
            for check in self.plan.stages
            if isinstance(check, Verify) and check.inputs[0] == stage.name
        ]

    def _check(self, stage: Stage, checks: Sequence[Verify]) -> None:
        """Check a step's rows; what passes takes their place."""
        self.on_stage(checks[0])
        start = self.clock.monotonic()
        checked = check_step(
            self.ctx,
            self.found.frames[stage.name],
            stage,
            checks,
            file=self.file,
            keeper=self.keeper,
            targets=lambda frame, columns: self._targets(stage, frame, columns),
        )
        self.found.frames[stage.name] = checked.step
        by_checks = sum(part.rows for part in checked.rejects if part.kind == "check")
        by_step = sum(part.rows for part in checked.rejects) - by_checks
        own = self.found.passed[-1]
        self.found.passed[-1] = replace(
            own, step=checked.taken, rows_refused=own.rows_refused + by_step
        )
        self.found.rejects.extend(checked.rejects)
        self.found.checks.extend(checked.results)
        self.found.passed.append(
            Passed(
                stage=checks[0],
                came=(checked.taken.count,),
                step=checked.step,
                duration_s=self.clock.monotonic() - start,
                rows_refused=by_checks,
                rows_dropped=checked.rows_dropped,
            )
        )

    def _targets(self, stage: Stage, frame: DataFrame, columns: Sequence[str]) -> list[Beside]:
        """What stands already where a step's rows go, and what of them goes there."""
        found = []
        for load in self.plan.loads:
            if load.inputs[0] == stage.name and load.name not in self.settled:
                with step_boundary(load, self.file):
                    found.append(load.plugin.beside(self.ctx, frame, columns))
        return found


def _explained(
    stage: Extract, ctx: RunContext, bounds: Bounds, error: DeltaworksError
) -> DeltaworksError:
    try:
        with step_boundary(stage, ""):
            return stage.plugin.explain_failure(ctx, bounds, error)
    except DeltaworksError as second:  # what went wrong first is what counts
        _log.debug("%s could not explain the failure: %s", stage.name, second)
        return error


def counted(frame: DataFrame, *, known_rows: int | None) -> StepFrame:
    """A step whose rows are counted as they pass, unless their number is known."""
    if known_rows is not None:
        return StepFrame(frame=frame, count=Count(known=known_rows))
    counter = RowCounter()
    return StepFrame(frame=counter.watch(frame), count=Count(counter=counter))
