"""One attempt at one batch: evaluate it once, check it, land it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deltaworks.contracts.context import RunContext
from deltaworks.errors import DeltaworksError, InputError
from deltaworks.model.commit import CommitInfo
from deltaworks.model.events import Committed
from deltaworks.model.results import BatchResult
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.batch.load import Landing, dropped_by_sinks, output_result
from deltaworks.runtime.environment import RunEnv, RunName, tell_stage
from deltaworks.runtime.evaluation.checks import failed, quality_error
from deltaworks.runtime.evaluation.evaluator import Evaluation, PlanEvaluator
from deltaworks.runtime.evaluation.frames import FrameCache
from deltaworks.runtime.evaluation.row_fates import rows_dropped
from deltaworks.runtime.ledger.state import DONE, PLANNED, BatchEntry
from deltaworks.runtime.quarantine.replay import ReplayEvaluator, ReplayPath
from deltaworks.runtime.quarantine.table import replayed_rows
from deltaworks.runtime.source_bounds import why_changed


@dataclass(kw_only=True)
class Attempt:
    """How far an attempt got: what it knows of its batch, and whether it began to write."""

    plan: Plan
    place: RunEnv
    run: RunName
    entry: BatchEntry
    warn: Callable[[str], None]
    result: BatchResult
    require_locks: Callable[[], None]
    """Raises when another driver has taken over."""
    way: ReplayPath | None = None
    """The way back of rows from quarantine, if that is where they come from."""
    blocked: frozenset[str] = frozenset()
    may_have_landed: bool = False

    @staticmethod
    def at(
        entry: BatchEntry,
        plan: Plan,
        place: RunEnv,
        run: RunName,
        *,
        way: ReplayPath | None,
        blocked: frozenset[str],
        warn: Callable[[str], None],
        require_locks: Callable[[], None],
    ) -> Attempt:
        """An attempt that has not begun."""
        return Attempt(
            plan=plan if way is None else way.plan,
            place=place,
            run=run,
            entry=entry,
            way=way,
            blocked=blocked,
            warn=warn,
            require_locks=require_locks,
            result=BatchResult(n=entry.n, id=entry.batch_id, state=PLANNED, reads=reads_of(entry)),
        )

    def make(self, ctx: RunContext, landed: Mapping[str, CommitInfo]) -> dict[str, CommitInfo]:
        """Evaluate the batch and land it where it has not landed; frees what it kept."""
        from deltaworks.engines.spark.session.start import cancel_work

        keeper = FrameCache()
        walker = self._walker(replace(ctx, warn=self.warn), keeper, landed)
        try:
            walked = walker.walk()
            for text in walker.held_back if isinstance(walker, ReplayEvaluator) else ():
                self.warn(text)
            self._judge(walked)
            return self._land(walked, ctx, keeper, landed)
        except DeltaworksError as error:
            self._note_violations(error)
            raise walker.explained(error) from error.__cause__
        except KeyboardInterrupt:
            cancel_work(ctx.spark)
            raise
        finally:
            keeper.release()

    def _walker(
        self, ctx: RunContext, keeper: FrameCache, landed: Mapping[str, CommitInfo]
    ) -> PlanEvaluator:
        everywhere = frozenset(load.name for load in self.plan.loads)
        common: dict[str, Any] = {
            "bounds": self.entry.bounds,
            "clock": self.place.clock,
            "keeper": keeper,
            "on_stage": lambda stage: tell_stage(self.place, self.run, stage),
            "settled": everywhere if self.entry.replaces else frozenset(landed),
        }
        replay = self.entry.replay
        if self.way is None or replay is None:
            return PlanEvaluator(self.plan, ctx, observe=not self.plan.counted_by_sink, **common)
        kept = replayed_rows(ctx, self.place.quarantine(self.run.pipeline), replay)
        return ReplayEvaluator(self.way, ctx, kept=kept, replay=replay, **common)

    def _note_violations(self, error: DeltaworksError) -> None:
        """Rules of a table that stopped the batch are kept with the run like failed checks."""
        found = error.context.pop("violations", ())
        if isinstance(found, tuple):
            self.result = replace(self.result, checks=(*self.result.checks, *found))

    def _judge(self, walked: Evaluation) -> None:
        """Stop before anything is written when a check, a limit or a source says so."""
        from deltaworks.runtime.evaluation.quarantine_limits import excesses, warning

        checks = tuple(walked.checks)
        self.result = replace(self.result, checks=checks)
        if wrong := failed(checks):
            line = next(stage.line for stage in self.plan.stages if stage.name == wrong[0].name)
            raise quality_error(checks, file=self.plan.pipeline.origin.file, line=line)
        for excess in excesses(self.plan, walked):
            raise excess.error(self.plan.pipeline.origin.file)
        for check in checks:
            is_let_through = check.passed and bool(check.rows_failed) and check.on_fail == "fail"
            if is_let_through or (not check.passed and check.on_fail == "warn"):
                self.warn(f'check "{check.name}": {check.detail}')
        if said := warning(self.plan, walked):
            self.warn(said)
        if problem := why_changed(self.plan, self.place.project_ctx, self.entry.bounds):
            raise InputError(
                f"a source changed while it was read: {problem}",
                hint="run it again when nobody writes there; nothing was committed",
            )

    def _land(
        self,
        walked: Evaluation,
        ctx: RunContext,
        keeper: FrameCache,
        landed: Mapping[str, CommitInfo],
    ) -> dict[str, CommitInfo]:
        landing = Landing(
            plan=self.plan,
            ctx=ctx,
            entry=self.entry,
            project=self.place.config.project_id,
            profile=self.place.config.profile,
            keeper=keeper,
            retries=self.place.config.retries,
            blocked=self.blocked,
            warn=self.warn,
            require_locks=self.require_locks,
            on_landed=lambda output: self.place.bus.tell(
                Committed(
                    run_id=self.run.run_id,
                    pipeline=self.run.pipeline,
                    n=self.entry.n,
                    output=output,
                )
            ),
            on_stage=lambda load: tell_stage(self.place, self.run, load),
        )
        landing.prepare(walked, landed)
        self.require_locks()
        self.may_have_landed = True
        infos = landing.land(walked, landed)
        if self.plan.counted_by_sink:
            info = infos[self.plan.loads[0].name]
            walked.count_all(info.rows_parked if info.parked else info.rows_inserted)
        outputs = tuple(output_result(load, ctx, infos[load.name]) for load in self.plan.loads)
        self.result = replace(self._counted(walked, infos), state=DONE, outputs=outputs)
        return infos

    def _counted(self, walked: Evaluation, infos: Mapping[str, CommitInfo]) -> BatchResult:
        """The result with what became of every row; a count that is not sure is not told."""
        steps = walked.steps()
        for step in steps:
            if step.unbalanced:
                self.warn(f'step "{step.name}": {step.uncounted}; please report this')
        dropped, why_dropped = rows_dropped(steps)
        reasons = {"rows_read": walked.why_unread(), "rows_dropped": why_dropped}
        return replace(
            self.result,
            rows_read=walked.rows_read(),
            rows_quarantined=walked.rows_quarantined(),
            rows_dropped=None if dropped is None else dropped + dropped_by_sinks(infos),
            uncounted={name: why for name, why in reasons.items() if why},
            steps=steps,
        )


def reads_of(entry: BatchEntry) -> dict[str, str]:
    """What a batch reads, in a few words for each source."""
    return {name: bounds.summary() for name, bounds in entry.bounds.items()}
