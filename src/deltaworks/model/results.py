"""What a run, a plan and a validation tell the person who asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deltaworks.errors import EXIT_OK, EXIT_PARKED, DeltaworksError
from deltaworks.model.commit import Shown
from deltaworks.model.merge_facts import FilesUsed
from deltaworks.model.schema import SchemaChange

CONTRACT = 1
SUCCEEDED = "succeeded"
FAILED = "failed"
SKIPPED = "skipped"
PARKED = "parked"
STOPPED = "stopped"
RUNNING = "running"
KILLED = "killed"


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """One step of a batch. Rows that were not counted are None."""

    name: str
    type: str
    rows: int | None
    """Rows that it passed on."""
    duration_s: float
    rows_in: int | None = None
    """Rows that came into it; of a source, those that were read."""
    rows_quarantined: int = 0
    rows_dropped: int | None = None
    """Rows that it left out by its own name."""
    uncounted: str = ""
    """Why a count is not known; empty when all are."""
    unbalanced: bool = False
    """Whether what came in is not what can be accounted for."""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "rows_in": self.rows_in,
            "rows": self.rows,
            "rows_quarantined": self.rows_quarantined,
            "rows_dropped": self.rows_dropped,
            "uncounted": self.uncounted or None,
            "duration_s": round(self.duration_s, 3),
        }


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """What one check found."""

    name: str
    type: str
    on_fail: str
    passed: bool
    step: str = ""
    description: str = ""
    max_failed: str | None = None
    rows_checked: int | None = None
    rows_failed: int | None = None
    detail: str = ""
    samples: tuple[str, ...] = ()

    @property
    def stops(self) -> bool:
        """Whether the run must not publish; quarantined rows stop it only beyond a limit."""
        is_limit = self.on_fail in ("quarantine", "drop") and self.max_failed is not None
        return not self.passed and (self.on_fail == "fail" or is_limit)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "step": self.step,
            "description": self.description,
            "on_fail": self.on_fail,
            "max_failed": self.max_failed,
            "passed": self.passed,
            "rows_checked": self.rows_checked,
            "rows_failed": self.rows_failed,
            "detail": self.detail,
            "samples": list(self.samples),
        }


@dataclass(frozen=True, kw_only=True)
class MaintenanceResult:
    """What looking after a table did once a batch was in it."""

    operation: str
    version: int | None = None
    files_added: int | None = None
    files_removed: int | None = None
    note: str = ""
    """Why it was not done, if it was not."""

    def to_json(self) -> dict[str, Any]:
        return {
            "operation": self.operation,
            "version": self.version,
            "files_added": self.files_added,
            "files_removed": self.files_removed,
            "note": self.note,
        }


@dataclass(frozen=True, kw_only=True)
class OutputResult:
    """Where a batch landed."""

    sink: str
    table: str = ""
    path: str = ""
    committed: bool
    version: int | None = None
    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    rows_unchanged: int | None = None
    rows_parked: int | None = None
    """Rows that wait to be loaded, because they could not be committed."""
    note: str = ""
    strategy: str = ""
    """How the rows went in, where there was a choice."""
    files: FilesUsed | None = None
    maintenance: tuple[MaintenanceResult, ...] = ()
    shown: Shown | None = None
    """Rows for the screen; they are neither recorded nor part of the document."""

    def to_json(self) -> dict[str, Any]:
        place = {"table": self.table} if self.table else {"path": self.path}
        return {
            "sink": self.sink,
            **place,
            "committed": self.committed,
            "version": self.version,
            "rows_inserted": self.rows_inserted,
            "rows_updated": self.rows_updated,
            "rows_deleted": self.rows_deleted,
            "rows_unchanged": self.rows_unchanged,
            "rows_parked": self.rows_parked,
            "note": self.note,
            "strategy": self.strategy or None,
            "files": None if self.files is None else self.files.to_json(),
            "maintenance": [done.to_json() for done in self.maintenance],
        }


@dataclass(frozen=True, kw_only=True)
class BatchResult:
    """One batch: what it read, refused and wrote."""

    n: int
    id: str | None
    state: str
    reads: Mapping[str, str] = field(default_factory=dict)
    """Source -> what of it the batch reads, in a few words."""
    rows_read: int | None = None
    rows_quarantined: int | None = None
    rows_dropped: int | None = None
    uncounted: Mapping[str, str] = field(default_factory=dict)
    """Count that is not known -> why not."""
    steps: tuple[StepResult, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    outputs: tuple[OutputResult, ...] = ()

    @property
    def parked(self) -> bool:
        """Whether a sink waits for rows of the batch."""
        return any(output.rows_parked is not None for output in self.outputs)

    def to_json(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "id": self.id,
            "state": self.state,
            "reads": dict(self.reads),
            "rows_read": self.rows_read,
            "rows_quarantined": self.rows_quarantined,
            "rows_dropped": self.rows_dropped,
            "uncounted": dict(self.uncounted),
            "steps": [step.to_json() for step in self.steps],
            "checks": [check.to_json() for check in self.checks],
            "outputs": [output.to_json() for output in self.outputs],
        }


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """How a run ended; the same document is printed, returned and recorded."""

    run_id: str | None
    pipeline: str
    status: str
    started_at: str
    duration_s: float
    batches: tuple[BatchResult, ...] = ()
    notes: tuple[str, ...] = ()
    error: DeltaworksError | None = None

    @property
    def exit_code(self) -> int:
        """What the command line ends with: 0 only when nothing failed and nothing waits."""
        if self.error is not None:
            return self.error.exit_code
        return EXIT_PARKED if self.status == PARKED else EXIT_OK

    def to_json(self) -> dict[str, Any]:
        return {
            "contract": CONTRACT,
            "run_id": self.run_id,
            "pipeline": self.pipeline,
            "status": self.status,
            "started_at": self.started_at,
            "duration_s": round(self.duration_s, 3),
            "batches": [batch.to_json() for batch in self.batches],
            "notes": list(self.notes),
            "error": error_document(self.error),
        }


def status_of(error: DeltaworksError | None, *, parked: bool, stopped: bool, skipped: bool) -> str:
    """How a run ended, in a word: what asks for attention comes first."""
    if error is not None:
        return FAILED
    if parked:
        return PARKED
    return STOPPED if stopped else SKIPPED if skipped else SUCCEEDED


def error_document(error: DeltaworksError | None) -> dict[str, Any] | None:
    """An error as programs read it."""
    if error is None:
        return None
    message = "\n".join(problem.text() for problem in error.problems)
    first = error.problems[0]
    one = len(error.problems) == 1
    return {
        "code": error.code,
        "message": first.message if one else message,
        "hint": first.hint if one else error.hint,
        "file": first.file or None,
        "line": first.line or None,
    }


@dataclass(frozen=True, kw_only=True)
class OutputPlan:
    """What a batch would do to one sink, were it run now."""

    sink: str
    table: str = ""
    path: str = ""
    exists: bool | None = None
    schema_changes: tuple[SchemaChange, ...] = ()
    sql: str = ""
    rows_to_insert: int | None = None
    rows_to_update: int | None = None
    rows_to_delete: int | None = None
    rows_unchanged: int | None = None
    rows_to_drop: int | None = None
    note: str = ""
    strategy: str = ""
    """How the rows would go in, where there is a choice."""
    advice: str = ""
    """What would make the write cheaper, and what that costs."""
    files: FilesUsed | None = None

    def to_json(self) -> dict[str, Any]:
        place = {"table": self.table} if self.table else {"path": self.path}
        return {
            "sink": self.sink,
            **place,
            "exists": self.exists,
            "schema_changes": [
                {
                    "kind": change.kind,
                    "column": change.column,
                    "table_type": change.table_type or None,
                    "batch_type": change.batch_type or None,
                }
                for change in self.schema_changes
            ],
            "sql": self.sql or None,
            "rows_to_insert": self.rows_to_insert,
            "rows_to_update": self.rows_to_update,
            "rows_to_delete": self.rows_to_delete,
            "rows_unchanged": self.rows_unchanged,
            "note": self.note,
            "strategy": self.strategy or None,
            "advice": self.advice or None,
            "files": None if self.files is None else self.files.to_json(),
        }


@dataclass(frozen=True, kw_only=True)
class StagePlan:
    """One stage as `plan` lists it."""

    kind: str
    name: str
    type: str
    inputs: tuple[str, ...]
    detail: str = ""
    columns: tuple[dict[str, Any], ...] | None = None
    found: bool = False
    """Whether the columns were found in the data, so that people should see them."""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "type": self.type,
            "inputs": list(self.inputs),
            "detail": self.detail,
            "columns": None if self.columns is None else list(self.columns),
        }


@dataclass(frozen=True, kw_only=True)
class PlanResult:
    """What a run would do; nothing was written to find out."""

    pipeline: str
    offline: bool
    stages: tuple[StagePlan, ...]
    rows_read: int | None = None
    rows_to_quarantine: int | None = None
    checks: tuple[CheckResult, ...] = ()
    outputs: tuple[OutputPlan, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "contract": CONTRACT,
            "pipeline": self.pipeline,
            "offline": self.offline,
            "stages": [stage.to_json() for stage in self.stages],
            "rows_read": self.rows_read,
            "rows_to_quarantine": self.rows_to_quarantine,
            "checks": [check.to_json() for check in self.checks],
            "outputs": [output.to_json() for output in self.outputs],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class PreviewResult:
    """Rows of one step, as the next batch would have them; nothing was written to find out."""

    pipeline: str
    step: str
    kind: str
    columns: tuple[dict[str, Any], ...] = ()
    """Name, type and nullability of each column."""
    rows: tuple[dict[str, Any], ...] = ()
    """Plain values by column; times and decimals are text."""
    more: bool = False
    """Whether there are rows beyond those shown."""
    rows_quarantined: int | None = None
    """Rows quarantined on the way to the step and in it; None when nothing was read."""
    checks: tuple[CheckResult, ...] = ()
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "contract": CONTRACT,
            "pipeline": self.pipeline,
            "step": self.step,
            "kind": self.kind,
            "columns": list(self.columns),
            "rows": list(self.rows),
            "more": self.more,
            "rows_quarantined": self.rows_quarantined,
            "checks": [check.to_json() for check in self.checks],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, kw_only=True)
class CaseFailure:
    """One thing that a test expected and did not find."""

    what: str
    """The sink or step it looked at, or what else was expected."""
    message: str
    missing: tuple[dict[str, Any], ...] = ()
    unexpected: tuple[dict[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "what": self.what,
            "message": self.message,
            "missing": list(self.missing),
            "unexpected": list(self.unexpected),
        }


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """How one test of a pipeline ended."""

    name: str
    pipeline: str
    file: str
    line: int
    duration_s: float
    rows_quarantined: int | None = None
    failures: tuple[CaseFailure, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether everything was as expected."""
        return not self.failures

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "pipeline": self.pipeline,
            "file": self.file,
            "line": self.line,
            "passed": self.passed,
            "duration_s": round(self.duration_s, 3),
            "rows_quarantined": self.rows_quarantined,
            "failures": [failure.to_json() for failure in self.failures],
        }
