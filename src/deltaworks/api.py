"""One facade: everything the command line can do, from Python.

Example::

    project = Project.open(".")
    result = project.run("orders", variables={"day": "2026-01-02"})
    print(result.status, result.batches[-1].outputs[0].rows_updated)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from deltaworks.clock import Clock, SystemClock
from deltaworks.config.interpolate import Names
from deltaworks.config.project import ProjectConfig, load_project
from deltaworks.contracts.context import ProjectContext
from deltaworks.errors import ConfigError, Problem
from deltaworks.model.results import CaseResult, PlanResult, PreviewResult, RunResult
from deltaworks.model.table_ref import quarantined_pipelines
from deltaworks.observe.bus import Bus, Listener
from deltaworks.pipeline.catalog import (
    Catalog,
    in_order,
    is_pipeline_file,
    load_catalog,
    name_in,
    path_of,
    pipeline_files,
    pipeline_names,
    plan_of,
    plans_of,
    required_files,
)
from deltaworks.pipeline.locations import places_of, with_credentials
from deltaworks.pipeline.parse import native_form
from deltaworks.pipeline.spec import Pipeline
from deltaworks.pipeline.stages import Plan
from deltaworks.runtime.project_tables import ProjectTables
from deltaworks.runtime.spark import SparkStarter
from deltaworks.storage.engine_options import table_options
from deltaworks.storage.paths import folders_in
from deltaworks.suggest import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from deltaworks.model.epochs import EpochRecord
    from deltaworks.model.probe import ProbeResult
    from deltaworks.pipeline.project_graph import ProjectGraph
    from deltaworks.runtime.environment import RunEnv
    from deltaworks.runtime.quarantine.table import Choice, Quarantine, ReplayKwargs
    from deltaworks.runtime.recovery.accept_result import AcceptResult
    from deltaworks.runtime.recovery.restore import RestoreResult
    from deltaworks.runtime.recovery.undo import UndoResult
    from deltaworks.runtime.run_records import CheckRecord, RunRecord
    from deltaworks.runtime.runs.runner import RunKwargs
    from deltaworks.runtime.streams.files import StreamResult, StreamRunKwargs
    from deltaworks.streams.opening import StreamKwargs
    from deltaworks.streams.sink import EpochSink

Variables = Mapping[str, str]


def _silent(_: str) -> None:
    """Say nothing."""


class Project(ProjectTables):
    """A project: its pipelines, its tables, its runs, and one Spark for all of them."""

    def __init__(
        self,
        config: ProjectConfig,
        *,
        spark: SparkSession | None = None,
        listeners: Sequence[Listener] = (),
        notify: Callable[[str], None] = _silent,
        clock: Clock | None = None,
        one_command: bool = False,
    ) -> None:
        self.config = config
        self._one_command = one_command
        self._notify = notify
        self._clock = clock or SystemClock()
        self._bus = Bus(listeners)
        self._starter = SparkStarter(config, own=spark, notify=notify)

    @classmethod
    def open(
        cls,
        path: str | Path = ".",
        *,
        profile: str = "",
        variables: Variables | None = None,
        spark: SparkSession | None = None,
        listeners: Sequence[Listener] = (),
        notify: Callable[[str], None] = _silent,
        one_command: bool = False,
    ) -> Self:
        """The project at or above a folder; a session you bring is used instead of our own.

        A process that ends with its first call says `one_command`: Java is started to fit that.
        """
        start = Path(path).expanduser().absolute()
        if not start.exists():
            raise ConfigError(f'folder "{path}" does not exist')
        folder = start if start.is_dir() else start.parent
        config = load_project(folder, environ=os.environ, profile=profile, variables=variables)
        return cls(config, spark=spark, listeners=listeners, notify=notify, one_command=one_command)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop Spark, if this project started it."""
        self._starter.close()

    @property
    def spark(self) -> SparkSession:
        """A session with Delta ready, for notebooks."""
        self._starter.need((self.config.warehouse, *self.config.storage), self.config.stores)
        return self._starter.shared()

    @contextmanager
    def locked(self, *tables: str) -> Iterator[None]:
        """Keep tables to yourself while you write them with a tool of your own."""
        from deltaworks.storage.locks.file_lock import lock_of, locked

        paths = [lock_of(self.project_ctx.table(table=name, path="").location) for name in tables]
        wait, stores = self.config.locks.wait_seconds, self.config.stores
        with locked(paths, wait_seconds=wait, notify=self._notify, stores=stores):
            yield

    def pipelines(self) -> tuple[Path, ...]:
        """The project's pipeline files."""
        return pipeline_files(self.config)

    def validate(self, *targets: str) -> tuple[Problem, ...]:
        """Every problem of the named pipelines, or of all; starts nothing."""
        return self.catalog(*targets).problems

    def catalog(self, *targets: str) -> Catalog:
        """The plans of the named pipelines, or of all, with every problem in and between them."""
        paths = map(self.file, targets) if targets else required_files(self.config)
        return load_catalog(self.config, paths)

    def notes(self, catalog: Catalog) -> tuple[Problem, ...]:
        """What may be a mistake: tables that are missing, pipelines that read each other."""
        from deltaworks.pipeline.notes import catalog_notes

        return catalog_notes(self.config, catalog)

    def graph(self, *targets: str) -> ProjectGraph:
        """Which pipeline reads and writes which data; every file must be right."""
        from deltaworks.pipeline.project_graph import project_graph

        paths = [self.file(target) for target in targets] or required_files(self.config)
        return project_graph(plans_of(self.config, paths, ()), self.project_ctx)

    def file(self, target: str) -> Path:
        """The file of a pipeline that is named by it or by its own name."""
        return path_of(self.config, target)

    def convert(self, target: str) -> dict[str, Any]:
        """A pipeline file's native form, as plain values; variables stay as they are written."""
        return native_form(self.file(target), self.config.root)

    def plan(
        self,
        target: str | Pipeline,
        *,
        variables: Variables | None = None,
        offline: bool = False,
    ) -> PlanResult:
        """What a run would do. Nothing is written."""
        from deltaworks.runtime.runs.plan import explain_offline, explain_plan

        plan = self._plan(target, variables)
        explain = explain_offline if offline else explain_plan
        with plan.pipeline.origin.wording():
            return explain(plan, self._workplace(plan))

    def preview(
        self,
        target: str | Pipeline,
        *,
        step: str = "",
        limit: int = 20,
        full: bool = False,
        variables: Variables | None = None,
    ) -> PreviewResult:
        """The first rows of a source, a transform, or what a check or sink gets; no writing."""
        from deltaworks.runtime.runs.preview import preview_plan

        plan = self._plan(target, variables)
        with plan.pipeline.origin.wording():
            return preview_plan(plan, self._workplace(plan), step=step, limit=limit, full=full)

    def run(
        self,
        target: str | Pipeline,
        *,
        variables: Variables | None = None,
        **options: Unpack[RunKwargs],
    ) -> RunResult:
        """Run a pipeline once; a run that fails is a result with an error."""
        from deltaworks.runtime.runs.runner import RunOptions, run_plan

        plan = self._plan(target, variables)
        return run_plan(plan, self._workplace(plan), RunOptions(**options))

    def run_all(
        self,
        *targets: str | Pipeline,
        variables: Variables | None = None,
        parallel: int = 1,
        **options: Unpack[RunKwargs],
    ) -> tuple[RunResult, ...]:
        """Run the named pipelines, or all; those that write a table before those that read it.

        With `parallel` so many run side by side, and listeners are called from several threads.
        What reads the tables of a pipeline that failed is not run. A timeout is for each run.
        """
        from deltaworks.runtime.runs.runner import RunOptions, run_plan
        from deltaworks.runtime.runs.schedule import Job, run_jobs

        if parallel < 1:
            raise ConfigError("at least one pipeline must run at a time")
        plans, after = in_order(self._plans(targets, variables), self.project_ctx)
        wanted = RunOptions(**options)

        def job(plan: Plan) -> Job:
            place = self._workplace(plan, among=plans)
            written = (load.plugin.target(self.project_ctx).location for load in plan.loads)
            return Job(
                name=plan.pipeline.name,
                after=after[plan.pipeline.name],
                places=frozenset(written),
                do=lambda: run_plan(plan, place, wanted),
                halt=place.halt,
            )

        return run_jobs([job(plan) for plan in plans], at_once=parallel)

    def test(self, *targets: str, variables: Variables | None = None) -> tuple[CaseResult, ...]:
        """Run the tests of `tests/*.yaml`, or those that files and names choose.

        A test never touches the project's tables; each has a warehouse that is thrown away.
        """
        from deltaworks.pipeline.test_cases import chosen_cases, planned_cases
        from deltaworks.runtime.testing.run_case import run_case

        results = []
        cases = chosen_cases(self.config.root, targets)
        for placed, plan in planned_cases(cases, self.config, self._names(variables)):
            self._notify(f"{placed.pipeline}: test {placed.case.name}")
            results.append(run_case(placed, plan, self._workplace(plan)))
        return tuple(results)

    def resume(self, run_id: str, *, variables: Variables | None = None) -> RunResult:
        """Finish the batch that a run left unfinished, and do nothing else."""
        from deltaworks.runtime.runs.runner import RunOptions, run_plan

        plan = self._plan(self.find_run(run_id).pipeline, variables)
        return run_plan(plan, self._workplace(plan), RunOptions(finish_only=True))

    def load_parked(self, run_id: str, *, variables: Variables | None = None) -> RunResult:
        """Commit the batch that a run had to park, and do nothing else."""
        from deltaworks.runtime.runs.runner import RunOptions, run_plan

        record = self.find_run(run_id)
        plan = self._plan(record.pipeline, variables)
        return run_plan(plan, self._workplace(plan), RunOptions(parked_run=record.run_id))

    def abandon(self, run_id: str, *, variables: Variables | None = None) -> int:
        """Give up the batch that a run left unfinished, if it landed nowhere; its number."""
        from deltaworks.runtime.runs.runner import abandon_batch

        record = self.find_run(run_id)
        plan = self._plan(record.pipeline, variables)
        return abandon_batch(plan, self._workplace(plan), record.run_id).n

    def quarantine(self, pipeline: str) -> Quarantine:
        """What a pipeline has quarantined; no JVM is needed to look."""
        return self._workplace().quarantine(pipeline)

    def quarantined(self) -> tuple[str, ...]:
        """The pipelines that have quarantined rows, by name."""
        return quarantined_pipelines(folders_in(self.config.warehouse, self.config.stores))

    def replay(
        self, pipeline: str, *, variables: Variables | None = None, **words: Unpack[ReplayKwargs]
    ) -> RunResult:
        """Bring rows back from quarantine, each at the step it left, as one batch."""
        from deltaworks.runtime.runs.runner import replay_options, run_plan

        plan = self._plan(pipeline, variables)
        return run_plan(plan, self._workplace(plan), replay_options(**words))

    def plan_replay(self, pipeline: str, **words: Unpack[ReplayKwargs]) -> PlanResult:
        """What a replay would do. Nothing is written."""
        from deltaworks.runtime.runs.replay_plan import explain_replay

        plan = self._plan(pipeline, None)
        return explain_replay(plan, self._workplace(plan), **words)

    def discard(self, pipeline: str, *, choice: Choice, note: Mapping[str, str]) -> int:
        """Remove rows from quarantine for good; waits for a run of the pipeline to end."""
        from deltaworks.storage.locks.file_lock import locked, pipeline_lock

        path = pipeline_lock(self.config.warehouse, pipeline)
        wait = self.config.locks.wait_seconds
        stores = self.config.stores
        with locked([path], wait_seconds=wait, notify=self._notify, stores=stores) as locks:
            locks.require()
            return self.quarantine(pipeline).discard(choice, note=note)

    def find_run(self, run_id: str) -> RunRecord:
        """The run whose id begins so."""
        from deltaworks.runtime.run_records import run_named

        return run_named(run_id, self.runs())

    def runs(self, pipeline: str = "") -> tuple[RunRecord, ...]:
        """Every recorded run, or those of one pipeline, newest first."""
        return self._workplace().records().all(pipeline)

    def checks(self, pipeline: str, *, check: str = "", last: int = 10) -> tuple[CheckRecord, ...]:
        """What checks found in the last runs that had any, newest last; no JVM is needed."""
        from deltaworks.runtime.run_records import last_checks

        name = self.pipeline_name(pipeline)
        return last_checks(name, self.runs(name), check=check, last=last)

    def pipeline_name(self, target: str) -> str:
        """The name of a pipeline that the project has, or once ran; a file stands for its own."""
        if is_pipeline_file(target):
            return name_in(self.file(target), self.config.root)
        names = pipeline_names(self.config)
        if target not in names:
            names = (*names, *(run.pipeline for run in self.runs()), *self.quarantined())
        if target not in names:
            hint = did_you_mean(target, dict.fromkeys(names))
            raise ConfigError(f'there is no pipeline "{target}", nor a run of one', hint=hint)
        return target

    def stream(
        self,
        table: str,
        *,
        writer_id: str,
        schema: pa.Schema | None = None,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        **options: Unpack[StreamKwargs],
    ) -> EpochSink[Any]:
        """A sink that lands Arrow batches in a table as numbered epochs; no JVM is needed.

        With a schema a table that is not there is made. A bucket is reached as `storage` says.
        """
        from deltaworks.streams.opening import NewTable, StreamOptions, open_stream

        ref = self.table(table).ref
        options.setdefault("storage_options", table_options(self.config.stores, ref.location))
        return open_stream(
            ref,
            StreamOptions(writer_id=writer_id, **options),
            new_table=NewTable(schema=schema, partition_by=partition_by, properties=properties),
            tell=self._bus.tell,
        )

    def stream_files(
        self, target: str | Pipeline, *, writer_id: str, **words: Unpack[StreamRunKwargs]
    ) -> StreamResult:
        """Stream a pipeline's new files into its table, in order, each once."""
        from deltaworks.runtime.streams.files import stream_plan

        plan = self._plan(target, None)
        return stream_plan(plan, self._workplace(plan), writer_id=writer_id, **words)

    def probe(self, name: str, *, variables: Variables | None = None) -> tuple[ProbeResult, ...]:
        """Try to reach a bucket, a path, a credential, or what a pipeline reads; no JVM."""
        from deltaworks.runtime.diagnostics.probe import probe

        return probe(name, self.config, lambda pipeline: self._plan(pipeline, variables))

    def epochs(self, table: str) -> tuple[EpochRecord, ...]:
        """Which version each epoch of a table's streams became, oldest first."""
        from deltaworks.streams.epochs import table_epochs

        ref = self.table(table).ref
        return table_epochs(ref, storage_options=table_options(self.config.stores, ref.location))

    def restore(
        self,
        name: str,
        *,
        version: int | None = None,
        timestamp: datetime | None = None,
        apply: bool = False,
    ) -> RestoreResult:
        """Restore a table to a version or a timestamp; without `apply` only say what that does."""
        from deltaworks.runtime.recovery.restore import restore_table, wanted_version

        ref = self.table(name).ref
        stores = self.config.stores
        version = wanted_version(ref, version=version, timestamp=timestamp, stores=stores)
        return restore_table(ref, version, self._workplace(), apply=apply)

    def accept(self, name: str, *, keep_position: bool, apply: bool = False) -> AcceptResult:
        """Take a table as it is after others changed it; without `apply` only say what it means."""
        from deltaworks.runtime.recovery.accept import accept_table

        writers = [(plan, self._workplace(plan)) for plan in self.catalog().plans]
        return accept_table(self.table(name).ref, writers, keep=keep_position, apply=apply)

    def undo(
        self, run_id: str, *, apply: bool = False, variables: Variables | None = None
    ) -> UndoResult:
        """Take back one run, if nothing later touched its rows; without `apply` only look."""
        from deltaworks.runtime.recovery.undo import undo_run

        record = self.find_run(run_id)
        plan = self._plan(record.pipeline, variables)
        return undo_run(record.run_id, plan, self._workplace(plan), apply=apply)

    def _names(self, variables: Variables | None) -> Names:
        own, more = self.config.names, variables or {}
        return replace(own, variables={**own.variables, **more}, given=own.given.union(more))

    def _plan(self, target: str | Pipeline, variables: Variables | None) -> Plan:
        return plan_of(self.config, target, self._names(variables))

    def _plans(self, chosen: Sequence[str | Pipeline], given: Variables | None) -> tuple[Plan, ...]:
        """The plans of some pipelines, or of all; every file of the project must be right."""
        built = [self._plan(target, None) for target in chosen if isinstance(target, Pipeline)]
        names = [target for target in chosen if isinstance(target, str)]
        if built and not names:
            return tuple(built)
        config = replace(self.config, names=self._names(given))
        return (*plans_of(config, required_files(config), names), *built)

    def _workplace(self, plan: Plan | None = None, *, among: Sequence[Plan] = ()) -> RunEnv:
        """Where a plan is at work, its buckets opened as it says, or no plan in particular.

        The plans it is among are all that will run.
        """
        from deltaworks.runtime.environment import RunEnv

        known = () if plan is None else (plan,)
        config = self.config if plan is None else with_credentials(self.config, plan)
        if plan is not None:
            self._starter.need(places_of(plan, ProjectContext.of(config)), config.stores)
        return RunEnv(
            config=config,
            clock=self._clock,
            bus=self._bus,
            spark=self._starter,
            notify=self._notify,
            plans=tuple(among) or known if self._one_command else (),
        )
