"""One attempt at one batch: evaluate it once, check it, land it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from deltaworks.contracts.context import RunContext
from deltaworks.errors import DeltaworksError, InputError
from deltaworks.model.commit import CommitInfo
from deltaworks.model.events import Committed
from deltaworks.model.results import BatchResult
from deltaworks.pipeline.stages import Load, Plan
from deltaworks.runtime.bounds import why_changed
from deltaworks.runtime.frames import Keeper
from deltaworks.runtime.ledger import DONE, PLANNED, BatchEntry
from deltaworks.runtime.load import Landing, dropped_by_sinks, output_result
from deltaworks.runtime.quality import failed, quality_error
from deltaworks.runtime.quarantine import replayed_rows
from deltaworks.runtime.reentry import ReentryWalker, Way
from deltaworks.runtime.walk import Walked, Walker
from deltaworks.runtime.workplace import RunName, Workplace, tell_stage


@dataclass(kw_only=True)
class Attempt:
    """How far an attempt got: what it knows of its batch, and whether it began to write."""

    plan: Plan
    place: Workplace
    run: RunName
    entry: BatchEntry
    twin: BatchEntry | None
    warn: Callable[[str], None]
    result: BatchResult
    require_locks: Callable[[], None]
    """Raises when another driver has taken over."""
    way: Way | None = None
    """The way back of rows from quarantine, if that is where they come from."""
    blocked: frozenset[str] = frozenset()
    may_have_landed: bool = False

    @staticmethod
    def at(
        entry: BatchEntry,
        plan: Plan,
        place: Workplace,
        run: RunName,
        *,
        twin: BatchEntry | None,
        way: Way | None,
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
            twin=twin,
            way=way,
            blocked=blocked,
            warn=warn,
            require_locks=require_locks,
            result=BatchResult(n=entry.n, id=entry.batch_id, state=PLANNED, reads=reads_of(entry)),
        )

    def make(self, ctx: RunContext, landed: frozenset[str]) -> dict[str, CommitInfo]:
        """Evaluate the batch and land it where it has not landed; frees what it kept."""
        from deltaworks.engines.spark.session import cancel_work

        keeper = Keeper()
        walker = self._walker(ctx, keeper, landed)
        try:
            walked = walker.walk()
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

    def _walker(self, ctx: RunContext, keeper: Keeper, landed: frozenset[str]) -> Walker:
        everywhere = frozenset(load.name for load in self.plan.loads)
        common: dict[str, Any] = {
            "bounds": self.entry.bounds,
            "clock": self.place.clock,
            "keeper": keeper,
            "on_stage": lambda stage: tell_stage(self.place, self.run, stage),
            "settled": everywhere if self.entry.replaces else landed,
        }
        replay = self.entry.replay
        if self.way is None or replay is None:
            return Walker(self.plan, ctx, observe=not self.plan.counted_by_sink, **common)
        kept = replayed_rows(ctx, self.place.quarantine(self.run.pipeline), replay)
        return ReentryWalker(self.way, ctx, kept=kept, changes=replay.changes, **common)

    def _note_violations(self, error: DeltaworksError) -> None:
        """Rules of a table that stopped the batch are kept with the run like failed checks."""
        found = error.context.pop("violations", ())
        if isinstance(found, tuple):
            self.result = replace(self.result, checks=(*self.result.checks, *found))

    def _judge(self, walked: Walked) -> None:
        """Stop before anything is written when a check or a source says so."""
        checks = tuple(walked.checks)
        self.result = replace(self.result, checks=checks)
        if wrong := failed(checks):
            line = next(stage.line for stage in self.plan.stages if stage.name == wrong[0].name)
            raise quality_error(checks, file=self.plan.pipeline.origin.file, line=line)
        for check in checks:
            is_let_through = check.passed and bool(check.rows_failed) and check.on_fail == "fail"
            if is_let_through or (not check.passed and check.on_fail == "warn"):
                self.warn(f'check "{check.name}": {check.detail}')
        if problem := why_changed(self.plan, self.place.site, self.entry.bounds):
            raise InputError(
                f"a source changed while it was read: {problem}",
                hint="run it again when nobody writes there; nothing was committed",
            )

    def _land(
        self, walked: Walked, ctx: RunContext, keeper: Keeper, landed: frozenset[str]
    ) -> dict[str, CommitInfo]:
        landing = Landing(
            plan=self.plan,
            ctx=ctx,
            entry=self.entry,
            project=self.place.config.project_id,
            profile=self.place.config.profile,
            keeper=keeper,
            twin=self.twin,
            retries=self.place.config.retries,
            blocked=self.blocked,
            warn=self.warn,
            on_landed=lambda output: self.place.bus.tell(
                Committed(
                    run_id=self.run.run_id,
                    pipeline=self.run.pipeline,
                    n=self.entry.n,
                    output=output,
                )
            ),
            on_stage=self._before_write,
        )
        if self.twin is not None and walked.rows_quarantined():
            self.warn(f"the rows set aside are those of batch {self.twin.n}: not set aside twice")
        landing.prepare(walked, landed)
        self.require_locks()
        self.may_have_landed = True
        infos = landing.land(walked, landed)
        if self.plan.counted_by_sink:
            walked.count_all(infos[self.plan.loads[0].name].rows_inserted)
        dropped = walked.rows_dropped()
        self.result = replace(
            self.result,
            state=DONE,
            rows_read=walked.rows_read(),
            rows_quarantined=walked.rows_quarantined(),
            rows_dropped=None if dropped is None else dropped + dropped_by_sinks(infos),
            steps=walked.steps(),
            outputs=tuple(output_result(load, ctx, infos[load.name]) for load in self.plan.loads),
        )
        return infos

    def _before_write(self, load: Load) -> None:
        tell_stage(self.place, self.run, load)
        self.require_locks()


def reads_of(entry: BatchEntry) -> dict[str, str]:
    """What a batch reads, in a few words for each source."""
    return {name: bounds.summary() for name, bounds in entry.bounds.items()}
